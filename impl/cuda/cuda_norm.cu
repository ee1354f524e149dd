/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_norm.cu - NORM and NORM_BACKWARD: a warp a row.
 */
#include "cuda_row.cuh"

#include <fsdp/arith/rsqrt.h>

template <int HELD>
static __global__ void __launch_bounds__(THREADS)
    norm_forward(const uint64_t rows, const uint64_t n, const float eps,
                 const float *x, const float *gamma, const float *beta,
                 float *y, float *stat)
{
    const uint64_t row = warp_row();
    float sum = 0.0f;
    float squares = 0.0f;
    float mean;
    float r;

    if (row >= rows) {
        return;
    }
    const row_of_floats<HELD> of_x(x + row * n, n);

    y += row * n;
    each_column<HELD>(
        n, [&](unsigned int i, uint64_t c) { sum = sum + of_x.at(i, c); });
    mean = warp_sum(sum) / (float)n;
    each_column<HELD>(n, [&](unsigned int i, uint64_t c) {
        float d = of_x.at(i, c) - mean;

        squares = fmaf(d, d, squares);
    });
    r = fsdp_rsqrtf(warp_sum(squares) / (float)n + eps);
    each_column<HELD>(n, [&](unsigned int i, uint64_t c) {
        float d = of_x.at(i, c) - mean;

        y[c] = fmaf(d * r, gamma[c], beta[c]);
    });
    if (warp_lane() == 0) {
        stat[row * 2] = mean;
        stat[row * 2 + 1] = r;
    }
}

template <int HELD>
static __global__ void __launch_bounds__(THREADS)
    norm_backward(const uint64_t rows, const uint64_t n, const float *x,
                  const float *gamma, const float *stat, const float *dy,
                  float *dx)
{
    const uint64_t row = warp_row();
    float sum_1 = 0.0f;
    float sum_2 = 0.0f;
    float mean;
    float r;
    float s1;
    float s2;

    if (row >= rows) {
        return;
    }
    const row_of_floats<HELD> of_x(x + row * n, n);
    const row_of_floats<HELD> of_dy(dy + row * n, n);

    dx += row * n;
    mean = stat[row * 2];
    r = stat[row * 2 + 1];
    each_column<HELD>(n, [&](unsigned int i, uint64_t c) {
        float h = (of_x.at(i, c) - mean) * r;
        float g = of_dy.at(i, c) * gamma[c];

        sum_1 = sum_1 + g;
        sum_2 = fmaf(g, h, sum_2);
    });
    s1 = warp_sum(sum_1) / (float)n;
    s2 = warp_sum(sum_2) / (float)n;
    each_column<HELD>(n, [&](unsigned int i, uint64_t c) {
        float h = (of_x.at(i, c) - mean) * r;
        float g = of_dy.at(i, c) * gamma[c];

        dx[c] = r * fmaf(-h, s2, g - s1);
    });
}

extern "C" cudaError_t cuda_op_norm(const struct fsdp_op *op,
                                    const struct cuda_target *target)
{
    return launch_rows(target, op->dim[0], op->dim[1], norm_forward<0>,
                       norm_forward<8>, norm_forward<16>, norm_forward<24>,
                       norm_forward<32>, op->f[0], in_of<float>(op, 0),
                       in_of<float>(op, 1), in_of<float>(op, 2),
                       out_of<float>(op, 0), out_of<float>(op, 1));
}

extern "C" cudaError_t cuda_op_norm_backward(const struct fsdp_op *op,
                                             const struct cuda_target *target)
{
    return launch_rows(target, op->dim[0], op->dim[1], norm_backward<0>,
                       norm_backward<8>, norm_backward<16>, norm_backward<24>,
                       norm_backward<32>, in_of<float>(op, 0),
                       in_of<float>(op, 1), in_of<float>(op, 2),
                       in_of<float>(op, 3), out_of<float>(op, 0));
}

extern "C" cudaError_t cuda_load_norm(void)
{
    return load(norm_forward<0>, norm_forward<8>, norm_forward<16>,
                norm_forward<24>, norm_forward<32>, norm_backward<0>,
                norm_backward<8>, norm_backward<16>, norm_backward<24>,
                norm_backward<32>);
}
