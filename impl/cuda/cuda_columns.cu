/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_columns.cu - COLUMN_SUM and NORM_GRAD: sums down the columns of a
 * matrix. A block of threads has 32 columns, a lane each; its warps sum blocks
 * of 64 rows side by side, and the first warp adds these up in their order.
 */
#include "cuda_common.cuh"

enum {
    BLOCK_ROWS = 64,
    WARPS = THREADS / WARP
};

/* What a row adds to the sum of column j. `block` is the sum so far. */
struct add_x {
    const float *x;

    __device__ float operator()(float block, uint64_t r, uint64_t n,
                                uint64_t j) const
    {
        return block + x[r * n + j];
    }
};

struct add_dgamma {
    const float *x, *stat, *dy;

    __device__ float operator()(float block, uint64_t r, uint64_t n,
                                uint64_t j) const
    {
        float h = (x[r * n + j] - stat[r * 2]) * stat[r * 2 + 1];

        return fmaf(dy[r * n + j], h, block);
    }
};

template <class F>
static __global__ void __launch_bounds__(THREADS)
    column_sums(const uint64_t rows, const uint64_t n,
                const unsigned int grains,
                const __grid_constant__ struct cuda_tree tree, const F add,
                float *sum)
{
    __shared__ float part[FSDP_MAX_GRAINS][WARP];
    __shared__ float of_warp[WARPS][WARP];
    const unsigned int lane = warp_lane();
    const unsigned int warp = threadIdx.x / WARP;
    const uint64_t j = (uint64_t)blockIdx.x * WARP + lane;
    const uint64_t height = rows / grains;

    for (unsigned int grain = 0; grain < grains; grain++) {
        const uint64_t r0 = grain * height;
        float total = 0.0f;

        for (uint64_t b0 = 0; b0 < height; b0 += WARPS * BLOCK_ROWS) {
            const uint64_t first = b0 + warp * BLOCK_ROWS;
            float block = 0.0f;

            for (uint64_t r = first;
                 j < n && r < height && r < first + BLOCK_ROWS; r++) {
                block = add(block, r0 + r, n, j);
            }
            of_warp[warp][lane] = block;
            __syncthreads();
            for (unsigned int w = 0;
                 warp == 0 && w < WARPS && b0 + w * BLOCK_ROWS < height; w++) {
                total = total + of_warp[w][lane];
            }
            __syncthreads();
        }
        if (warp == 0) {
            part[grain][lane] = total;
        }
    }
    if (warp != 0 || j >= n) {
        return;
    }
    for (unsigned int s = 0; s < tree.n; s++) {
        part[tree.to[s]][lane] =
            part[tree.to[s]][lane] + part[tree.from[s]][lane];
    }
    sum[j] = part[0][lane];
}

template <class F>
static cudaError_t run_columns(const struct fsdp_op *op,
                               const struct cuda_target *target, F add,
                               float *sum)
{
    struct cuda_tree tree;

    cuda_tree_make(&tree, (unsigned int)op->dim[2]);
    return launch(target, divide_up(op->dim[1], WARP), THREADS, column_sums<F>,
                  op->dim[0], op->dim[1], (unsigned int)op->dim[2], tree, add,
                  sum);
}

extern "C" cudaError_t cuda_op_column_sum(const struct fsdp_op *op,
                                          const struct cuda_target *target)
{
    add_x add = {in_of<float>(op, 0)};

    return run_columns(op, target, add, out_of<float>(op, 0));
}

extern "C" cudaError_t cuda_op_norm_grad(const struct fsdp_op *op,
                                         const struct cuda_target *target)
{
    add_dgamma dgamma = {in_of<float>(op, 0), in_of<float>(op, 1),
                         in_of<float>(op, 2)};
    add_x dbeta = {in_of<float>(op, 2)};
    cudaError_t status = run_columns(op, target, dgamma, out_of<float>(op, 0));

    return status != cudaSuccess
               ? status
               : run_columns(op, target, dbeta, out_of<float>(op, 1));
}

extern "C" cudaError_t cuda_load_columns(void)
{
    return load(column_sums<add_x>, column_sums<add_dgamma>);
}
