/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce_awaited.c - every reduction is waited for where it is given out.
 */
#include "mutants/wrap_kit.h"

static void change(struct fsdp_options *o)
{
    o->reduces_in_flight = 0;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_options(engine, change);
}

MUTANT(reduce_awaited) = {
    .name = "reduce-awaited",
    .text = "every reduction is waited for where it is given out",
    .evidence = "X33: Megatron-LM#6153: prefetch at another time than agreed",
    .kills = "prefetch.reduce-overlaps",
    .shows = mutant_ahead,
    .engine = "impl",
    .wrap = wrap,
};
