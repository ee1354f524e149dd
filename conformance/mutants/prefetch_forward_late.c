/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefetch_forward_late.c - in a forward nothing is gathered ahead.
 */
#include "mutants/wrap_kit.h"

static void change(struct fsdp_options *o)
{
    o->prefetch_forward = 0;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_options(engine, change);
}

MUTANT(prefetch_forward_late) = {
    .name = "prefetch-forward-late",
    .text = "in a forward nothing is gathered ahead",
    .evidence = "X33: Megatron-LM#6153: prefetch at another time than agreed",
    .kills = "prefetch.forward-ahead",
    .shows = mutant_ahead,
    .engine = "impl",
    .wrap = wrap,
};
