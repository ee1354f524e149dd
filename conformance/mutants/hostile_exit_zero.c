/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile_exit_zero.c - a rank leaves the process, and says that all was
 * well.
 */
#include "mutants/wrap_kit.h"

#include <unistd.h>

static _Thread_local uint32_t steps;

static int step(struct fsdp_sharded *s, struct fsdp_step *how)
{
    if (steps++ == 1 && mutant_real.rank == 0) {
        _exit(0);
    }
    return mutant_real.engine.step(s, how);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    steps = 0;
    engine->step = step;
}

MUTANT(hostile_exit_zero) = {
    .name = "hostile-exit-zero",
    .text = "rank 0 calls _exit(0) in its second step",
    .evidence = "a child that ends early with status 0 must not count as "
                "passed",
    .kills = "run.survives",
    .shows = mutant_plain,
    .n_cases = 1,
    .wrap = wrap,
};
