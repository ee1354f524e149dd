/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile_crash.c - a rank dies of a signal.
 */
#include "mutants/wrap_kit.h"

#include <signal.h>

static _Thread_local uint32_t steps;

static int step(struct fsdp_sharded *s, struct fsdp_step *how)
{
    if (steps++ == 1 && mutant_real.rank == 0) {
        raise(SIGSEGV);
    }
    return mutant_real.engine.step(s, how);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    steps = 0;
    engine->step = step;
}

MUTANT(hostile_crash) = {
    .name = "hostile-crash",
    .text = "rank 0 dies of SIGSEGV in its second step",
    .evidence = "X32: pytorch/pytorch#174862",
    .kills = "run.survives",
    .shows = mutant_plain,
    .n_cases = 1,
    .wrap = wrap,
};
