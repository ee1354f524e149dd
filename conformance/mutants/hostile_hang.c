/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile_hang.c - a rank waits for ever, outside of any collective.
 */
#include "mutants/wrap_kit.h"

#include <unistd.h>

static _Thread_local uint32_t steps;

static int step(struct fsdp_sharded *s, struct fsdp_step *how)
{
    while (steps == 1 && mutant_real.rank == 1) {
        pause();
    }
    steps++;
    return mutant_real.engine.step(s, how);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    steps = 0;
    engine->step = step;
}

MUTANT(hostile_hang) = {
    .name = "hostile-hang",
    .text = "rank 1 sleeps for ever in its second step",
    .evidence = "X42: NVIDIA/Megatron-LM#6573",
    .kills = "run.survives",
    .shows = mutant_plain,
    .n_cases = 1,
    .wrap = wrap,
};
