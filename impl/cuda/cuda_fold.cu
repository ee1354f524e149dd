/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_fold.cu - the fold of what ranks sent, in the order that comm.h names
 * and no library chooses; and tree() as a list of additions.
 */
#include "cuda_common.cuh"

/* Sums that a thread keeps of a tree: a balanced tree of n parts is never
 * deeper than log2(n) + 1. */
enum {
    FOLD_THREADS = 128
};

static __global__ void __launch_bounds__(THREADS)
    fold_in_order(const uint64_t n,
                  const __grid_constant__ struct cuda_parts parts, float *out)
{
    const uint64_t stride = (uint64_t)gridDim.x * THREADS;

    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < n;
         i += stride) {
        float sum = parts.part[0][i];

        for (unsigned int r = 1; r < parts.n; r++) {
            sum = sum + parts.part[r][i];
        }
        out[i] = sum;
    }
}

/* Each thread has a column of shared memory of its own: no barrier. */
static __global__ void __launch_bounds__(FOLD_THREADS)
    fold_balanced(const uint64_t n,
                  const __grid_constant__ struct cuda_parts parts,
                  const __grid_constant__ struct cuda_tree tree, float *out)
{
    __shared__ float sum[CUDA_MAX_RANKS][FOLD_THREADS];
    const unsigned int t = threadIdx.x;
    const uint64_t stride = (uint64_t)gridDim.x * FOLD_THREADS;

    for (uint64_t i = (uint64_t)blockIdx.x * FOLD_THREADS + t; i < n;
         i += stride) {
        for (unsigned int r = 0; r < parts.n; r++) {
            sum[r][t] = parts.part[r][i];
        }
        for (unsigned int a = 0; a < tree.n; a++) {
            sum[tree.to[a]][t] = sum[tree.to[a]][t] + sum[tree.from[a]][t];
        }
        out[i] = sum[0][t];
    }
}

extern "C" cudaError_t cuda_fold(const struct cuda_target *target,
                                 const struct cuda_parts *parts, float *out,
                                 uint64_t n)
{
    struct cuda_tree tree;

    if (parts->n == 0 || parts->n > CUDA_MAX_RANKS) {
        return cudaErrorInvalidValue;
    }
    if (!parts->balanced) {
        return launch(target, blocks_for(target, n), THREADS, fold_in_order, n,
                      *parts, out);
    }
    cuda_tree_make(&tree, parts->n);
    return launch(target, blocks_for(target, n), FOLD_THREADS, fold_balanced, n,
                  *parts, tree, out);
}

/* tree(first, first + parts): of ceil(parts / 2) and of the rest. */
static void grow(struct cuda_tree *tree, unsigned int first, unsigned int parts)
{
    unsigned int half = (parts + 1) / 2;

    if (parts <= 1) {
        return;
    }
    grow(tree, first, half);
    grow(tree, first + half, parts - half);
    tree->to[tree->n] = (unsigned char)first;
    tree->from[tree->n] = (unsigned char)(first + half);
    tree->n++;
}

extern "C" void cuda_tree_make(struct cuda_tree *tree, unsigned int parts)
{
    tree->n = 0;
    grow(tree, 0, parts);
}

extern "C" cudaError_t cuda_load_fold(void)
{
    return load(fold_in_order, fold_balanced);
}
