/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_fold.cu - the fold of what ranks sent, in the order that comm.h names
 * and no library chooses; and tree() as a list of additions.
 */
#include "cuda_common.cuh"
#include "cuda_number.cuh"

/* Sums that a thread keeps of a tree: a balanced tree of n parts is never
 * deeper than log2(n) + 1. */
enum {
    FOLD_THREADS = 128
};

/* Parts are of class X; each sum is rounded to class S. */
template <class X, class S>
static __global__ void __launch_bounds__(THREADS)
    fold_in_order(const uint64_t n,
                  const __grid_constant__ struct cuda_parts parts,
                  typename X::type *out)
{
    typedef typename X::type type;
    const uint64_t stride = (uint64_t)gridDim.x * THREADS;

    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < n;
         i += stride) {
        float sum = X::wide(static_cast<const type *>(parts.part[0])[i]);

        for (unsigned int r = 1; r < parts.n; r++) {
            float x = X::wide(static_cast<const type *>(parts.part[r])[i]);

            sum = S::wide(S::narrow(sum + x));
        }
        out[i] = X::narrow(sum);
    }
}

/* Each thread has a column of shared memory of its own: no barrier. */
template <class X, class S>
static __global__ void __launch_bounds__(FOLD_THREADS)
    fold_balanced(const uint64_t n,
                  const __grid_constant__ struct cuda_parts parts,
                  const __grid_constant__ struct cuda_tree tree,
                  typename X::type *out)
{
    typedef typename X::type type;
    __shared__ float sum[CUDA_MAX_RANKS][FOLD_THREADS];
    const unsigned int t = threadIdx.x;
    const uint64_t stride = (uint64_t)gridDim.x * FOLD_THREADS;

    for (uint64_t i = (uint64_t)blockIdx.x * FOLD_THREADS + t; i < n;
         i += stride) {
        for (unsigned int r = 0; r < parts.n; r++) {
            sum[r][t] = X::wide(static_cast<const type *>(parts.part[r])[i]);
        }
        for (unsigned int a = 0; a < tree.n; a++) {
            sum[tree.to[a]][t] =
                S::wide(S::narrow(sum[tree.to[a]][t] + sum[tree.from[a]][t]));
        }
        out[i] = X::narrow(sum[0][t]);
    }
}

template <class X, class S>
static cudaError_t fold_as(const struct cuda_target *target,
                           const struct cuda_parts *parts, void *out,
                           uint64_t n)
{
    typename X::type *y = static_cast<typename X::type *>(out);
    struct cuda_tree tree;

    if (!parts->balanced) {
        return launch(target, blocks_for(target, n), THREADS,
                      fold_in_order<X, S>, n, *parts, y);
    }
    cuda_tree_make(&tree, parts->n);
    return launch(target, blocks_for(target, n), FOLD_THREADS,
                  fold_balanced<X, S>, n, *parts, tree, y);
}

extern "C" cudaError_t cuda_fold(const struct cuda_target *target,
                                 const struct cuda_parts *parts, void *out,
                                 uint64_t n)
{
    const bool late = parts->sum_dtype == FSDP_DTYPE_F32;

    if (parts->n == 0 || parts->n > CUDA_MAX_RANKS) {
        return cudaErrorInvalidValue;
    }
    switch (parts->dtype) {
    case FSDP_DTYPE_F32:
        return fold_as<f32, f32>(target, parts, out, n);
    case FSDP_DTYPE_BF16:
        return late ? fold_as<bf16, f32>(target, parts, out, n)
                    : fold_as<bf16, bf16>(target, parts, out, n);
    case FSDP_DTYPE_F16:
        return late ? fold_as<f16, f32>(target, parts, out, n)
                    : fold_as<f16, f16>(target, parts, out, n);
    default:
        return cudaErrorInvalidValue;
    }
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
    return load(fold_in_order<f32, f32>, fold_balanced<f32, f32>,
                fold_in_order<bf16, bf16>, fold_balanced<bf16, bf16>,
                fold_in_order<bf16, f32>, fold_balanced<bf16, f32>,
                fold_in_order<f16, f16>, fold_balanced<f16, f16>,
                fold_in_order<f16, f32>, fold_balanced<f16, f32>);
}
