/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_columns.cu - COLUMN_SUM and NORM_GRAD: sums down the columns of a
 * matrix. A block of threads has 8 columns, 32 bytes, the unit in which memory
 * is read; such narrow shares give enough blocks to fill a GPU. Its threads sum
 * blocks of 64 rows side by side, and a few of them add these up in order,
 * while the others are at the next rows.
 */
#include "cuda_common.cuh"

enum {
    BLOCK_ROWS = 64,
    SIDE_BY_SIDE = 8,                   /* columns of a block */
    SUM_THREADS = 1024,                 /* of a block */
    SLOTS = SUM_THREADS / SIDE_BY_SIDE, /* blocks of rows at once */
    AT_ONCE = 8                         /* rows that are loaded */
};

/* The term of a row in the sums of a column; `at` is the element. */
struct add_x {
    static constexpr int sums = 1;
    struct in {
        float x;
    };
    const float *x;

    __device__ in load(uint64_t at, uint64_t) const
    {
        return {x[at]};
    }
    __device__ void add(float (&sum)[1], in v) const
    {
        sum[0] = sum[0] + v.x;
    }
};

/* dgamma and dbeta. */
struct add_norm {
    static constexpr int sums = 2;
    struct in {
        float x, mean, r, dy;
    };
    const float *x, *stat, *dy;

    __device__ in load(uint64_t at, uint64_t row) const
    {
        return {x[at], stat[row * 2], stat[row * 2 + 1], dy[at]};
    }
    __device__ void add(float (&sum)[2], in v) const
    {
        float h = (v.x - v.mean) * v.r;

        sum[0] = fmaf(v.dy, h, sum[0]);
        sum[1] = sum[1] + v.dy;
    }
};

/* Sums of `rows` rows of column j from row `first` on. */
template <class F>
static __device__ __forceinline__ void
sum_block(float (&sum)[F::sums], const F &f, uint64_t first, unsigned int rows,
          uint64_t n, uint64_t j)
{
    unsigned int r = 0;

    for (; r + AT_ONCE <= rows; r += AT_ONCE) {
        typename F::in got[AT_ONCE];

#pragma unroll
        for (unsigned int k = 0; k < AT_ONCE; k++) {
            got[k] = f.load((first + r + k) * n + j, first + r + k);
        }
#pragma unroll
        for (unsigned int k = 0; k < AT_ONCE; k++) {
            f.add(sum, got[k]);
        }
    }
    for (; r < rows; r++) {
        f.add(sum, f.load((first + r) * n + j, first + r));
    }
}

template <class F>
static __global__ void __launch_bounds__(SUM_THREADS, 1)
    column_sums(const uint64_t rows, const uint64_t n,
                const unsigned int grains,
                const __grid_constant__ struct cuda_tree tree, const F f,
                float *out_0, float *out_1)
{
    /* In turns: the next blocks of rows do not wait for these to be added. */
    __shared__ float of_slot[2][F::sums][SLOTS][SIDE_BY_SIDE];
    __shared__ float part[FSDP_MAX_GRAINS][F::sums * SIDE_BY_SIDE];
    const unsigned int t = threadIdx.x;
    const unsigned int column = t % SIDE_BY_SIDE;
    const unsigned int slot = t / SIDE_BY_SIDE; /* of a thread that adds up:
                                                 * which sum */
    const bool adds_up = slot < F::sums;
    const uint64_t j = (uint64_t)blockIdx.x * SIDE_BY_SIDE + column;
    const uint64_t height = rows / grains;
    unsigned int turn = 0;

    for (unsigned int grain = 0; grain < grains; grain++) {
        float total = 0.0f;

        for (uint64_t b0 = 0; b0 < height; b0 += SLOTS * BLOCK_ROWS) {
            const uint64_t first = b0 + slot * BLOCK_ROWS;
            const uint64_t left = first < height && j < n ? height - first : 0;
            float sum[F::sums] = {};

            sum_block(sum, f, grain * height + first,
                      left < (unsigned int)BLOCK_ROWS
                          ? (unsigned int)left
                          : (unsigned int)BLOCK_ROWS,
                      n, j);
#pragma unroll
            for (int s = 0; s < F::sums; s++) {
                of_slot[turn][s][slot][column] = sum[s];
            }
            __syncthreads();
            for (unsigned int w = 0;
                 adds_up && w < SLOTS && b0 + w * BLOCK_ROWS < height; w++) {
                total = total + of_slot[turn][slot][w][column];
            }
            turn = 1 - turn;
        }
        if (adds_up) {
            part[grain][t] = total;
        }
    }
    if (!adds_up || j >= n) {
        return;
    }
    for (unsigned int s = 0; s < tree.n; s++) {
        part[tree.to[s]][t] = part[tree.to[s]][t] + part[tree.from[s]][t];
    }
    (slot == 0 ? out_0 : out_1)[j] = part[0][t];
}

template <class F>
static cudaError_t run_columns(const struct fsdp_op *op,
                               const struct cuda_target *target, F f,
                               float *out_0, float *out_1)
{
    struct cuda_tree tree;

    cuda_tree_make(&tree, (unsigned int)op->dim[2]);
    return launch(target, divide_up(op->dim[1], SIDE_BY_SIDE), SUM_THREADS,
                  column_sums<F>, op->dim[0], op->dim[1],
                  (unsigned int)op->dim[2], tree, f, out_0, out_1);
}

extern "C" cudaError_t cuda_op_column_sum(const struct fsdp_op *op,
                                          const struct cuda_target *target)
{
    add_x f = {in_of<float>(op, 0)};

    return run_columns(op, target, f, out_of<float>(op, 0),
                       static_cast<float *>(NULL));
}

extern "C" cudaError_t cuda_op_norm_grad(const struct fsdp_op *op,
                                         const struct cuda_target *target)
{
    add_norm f = {in_of<float>(op, 0), in_of<float>(op, 1),
                  in_of<float>(op, 2)};

    return run_columns(op, target, f, out_of<float>(op, 0),
                       out_of<float>(op, 1));
}

extern "C" cudaError_t cuda_load_columns(void)
{
    return load(column_sums<add_x>, column_sums<add_norm>);
}
