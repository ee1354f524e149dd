/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_loss.c - MSE, LINEAR_LOSS and CROSS_ENTROPY.
 */
#include "host_arith.h"
#include "lanes.h"
#include "maximum.h"
#include "operators.h"

#include <fsdp/arith/log.h>

static float mse_row(const float *restrict y, const float *restrict target,
                     float *restrict dy, float factor, uint64_t n)
{
    uint64_t whole = lanes_whole(n);
    struct lanes acc = {0};
    float lane[LANES];

    for (uint64_t c = 0; c < whole; c += LANES) {
        HOST_UNROLL
        for (int v = 0; v < LANES_VECS; v++) {
            uint64_t at = c + (uint64_t)v * VEC_WIDTH;
            vec d = vec_load(y + at) - vec_load(target + at);

            lanes_fma(&acc, v, d, d);
            vec_store(dy + at, vec_splat(factor) * d);
        }
    }
    lanes_store(&acc, lane);
    for (uint64_t c = whole; c < n; c++) {
        float d = y[c] - target[c];

        lane[c - whole] = host_fmaf(d, d, lane[c - whole]);
        dy[c] = factor * d;
    }
    return lanes_fold(lane);
}

int HOST_NAME(host_mse)(const struct fsdp_op *op, struct workspace *ws)
{
    uint64_t n = op->dim[1];
    const float *y = op->in[0].p;
    const float *target = op->in[1].p;
    float *row_loss = op->out[0].p;
    float *dy = op->out[1].p;

    (void)ws;
    for (uint64_t r = 0; r < op->dim[0]; r++) {
        row_loss[r] =
            mse_row(y + r * n, target + r * n, dy + r * n, op->f[0], n);
    }
    return FSDP_OK;
}

static float linear_row(const float *restrict y, const float *restrict weight,
                        float *restrict dy, float factor, uint64_t n)
{
    uint64_t whole = lanes_whole(n);
    struct lanes acc = {0};
    float lane[LANES];

    for (uint64_t c = 0; c < whole; c += LANES) {
        HOST_UNROLL
        for (int v = 0; v < LANES_VECS; v++) {
            uint64_t at = c + (uint64_t)v * VEC_WIDTH;
            vec w = vec_load(weight + at);

            lanes_fma(&acc, v, vec_load(y + at), w);
            vec_store(dy + at, vec_splat(factor) * w);
        }
    }
    lanes_store(&acc, lane);
    for (uint64_t c = whole; c < n; c++) {
        lane[c - whole] = host_fmaf(y[c], weight[c], lane[c - whole]);
        dy[c] = factor * weight[c];
    }
    return lanes_fold(lane);
}

int HOST_NAME(host_linear_loss)(const struct fsdp_op *op, struct workspace *ws)
{
    uint64_t n = op->dim[1];
    const float *y = op->in[0].p;
    const float *weight = op->in[1].p;
    float *row_loss = op->out[0].p;
    float *dy = op->out[1].p;

    (void)ws;
    for (uint64_t r = 0; r < op->dim[0]; r++) {
        row_loss[r] =
            linear_row(y + r * n, weight + r * n, dy + r * n, op->f[0], n);
    }
    return FSDP_OK;
}

/* dx may be x. 1 is subtracted in one place alone: subtracting 0 in all others
 * would change no number. */
static float cross_entropy_row(const float *x, uint64_t n, uint64_t id,
                               float factor, float *dx)
{
    float x_id = x[id];
    float m = maximum_of(x, n);
    float e_id;
    float s;

    HOST_INDEPENDENT
    for (uint64_t c = 0; c < n; c++) {
        dx[c] = host_expf(x[c] - m);
    }
    e_id = dx[id];
    s = lanes_sum(dx, n);
    for (uint64_t c = 0; c < n; c++) {
        dx[c] = dx[c] / s * factor;
    }
    dx[id] = (e_id / s - 1.0f) * factor;
    return fsdp_logf(s) - (x_id - m);
}

int HOST_NAME(host_cross_entropy)(const struct fsdp_op *op,
                                  struct workspace *ws)
{
    uint64_t n = op->dim[1];
    const float *x = op->in[0].p;
    const int32_t *id = op->in[1].p;
    float *row_loss = op->out[0].p;
    float *dx = op->out[1].p;

    (void)ws;
    for (uint64_t r = 0; r < op->dim[0]; r++) {
        row_loss[r] = cross_entropy_row(x + r * n, n, (uint64_t)id[r], op->f[0],
                                        dx + r * n);
    }
    return FSDP_OK;
}
