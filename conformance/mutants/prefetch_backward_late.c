/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefetch_backward_late.c - in a backward nothing is gathered ahead.
 */
#include "mutants/wrap_kit.h"

static void change(struct fsdp_options *o)
{
    o->prefetch_backward = 0;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_options(engine, change);
}

MUTANT(prefetch_backward_late) = {
    .name = "prefetch-backward-late",
    .text = "in a backward nothing is gathered ahead",
    .evidence = "X33: Megatron-LM#6153: prefetch at another time than agreed",
    .kills = "prefetch.backward-ahead",
    .shows = mutant_ahead,
    .engine = "impl",
    .wrap = wrap,
};
