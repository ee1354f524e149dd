/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_loss.cu - MSE, LINEAR_LOSS and CROSS_ENTROPY: a warp a row.
 */
#include "cuda_common.cuh"

#include <fsdp/arith/exp.h>
#include <fsdp/arith/log.h>

static __global__ void __launch_bounds__(THREADS)
    mse(const uint64_t rows, const uint64_t n, const float factor,
        const float *y, const float *target, float *row_loss, float *dy)
{
    const uint64_t row = warp_row();
    float sum = 0.0f;

    if (row >= rows) {
        return;
    }
    for (uint64_t c = warp_lane(); c < n; c += WARP) {
        float d = y[row * n + c] - target[row * n + c];

        sum = fmaf(d, d, sum);
        dy[row * n + c] = factor * d;
    }
    sum = warp_sum(sum);
    if (warp_lane() == 0) {
        row_loss[row] = sum;
    }
}

static __global__ void __launch_bounds__(THREADS)
    linear_loss(const uint64_t rows, const uint64_t n, const float factor,
                const float *y, const float *c, float *row_loss, float *dy)
{
    const uint64_t row = warp_row();
    float sum = 0.0f;

    if (row >= rows) {
        return;
    }
    for (uint64_t j = warp_lane(); j < n; j += WARP) {
        sum = fmaf(y[row * n + j], c[row * n + j], sum);
        dy[row * n + j] = factor * c[row * n + j];
    }
    sum = warp_sum(sum);
    if (warp_lane() == 0) {
        row_loss[row] = sum;
    }
}

/* dx may be x: x is read for the last time where e is written, by the lane
 * that has read it before. */
static __global__ void __launch_bounds__(THREADS)
    cross_entropy(const uint64_t rows, const uint64_t n, const float factor,
                  const float *logits, const int32_t *ids, float *row_loss,
                  float *dlogits, int *bad_id)
{
    const uint64_t row = warp_row();
    const unsigned int lane = warp_lane();
    const float *x = logits + row * n;
    float *dx = dlogits + row * n;
    float m = -INFINITY;
    float sum = 0.0f;
    float x_id;
    uint64_t id;

    if (row >= rows) {
        return;
    }
    if (ids[row] < 0 || (uint64_t)ids[row] >= n) {
        *bad_id = 1;
        return;
    }
    id = (uint64_t)ids[row];
    x_id = x[id];
    for (uint64_t c = lane; c < n; c += WARP) {
        m = maximum(m, x[c]);
    }
    m = warp_maximum(m);
    __syncwarp(); /* all lanes have read x[id] before one of them writes */
    for (uint64_t c = lane; c < n; c += WARP) {
        float e = fsdp_expf(x[c] - m);

        sum = sum + e;
        dx[c] = e;
    }
    sum = warp_sum(sum);
    for (uint64_t c = lane; c < n; c += WARP) {
        dx[c] = (dx[c] / sum - (c == id ? 1.0f : 0.0f)) * factor;
    }
    if (lane == 0) {
        row_loss[row] = fsdp_logf(sum) - (x_id - m);
    }
}

extern "C" cudaError_t cuda_op_mse(const struct fsdp_op *op,
                                   const struct cuda_target *target)
{
    return launch(target, blocks_for_rows(op->dim[0]), THREADS, mse, op->dim[0],
                  op->dim[1], op->f[0], in_of<float>(op, 0),
                  in_of<float>(op, 1), out_of<float>(op, 0),
                  out_of<float>(op, 1));
}

extern "C" cudaError_t cuda_op_linear_loss(const struct fsdp_op *op,
                                           const struct cuda_target *target)
{
    return launch(target, blocks_for_rows(op->dim[0]), THREADS, linear_loss,
                  op->dim[0], op->dim[1], op->f[0], in_of<float>(op, 0),
                  in_of<float>(op, 1), out_of<float>(op, 0),
                  out_of<float>(op, 1));
}

extern "C" cudaError_t cuda_op_cross_entropy(const struct fsdp_op *op,
                                             const struct cuda_target *target)
{
    return launch(target, blocks_for_rows(op->dim[0]), THREADS, cross_entropy,
                  op->dim[0], op->dim[1], op->f[0], in_of<float>(op, 0),
                  in_of<int32_t>(op, 1), out_of<float>(op, 0),
                  out_of<float>(op, 1), target->bad_id);
}

extern "C" cudaError_t cuda_load_loss(void)
{
    return load(mse, linear_loss, cross_entropy);
}
