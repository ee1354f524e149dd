/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_reshard.c - units stay unsharded after forward, whatever the strategy
 * says.
 */
#include "mutants/wrap_kit.h"

static void change(struct fsdp_options *o)
{
    o->reshard_after_forward = 0;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_options(engine, change);
}

MUTANT(no_reshard) = {
    .name = "no-reshard",
    .text = "a unit stays unsharded until its backward",
    .evidence = "X23: pytorch/pytorch#149029",
    .kills = "comm.all-gather-count memory.peak-unsharded",
    .shows = mutant_plain,
    .wrap = wrap,
};
