/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_norm.cu - NORM and NORM_BACKWARD: a warp a row, lanes() of op.h being
 * the lanes of the warp.
 */
#include "cuda_common.cuh"

#include <fsdp/arith/rsqrt.h>

static __global__ void __launch_bounds__(THREADS)
    norm_forward(const uint64_t rows, const uint64_t n, const float eps,
                 const float *x, const float *gamma, const float *beta,
                 float *y, float *stat)
{
    const uint64_t row = warp_row();
    const unsigned int lane = warp_lane();
    float sum = 0.0f;
    float squares = 0.0f;
    float mean;
    float r;

    if (row >= rows) {
        return;
    }
    x += row * n;
    y += row * n;
    for (uint64_t c = lane; c < n; c += WARP) {
        sum = sum + x[c];
    }
    mean = warp_sum(sum) / (float)n;
    for (uint64_t c = lane; c < n; c += WARP) {
        float d = x[c] - mean;

        squares = fmaf(d, d, squares);
    }
    r = fsdp_rsqrtf(warp_sum(squares) / (float)n + eps);
    for (uint64_t c = lane; c < n; c += WARP) {
        float d = x[c] - mean;

        y[c] = fmaf(d * r, gamma[c], beta[c]);
    }
    if (lane == 0) {
        stat[row * 2] = mean;
        stat[row * 2 + 1] = r;
    }
}

static __global__ void __launch_bounds__(THREADS)
    norm_backward(const uint64_t rows, const uint64_t n, const float *x,
                  const float *gamma, const float *stat, const float *dy,
                  float *dx)
{
    const uint64_t row = warp_row();
    const unsigned int lane = warp_lane();
    float sum_1 = 0.0f;
    float sum_2 = 0.0f;
    float mean;
    float r;
    float s1;
    float s2;

    if (row >= rows) {
        return;
    }
    x += row * n;
    dy += row * n;
    dx += row * n;
    mean = stat[row * 2];
    r = stat[row * 2 + 1];
    for (uint64_t c = lane; c < n; c += WARP) {
        float h = (x[c] - mean) * r;
        float g = dy[c] * gamma[c];

        sum_1 = sum_1 + g;
        sum_2 = fmaf(g, h, sum_2);
    }
    s1 = warp_sum(sum_1) / (float)n;
    s2 = warp_sum(sum_2) / (float)n;
    for (uint64_t c = lane; c < n; c += WARP) {
        float h = (x[c] - mean) * r;
        float g = dy[c] * gamma[c];

        dx[c] = r * fmaf(-h, s2, g - s1);
    }
}

extern "C" cudaError_t cuda_op_norm(const struct fsdp_op *op,
                                    const struct cuda_target *target)
{
    return launch(target, blocks_for_rows(op->dim[0]), THREADS, norm_forward,
                  op->dim[0], op->dim[1], op->f[0], in_of<float>(op, 0),
                  in_of<float>(op, 1), in_of<float>(op, 2),
                  out_of<float>(op, 0), out_of<float>(op, 1));
}

extern "C" cudaError_t cuda_op_norm_backward(const struct fsdp_op *op,
                                             const struct cuda_target *target)
{
    return launch(target, blocks_for_rows(op->dim[0]), THREADS, norm_backward,
                  op->dim[0], op->dim[1], in_of<float>(op, 0),
                  in_of<float>(op, 1), in_of<float>(op, 2), in_of<float>(op, 3),
                  out_of<float>(op, 0));
}

extern "C" cudaError_t cuda_load_norm(void)
{
    return load(norm_forward, norm_backward);
}
