/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allocations_grow.c - each step allocates once more than the step before.
 */
#include "mutants/wrap_kit.h"

static _Thread_local uint32_t steps;

static int step(struct fsdp_sharded *s, struct fsdp_step *how)
{
    const struct fsdp_device *d = mutant_real.device;

    FSDP_TRY(mutant_real.engine.step(s, how));
    steps++;
    for (uint32_t i = 0; i < steps; i++) {
        void *p;

        FSDP_TRY(d->alloc(d->self, 64, &p));
        d->free(d->self, p);
    }
    return FSDP_OK;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    steps = 0;
    engine->step = step;
}

MUTANT(allocations_grow) = {
    .name = "allocations-grow",
    .text = "the number of allocations in a step grows with steps",
    .evidence = "X48: deepspeedai/DeepSpeed#5143",
    .kills = "memory.steps-do-not-grow",
    .shows = mutant_plain,
    .wrap = wrap,
};
