/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_without_step.c - rank 1 does not step.
 */
#include "mutants/wrap_kit.h"

static int step(struct fsdp_sharded *s, struct fsdp_step *how)
{
    how->found_inf = 0;
    return mutant_real.rank == 1 ? FSDP_OK : mutant_real.engine.step(s, how);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->step = step;
}

MUTANT(rank_without_step) = {
    .name = "rank-without-step",
    .text = "the optimizer of one rank does nothing",
    .evidence = "X30: facebookresearch/optimizers#149",
    .kills = "step.every-element-changes",
    .shows = mutant_plain,
    .wrap = wrap,
};
