/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reshards_anyway.c - a strategy that keeps units unsharded after forward is
 * treated as one that does not: slow, and right.
 */
#include "mutants/wrap_kit.h"

static void change(struct fsdp_options *o)
{
    o->reshard_after_forward = 1;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_options(engine, change);
}

static bool shows(const struct run_case *c)
{
    return mutant_train(c) && c->strategy == CASE_SHARD_GRAD_OP && c->ranks > 1;
}

MUTANT(reshards_anyway) = {
    .name = "reshards-anyway",
    .text = "a unit is gathered again for its backward where it should "
            "be kept",
    .evidence = "X23: pytorch/pytorch#131965",
    .kills = "comm.all-gather-count memory.peak-unsharded",
    .shows = shows,
    .wrap = wrap,
};
