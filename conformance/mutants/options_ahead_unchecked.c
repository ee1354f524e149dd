/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options_ahead_unchecked.c - how far to run ahead is cut to what there is.
 */
#include "mutants/wrap_kit.h"

static void change(struct fsdp_options *o)
{
    o->prefetch_forward = o->prefetch_forward > 3 ? 1 : o->prefetch_forward;
    o->prefetch_backward = o->prefetch_backward > 3 ? 1 : o->prefetch_backward;
    o->reduces_in_flight = o->reduces_in_flight > 3 ? 1 : o->reduces_in_flight;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_options(engine, change);
}

static bool shows(const struct run_case *c)
{
    return c->scenario == CASE_OPTIONS;
}

MUTANT(options_ahead_unchecked) = {
    .name = "options-ahead-unchecked",
    .text = "prefetch beyond the units is cut, not refused",
    .evidence = "an option that is silently changed",
    .kills = "error.options-ahead",
    .shows = shows,
    .engine = "impl",
    .wrap = wrap,
};
