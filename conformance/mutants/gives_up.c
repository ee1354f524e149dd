/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gives_up.c - a rank fails in step 2, and says so.
 */
#include "mutants/wrap_kit.h"

static _Thread_local uint32_t steps;

static int step(struct fsdp_sharded *s, struct fsdp_step *how)
{
    return steps++ == 2 && mutant_real.rank == 0
               ? FSDP_ERR_INTERNAL
               : mutant_real.engine.step(s, how);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    steps = 0;
    engine->step = step;
}

MUTANT(gives_up) = {
    .name = "gives-up",
    .text = "rank 0 returns an error from its third step",
    .evidence = "an engine that fails must not pass by what it did before",
    .kills = "run.completes",
    .shows = mutant_plain,
    .n_cases = 1,
    .wrap = wrap,
};
