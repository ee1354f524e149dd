/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sgd_without_fma.c - the update is rounded twice, after the product and
 * after the difference.
 */
#include "mutants/wrap_kit.h"

static int run(void *self, struct fsdp_stream *stream, const struct fsdp_op *op)
{
    (void)self;
    float *w = op->out[0].p;
    const float *g = op->in[1].p;

    if (op->kind != FSDP_OP_SGD || op->f[1] != 0.0f) {
        return mutant_run(stream, op);
    }
    for (uint64_t i = 0; i < op->dim[0]; i++) {
        float x;
        float y;

        FSDP_TRY(mutant_get(stream, w + i, 1, &x));
        FSDP_TRY(mutant_get(stream, g + i, 1, &y));
        y = op->f[0] * y;
        x = x - y;
        FSDP_TRY(mutant_put(stream, &x, 1, w + i));
    }
    return FSDP_OK;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_device(env)->run = run;
}

static bool shows(const struct run_case *c)
{
    return mutant_plain(c) && c->weight_decay == 0.0f;
}

MUTANT(sgd_without_fma) = {
    .name = "sgd-without-fma",
    .text = "SGD computes w - lr * g with two roundings",
    .evidence = "the reason for which numerics are pinned to the bit",
    .kills = "step.sgd",
    .shows = shows,
    .wrap = wrap,
};
