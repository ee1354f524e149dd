/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_optimizer.c - SGD, MOMENTUM and ADAMW, each in one pass over the shard.
 */
#include "operators.h"
#include "vec.h"

/* The gradient with weight decay. */
HOST_INLINE float decayed(float wd, float w, float g)
{
    float with = host_fmaf(wd, w, g);

    return wd == 0.0f ? g : with;
}

int HOST_NAME(host_sgd)(const struct fsdp_op *op, struct workspace *ws)
{
    float lr = op->f[0];
    float wd = op->f[1];
    const float *restrict g = op->in[1].p;
    float *restrict w = op->out[0].p;

    (void)ws;
    for (uint64_t i = 0; i < op->dim[0]; i++) {
        w[i] = host_fmaf(-lr, decayed(wd, w[i], g[i]), w[i]);
    }
    return FSDP_OK;
}

int HOST_NAME(host_momentum)(const struct fsdp_op *op, struct workspace *ws)
{
    float lr = op->f[0];
    float wd = op->f[1];
    float mu = op->f[2];
    const float *restrict g = op->in[1].p;
    float *restrict w = op->out[0].p;
    float *restrict v = op->out[1].p;

    (void)ws;
    for (uint64_t i = 0; i < op->dim[0]; i++) {
        v[i] = host_fmaf(mu, v[i], decayed(wd, w[i], g[i]));
        w[i] = host_fmaf(-lr, v[i], w[i]);
    }
    return FSDP_OK;
}

int HOST_NAME(host_adamw)(const struct fsdp_op *op, struct workspace *ws)
{
    float beta1 = op->f[2];
    float beta2 = op->f[3];
    float rest1 = 1.0f - beta1;
    float rest2 = 1.0f - beta2;
    float decay = -(op->f[0] * op->f[1]);
    float eps = op->f[4];
    float rate = op->f[0] / (1.0f - op->f[5]);
    float root = __builtin_sqrtf(1.0f - op->f[6]);
    const float *restrict g = op->in[1].p;
    float *restrict w = op->out[0].p;
    float *restrict m = op->out[1].p;
    float *restrict v = op->out[2].p;

    (void)ws;
    for (uint64_t i = 0; i < op->dim[0]; i++) {
        m[i] = host_fmaf(beta1, m[i], rest1 * g[i]);
        v[i] = host_fmaf(beta2, v[i], (rest2 * g[i]) * g[i]);
        w[i] = host_fmaf(-rate, m[i] / (__builtin_sqrtf(v[i]) / root + eps),
                         host_fmaf(decay, w[i], w[i]));
    }
    return FSDP_OK;
}
