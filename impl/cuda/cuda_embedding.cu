/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_embedding.cu - EMBEDDING and EMBEDDING_GRAD. In the gradient a warp has
 * one row of a table, and looks through all ids for its own: token order comes
 * by itself, and nothing is added by atomics.
 */
#include "cuda_common.cuh"

enum {
    ENTRY_THREADS = 128, /* a block: a warp a row of the table */
    ENTRIES = ENTRY_THREADS / WARP,
    LOOKUPS = 8, /* rows that a thread reads at once */
    HITS = 4,    /* the same of the gradient */
};

/*
 * A thread has one element of a position and goes down its rows, which are
 * `period` apart: the position is read once, so that only the table and the
 * result move. `parts`: how many threads share the rows.
 */
static __global__ void __launch_bounds__(THREADS)
    embed(const uint64_t rows, const uint64_t n, const uint64_t period,
          const uint64_t vocabulary, const uint64_t parts, const int32_t *id,
          const float *table, const float *position, float *y, int *bad_id)
{
    const uint64_t at = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    const uint64_t first = at / n;
    const uint64_t j = at % n;
    const uint64_t step = period * parts;
    bool bad = false;
    float own;

    if (first >= step || first >= rows) {
        return;
    }
    own = position[first % period * n + j];
    for (uint64_t r = first; r < rows; r += LOOKUPS * step) {
        int32_t entry[LOOKUPS];
        float got[LOOKUPS];
        bool good[LOOKUPS];

#pragma unroll
        for (unsigned int i = 0; i < LOOKUPS; i++) {
            entry[i] = r + i * step < rows ? id[r + i * step] : 0;
        }
#pragma unroll
        for (unsigned int i = 0; i < LOOKUPS; i++) {
            const bool inside =
                entry[i] >= 0 && (uint64_t)entry[i] < vocabulary;

            good[i] = inside && r + i * step < rows;
            bad = bad || (!inside && r + i * step < rows);
            got[i] = good[i] ? table[(uint64_t)entry[i] * n + j] : 0.0f;
        }
#pragma unroll
        for (unsigned int i = 0; i < LOOKUPS; i++) {
            if (good[i]) {
                y[(r + i * step) * n + j] = got[i] + own;
            }
        }
    }
    if (bad) {
        *bad_id = 1;
    }
}

/* Ids are checked even where there is nothing to look up. */
static __global__ void __launch_bounds__(THREADS)
    check_ids(const uint64_t rows, const int32_t *id, const uint64_t vocabulary,
              int *bad_id)
{
    const uint64_t stride = (uint64_t)gridDim.x * THREADS;

    for (uint64_t r = (uint64_t)blockIdx.x * THREADS + threadIdx.x; r < rows;
         r += stride) {
        if (id[r] < 0 || (uint64_t)id[r] >= vocabulary) {
            *bad_id = 1;
        }
    }
}

/*
 * Rows [r0, end) of dy that belong to `entry`, added to the lane's column, r
 * ascending. The warp looks at 32 ids at once.
 */
static __device__ float entry_sum(const int32_t *id, uint64_t entry,
                                  uint64_t r0, uint64_t end, const float *dy,
                                  uint64_t n, uint64_t j)
{
    float sum = 0.0f;

    for (uint64_t r = r0; r < end; r += WARP) {
        const uint64_t mine = r + warp_lane();
        unsigned int hits =
            __ballot_sync(WHOLE_WARP, mine < end && id[mine] >= 0 &&
                                          (uint64_t)id[mine] == entry);

        while (hits != 0) {
            float got[HITS];
            bool hit[HITS];

#pragma unroll
            for (unsigned int i = 0; i < HITS; i++) {
                const uint64_t row = r + (unsigned int)__ffs((int)hits) - 1;

                hit[i] = hits != 0 && j < n;
                got[i] = hit[i] ? dy[row * n + j] : 0.0f;
                hits &= hits - 1;
            }
#pragma unroll
            for (unsigned int i = 0; i < HITS; i++) {
                sum = hit[i] ? sum + got[i] : sum;
            }
        }
    }
    return sum;
}

