/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late_fault.c - a fault that begins after the steps whose tensors are
 * recorded.
 */
#include "mutants/wrap_kit.h"

static _Thread_local uint32_t steps;

static int step(struct fsdp_sharded *s, struct fsdp_step *how)
{
    struct fsdp_step x = *how;
    float lr = 2.0f * how->lr[0];

    if (steps++ >= 2) {
        x.lr = &lr;
    }
    return mutant_real.engine.step(s, &x);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    steps = 0;
    engine->step = step;
}

MUTANT(late_fault) = {
    .name = "late-fault",
    .text = "from the third step on, the learning rate is twice as "
            "large",
    .evidence = "X36: the first forward is right, what follows is worse",
    .kills = "num.curve",
    .shows = mutant_plain,
    .wrap = wrap,
};
