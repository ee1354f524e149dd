/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_loss.cu - MSE, LINEAR_LOSS and CROSS_ENTROPY: a warp a row.
 */
#include "cuda_math.cuh"
#include "cuda_row.cuh"

#include <fsdp/arith/log.h>

template <int HELD>
static __global__ void __launch_bounds__(THREADS)
    mse(const uint64_t rows, const uint64_t n, const float factor,
        const float *y, const float *target, float *row_loss, float *dy)
{
    const uint64_t row = warp_row();
    float sum = 0.0f;

    if (row >= rows) {
        return;
    }
    const row_of_floats<HELD> of_y(y + row * n, n);
    const row_of_floats<HELD> of_target(target + row * n, n);

    dy += row * n;
    each_column<HELD>(n, [&](unsigned int i, uint64_t c) {
        float d = of_y.at(i, c) - of_target.at(i, c);

        sum = fmaf(d, d, sum);
        dy[c] = factor * d;
    });
    sum = warp_sum(sum);
    if (warp_lane() == 0) {
        row_loss[row] = sum;
    }
}

template <int HELD>
static __global__ void __launch_bounds__(THREADS)
    linear_loss(const uint64_t rows, const uint64_t n, const float factor,
                const float *y, const float *weight, float *row_loss, float *dy)
{
    const uint64_t row = warp_row();
    float sum = 0.0f;

    if (row >= rows) {
        return;
    }
    const row_of_floats<HELD> of_y(y + row * n, n);
    const row_of_floats<HELD> of_weight(weight + row * n, n);

    dy += row * n;
    each_column<HELD>(n, [&](unsigned int i, uint64_t c) {
        float w = of_weight.at(i, c);

        sum = fmaf(of_y.at(i, c), w, sum);
        dy[c] = factor * w;
    });
    sum = warp_sum(sum);
    if (warp_lane() == 0) {
        row_loss[row] = sum;
    }
}

/* dx may be x: x is read for the last time where e is written, by the lane
 * that has read it before. */
template <int HELD>
static __global__ void __launch_bounds__(THREADS)
    cross_entropy(const uint64_t rows, const uint64_t n, const float factor,
                  const float *logits, const int32_t *ids, float *row_loss,
                  float *dlogits, int *bad_id)
{
    const uint64_t row = warp_row();
    const float *x = logits + row * n;
    float *dx = dlogits + row * n;
    float m = -INFINITY;
    bool nan = false;
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
    row_of_floats<HELD> of_x(x, n);

    id = (uint64_t)ids[row];
    x_id = x[id];
    each_column<HELD>(n, [&](unsigned int i, uint64_t c) {
        float v = of_x.at(i, c);

        m = fmaxf(m, v); /* a NaN gives way */
        nan = nan || v != v;
    });
    m = warp_maximum(nan ? NAN : m);
    __syncwarp(); /* all lanes have read x[id] before one of them writes */
    each_column<HELD>(n, [&](unsigned int i, uint64_t c) {
        float e = cuda_expf(of_x.at(i, c) - m);

        sum = sum + e;
        if constexpr (HELD > 0) {
            of_x.held[i] = e;
        } else {
            dx[c] = e;
        }
    });
    sum = warp_sum(sum);
    const cuda_divisor by_sum(sum); /* 1 is in it, or a NaN */

    each_column<HELD>(n, [&](unsigned int i, uint64_t c) {
        float e = HELD > 0 ? of_x.at(i, c) : dx[c];

        dx[c] = (by_sum.quotient(e) - (c == id ? 1.0f : 0.0f)) * factor;
    });
    if (warp_lane() == 0) {
        row_loss[row] = fsdp_logf(sum) - (x_id - m);
    }
}

extern "C" cudaError_t cuda_op_mse(const struct fsdp_op *op,
                                   const struct cuda_target *target)
{
    return launch_rows(target, op->dim[0], op->dim[1], mse<0>, mse<8>, mse<16>,
                       mse<24>, mse<32>, op->f[0], in_of<float>(op, 0),
                       in_of<float>(op, 1), out_of<float>(op, 0),
                       out_of<float>(op, 1));
}

extern "C" cudaError_t cuda_op_linear_loss(const struct fsdp_op *op,
                                           const struct cuda_target *target)
{
    return launch_rows(target, op->dim[0], op->dim[1], linear_loss<0>,
                       linear_loss<8>, linear_loss<16>, linear_loss<24>,
                       linear_loss<32>, op->f[0], in_of<float>(op, 0),
                       in_of<float>(op, 1), out_of<float>(op, 0),
                       out_of<float>(op, 1));
}

extern "C" cudaError_t cuda_op_cross_entropy(const struct fsdp_op *op,
                                             const struct cuda_target *target)
{
    return launch_rows(target, op->dim[0], op->dim[1], cross_entropy<0>,
                       cross_entropy<8>, cross_entropy<16>, cross_entropy<24>,
                       cross_entropy<32>, op->f[0], in_of<float>(op, 0),
                       in_of<int32_t>(op, 1), out_of<float>(op, 0),
                       out_of<float>(op, 1), target->bad_id);
}

extern "C" cudaError_t cuda_load_loss(void)
{
    return load(mse<0>, mse<8>, mse<16>, mse<24>, mse<32>, linear_loss<0>,
                linear_loss<8>, linear_loss<16>, linear_loss<24>,
                linear_loss<32>, cross_entropy<0>, cross_entropy<8>,
                cross_entropy<16>, cross_entropy<24>, cross_entropy<32>);
}
