/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_optimizer.c - SGD, MOMENTUM and ADAMW, in place on a shard: the weights
 * w, the gradient g and the optimizer's own state.
 */
#include "ops.h"

/* The gradient with weight decay. */
static float decayed(float wd, float w, float g)
{
    return wd == 0.0f ? g : ref_fma(wd, w, g);
}

int REF_NAME(ref_sgd)(const struct fsdp_op *op)
{
    uint64_t n = op->dim[0];
    float lr = op->f[0];
    float wd = op->f[1];
    const float *g = op->in[1].p;
    float *w = op->out[0].p;

    FSDP_TRY(ref_lengths(
        op, (uint64_t[]){ref_words(n, 1), ref_words(n, 1), ref_words(n, 1)}));
    for (uint64_t i = 0; i < n; i++) {
        w[i] = ref_fma(-lr, decayed(wd, w[i], g[i]), w[i]);
    }
    return FSDP_OK;
}

int REF_NAME(ref_momentum)(const struct fsdp_op *op)
{
    uint64_t n = op->dim[0];
    float lr = op->f[0];
    float wd = op->f[1];
    float mu = op->f[2];
    const float *g = op->in[1].p;
    float *w = op->out[0].p;
    float *v = op->out[1].p;

    FSDP_TRY(ref_lengths(op, (uint64_t[]){ref_words(n, 1), ref_words(n, 1),
                                          ref_words(n, 1), ref_words(n, 1),
                                          ref_words(n, 1)}));
    for (uint64_t i = 0; i < n; i++) {
        v[i] = ref_fma(mu, v[i], decayed(wd, w[i], g[i]));
        w[i] = ref_fma(-lr, v[i], w[i]);
    }
    return FSDP_OK;
}

int REF_NAME(ref_adamw)(const struct fsdp_op *op)
{
    uint64_t n = op->dim[0];
    float lr = op->f[0];
    float wd = op->f[1];
    float beta1 = op->f[2];
    float beta2 = op->f[3];
    float eps = op->f[4];
    float rate = lr / (1.0f - op->f[5]);
    float root = __builtin_sqrtf(1.0f - op->f[6]);
    const float *g = op->in[1].p;
    float *w = op->out[0].p;
    float *m = op->out[1].p;
    float *v = op->out[2].p;
    uint64_t bytes = ref_words(n, 1);

    FSDP_TRY(ref_lengths(
        op, (uint64_t[]){bytes, bytes, bytes, bytes, bytes, bytes, bytes}));
    for (uint64_t i = 0; i < n; i++) {
        m[i] = ref_fma(beta1, m[i], (1.0f - beta1) * g[i]);
        v[i] = ref_fma(beta2, v[i], ((1.0f - beta2) * g[i]) * g[i]);
        w[i] = ref_fma(-(lr * wd), w[i], w[i]);
        w[i] =
            ref_fma(-rate, m[i] / (__builtin_sqrtf(v[i]) / root + eps), w[i]);
    }
    return FSDP_OK;
}
