/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slow_leak.c - a few bytes more are live after each step.
 */
#include "mutants/wrap_kit.h"

enum {
    STEPS = 64,
    BYTES = 64
};
static _Thread_local void *leak[STEPS];
static _Thread_local uint32_t n;

static int step(struct fsdp_sharded *s, struct fsdp_step *how)
{
    const struct fsdp_device *d = mutant_real.device;

    FSDP_TRY(mutant_real.engine.step(s, how));
    if (n < STEPS) {
        FSDP_TRY(d->alloc(d->self, BYTES, &leak[n]));
        d->live(d->self, NULL, FSDP_STAGING, FSDP_NO_UNIT, leak[n], BYTES);
        n++;
    }
    return FSDP_OK;
}

static void destroy(struct fsdp_sharded *s)
{
    const struct fsdp_device *d = mutant_real.device;

    while (n > 0) {
        d->dead(d->self, NULL, leak[--n]);
        d->free(d->self, leak[n]);
    }
    mutant_real.engine.destroy(s);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    n = 0;
    engine->step = step;
    engine->destroy = destroy;
}

MUTANT(slow_leak) = {
    .name = "slow-leak",
    .text = "every step leaves a live range of 64 bytes behind until "
            "destroy",
    .evidence = "X48: deepspeedai/DeepSpeed#5143",
    .kills = "memory.rest-after-step",
    .shows = mutant_plain,
    .wrap = wrap,
};
