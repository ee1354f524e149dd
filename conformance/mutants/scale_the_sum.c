/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scale_the_sum.c - with several reductions a step, the sum so far is
 * divided again each time instead of what is added.
 */
#include "mutants/wrap_kit.h"

static _Thread_local const void *staging; /* the last that became live */

static void live(void *self, struct fsdp_stream *stream, uint32_t kind,
                 uint32_t unit, void *p, uint64_t bytes)
{
    if (kind == FSDP_STAGING) {
        staging = p;
    } else if (p == staging) {
        staging = NULL;
    }
    mutant_real.device->live(self, stream, kind, unit, p, bytes);
}

static int run(void *self, struct fsdp_stream *stream, const struct fsdp_op *op)
{
    static _Thread_local float factor;
    static _Thread_local const void *unscaled;
    struct fsdp_op scale = *op;

    (void)self;
    if (op->kind == FSDP_OP_SCALE && op->in[0].p == staging) {
        unscaled = staging;
        factor = op->f[0];
        return FSDP_OK;
    }
    FSDP_TRY(mutant_run(stream, op));
    if (op->kind != FSDP_OP_ADD || op->in[1].p != unscaled || !unscaled) {
        return FSDP_OK;
    }
    unscaled = NULL;
    scale.kind = FSDP_OP_SCALE;
    scale.f[0] = factor;
    scale.n_in = 1;
    return mutant_run(stream, &scale);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    staging = NULL;
    mutant_device(env)->run = run;
    mutant_device(env)->live = live;
}

static bool shows(const struct run_case *c)
{
    return mutant_natural(c) && c->microbatches == 2 && c->sync[0];
}

MUTANT(scale_the_sum) = {
    .name = "scale-the-sum",
    .text = "a later reduction is added unscaled, then the whole sum is "
            "scaled",
    .evidence = "X01: NVIDIA/Megatron-LM#3023",
    .kills = "accumulate.synced",
    .shows = shows,
    .wrap = wrap,
};