/* The same for the rows r with r % period = entry. */
static __device__ float position_sum(uint64_t period, uint64_t entry,
                                     uint64_t r0, uint64_t end, const float *dy,
                                     uint64_t n, uint64_t j)
{
    float sum = 0.0f;
    uint64_t r = r0 + (entry + period - r0 % period) % period;

    for (; j < n && r < end; r += period) {
        sum = sum + dy[r * n + j];
    }
    return sum;
}

/* id NULL: the table is that of positions. */
static __global__ void __launch_bounds__(ENTRY_THREADS)
    table_grad(const uint64_t rows, const uint64_t n, const uint64_t period,
               const uint64_t entries, const unsigned int grains,
               const __grid_constant__ struct cuda_tree tree, const int32_t *id,
               const float *dy, float *grad)
{
    __shared__ float part[FSDP_MAX_GRAINS][ENTRY_THREADS];
    const uint64_t chunks = (n + WARP - 1) / WARP;
    const unsigned int t = threadIdx.x;
    const uint64_t entry = blockIdx.x / chunks * ENTRIES + t / WARP;
    const uint64_t j = blockIdx.x % chunks * WARP + warp_lane();
    const uint64_t height = rows / grains;

    if (entry >= entries) {
        return;
    }
    for (unsigned int grain = 0; grain < grains; grain++) {
        const uint64_t r0 = grain * height;

        part[grain][t] =
            id ? entry_sum(id, entry, r0, r0 + height, dy, n, j)
               : position_sum(period, entry, r0, r0 + height, dy, n, j);
    }
    for (unsigned int s = 0; s < tree.n; s++) {
        part[tree.to[s]][t] = part[tree.to[s]][t] + part[tree.from[s]][t];
    }
    if (j < n) {
        grad[entry * n + j] = part[0][t];
    }
}

static cudaError_t run_table(const struct fsdp_op *op,
                             const struct cuda_target *target, uint64_t entries,
                             const int32_t *id, float *grad)
{
    /* Without rows there may be none, and no ids: kernels divide by it. */
    const uint64_t period = op->dim[2] > 0 ? op->dim[2] : 1;
    struct cuda_tree tree;

    cuda_tree_make(&tree, (unsigned int)op->dim[4]);
    return launch(
        target, divide_up(entries, ENTRIES) * divide_up(op->dim[1], WARP),
        ENTRY_THREADS, table_grad, op->dim[0], op->dim[1], period, entries,
        (unsigned int)op->dim[4], tree, id, in_of<float>(op, 1), grad);
}

static cudaError_t run_check(const struct fsdp_op *op,
                             const struct cuda_target *target)
{
    return launch(target, blocks_for(target, op->dim[0]), THREADS, check_ids,
                  op->dim[0], in_of<int32_t>(op, 0), op->dim[3],
                  target->bad_id);
}

extern "C" cudaError_t cuda_op_embedding(const struct fsdp_op *op,
                                         const struct cuda_target *target)
{
    const uint64_t rows = op->dim[0];
    const uint64_t n = op->dim[1];
    const uint64_t period = op->dim[2];
    const uint64_t fills = (uint64_t)target->processors * RESIDENT * THREADS;
    uint64_t parts = 1;

    if (n == 0 || rows == 0) {
        return run_check(op, target);
    }
    while (parts * period * n < fills && parts * period < rows) {
        parts *= 2;
    }
    return launch(target, divide_up(parts * period * n, THREADS), THREADS,
                  embed, rows, n, period, op->dim[3], parts,
                  in_of<int32_t>(op, 0), in_of<float>(op, 1),
                  in_of<float>(op, 2), out_of<float>(op, 0), target->bad_id);
}

extern "C" cudaError_t cuda_op_embedding_grad(const struct fsdp_op *op,
                                              const struct cuda_target *target)
{
    cudaError_t status = run_check(op, target);

    if (status == cudaSuccess) {
        status = run_table(op, target, op->dim[3], in_of<int32_t>(op, 0),
                           out_of<float>(op, 0));
    }
    if (status == cudaSuccess) {
        status = run_table(op, target, op->dim[2], NULL, out_of<float>(op, 1));
    }
    return status;
}

extern "C" cudaError_t cuda_load_embedding(void)
{
    return load(embed, check_ids, table_grad);
}
