/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_gemm.cu - GEMM and GEMM_GRAD. Every element is one chain over k: no
 * split of k, no second accumulator, no atomics. A block has a tile of C in
 * its registers and walks k in slices, of which the next one is on its way
 * from memory while this one is used.
 */
#include "cuda_tile.cuh"

#include <limits.h>

/* Of a block that has grains: a part of each for each thread. */
enum {
    GRAIN_THREADS = 128
};

template <int R, bool A_K_INNER, bool B_K_INNER>
static __global__ void __launch_bounds__(SIDE *SIDE, 2)
    gemm(const uint64_t m, const uint64_t n, const unsigned int k,
         const float *a, const uint64_t a_stride, const float *b,
         const uint64_t b_stride, float *c)
{
    __shared__ __align__(16) slice<R> left[2];
    __shared__ __align__(16) slice<R> right[2];
    constexpr unsigned int depth = slices<R>::depth;
    const uint64_t columns = (n + SIDE * R - 1) / (SIDE * R);
    const uint64_t i0 = blockIdx.x / columns * (SIDE * R);
    const uint64_t j0 = blockIdx.x % columns * (SIDE * R);
    const unsigned int t = threadIdx.x;
    const unsigned int ty = t / SIDE;
    const unsigned int tx = t % SIDE;
    operand<R, A_K_INNER> from_a(a, a_stride, i0, m);
    operand<R, B_K_INNER> from_b(b, b_stride, j0, n);
    float acc[R][R] = {};
    float next_a[slices<R>::own];
    float next_b[slices<R>::own];
    int now = 0;

    from_a.fetch(next_a, k);
    from_b.fetch(next_b, k);
    for (unsigned int rest = k; rest > 0;) {
        const unsigned int terms = rest < depth ? rest : depth;

        from_a.put(left[now], next_a);
        from_b.put(right[now], next_b);
        __syncthreads();
        rest -= terms;
        from_a.fetch(next_a, rest);
        from_b.fetch(next_b, rest);
        if (terms == depth) {
#pragma unroll
            for (unsigned int d = 0; d < depth; d++) {
                step<R>(acc, left[now].x[d], right[now].x[d], ty, tx);
            }
        } else {
            for (unsigned int d = 0; d < terms; d++) {
                step<R>(acc, left[now].x[d], right[now].x[d], ty, tx);
            }
        }
        now = 1 - now; /* the other pair was read before this barrier */
    }
#pragma unroll
    for (int r = 0; r < R; r++) {
        const uint64_t i = i0 + place<R>(ty, r);

#pragma unroll
        for (int s = 0; s < R; s++) {
            const uint64_t j = j0 + place<R>(tx, s);

            if (i < m && j < n) {
                c[i * n + j] = acc[r][s];
            }
        }
    }
}

/* An element a thread, its grains side by side in shared memory. */
static __global__ void __launch_bounds__(GRAIN_THREADS)
    gemm_grains(const uint64_t m, const uint64_t n, const uint64_t rows,
                const unsigned int grains,
                const __grid_constant__ struct cuda_tree tree, const float *x,
                const float *g, float *w)
{
    __shared__ float part[FSDP_MAX_GRAINS][GRAIN_THREADS];
    const unsigned int t = threadIdx.x;
    const uint64_t at = (uint64_t)blockIdx.x * GRAIN_THREADS + t;
    const uint64_t i = at / n;
    const uint64_t j = at % n;
    uint64_t r = 0;

    if (at >= m * n) {
        return;
    }
    for (unsigned int grain = 0; grain < grains; grain++) {
        const uint64_t end = r + rows / grains;
        float acc = 0.0f;

        for (; r < end; r++) {
            acc = fmaf(x[r * m + i], g[r * n + j], acc);
        }
        part[grain][t] = acc;
    }
    for (unsigned int s = 0; s < tree.n; s++) {
        part[tree.to[s]][t] = part[tree.to[s]][t] + part[tree.from[s]][t];
    }
    w[at] = part[0][t];
}

/* The product C[m,n] of A and B, given as A_K_INNER and B_K_INNER say. */
struct product {
    uint64_t m, n, k;
    const float *a, *b;
    float *c;
};

template <int R, bool A_K_INNER, bool B_K_INNER>
static cudaError_t run_tiles(const struct cuda_target *target,
                             const struct product *p)
{
    uint64_t blocks = divide_up(p->m, SIDE * R) * divide_up(p->n, SIDE * R);

    if (p->k > UINT_MAX) {
        return cudaErrorInvalidValue; /* 16 GB a row, and more */
    }
    return launch(target, blocks, SIDE * SIDE, gemm<R, A_K_INNER, B_K_INNER>,
                  p->m, p->n, (unsigned int)p->k, p->a, A_K_INNER ? p->k : p->m,
                  p->b, B_K_INNER ? p->k : p->n, p->c);
}

/* The largest tile that still gives every multiprocessor one. Bits do not
 * depend on it. */
template <bool A_K_INNER, bool B_K_INNER>
static cudaError_t run_product(const struct cuda_target *target,
                               const struct product *p)
{
    uint64_t tiles_128 = divide_up(p->m, 128) * divide_up(p->n, 128);
    uint64_t tiles_64 = divide_up(p->m, 64) * divide_up(p->n, 64);

    if (tiles_128 >= target->processors) {
        return run_tiles<8, A_K_INNER, B_K_INNER>(target, p);
    }
    if (tiles_64 >= target->processors) {
        return run_tiles<4, A_K_INNER, B_K_INNER>(target, p);
    }
    return run_tiles<2, A_K_INNER, B_K_INNER>(target, p);
}

extern "C" cudaError_t cuda_op_gemm(const struct fsdp_op *op,
                                    const struct cuda_target *target)
{
    const struct product p = {op->dim[0],          op->dim[1],
                              op->dim[2],          in_of<float>(op, 0),
                              in_of<float>(op, 1), out_of<float>(op, 0)};

    return (op->flags & FSDP_OP_TRANSPOSE_B) != 0
               ? run_product<true, true>(target, &p)
               : run_product<true, false>(target, &p);
}

extern "C" cudaError_t cuda_op_gemm_grad(const struct fsdp_op *op,
                                         const struct cuda_target *target)
{
    const struct product p = {op->dim[0],          op->dim[1],
                              op->dim[2],          in_of<float>(op, 0),
                              in_of<float>(op, 1), out_of<float>(op, 0)};
    struct cuda_tree tree;

    if (op->dim[3] == 1) {
        return run_product<false, false>(target, &p);
    }
    cuda_tree_make(&tree, (unsigned int)op->dim[3]);
    return launch(target, divide_up(p.m * p.n, GRAIN_THREADS), GRAIN_THREADS,
                  gemm_grains, p.m, p.n, p.k, (unsigned int)op->dim[3], tree,
                  p.a, p.b, p.c);
}

extern "C" cudaError_t cuda_load_gemm(void)
{
    return load(gemm<8, true, true>, gemm<4, true, true>, gemm<2, true, true>,
                gemm<8, true, false>, gemm<4, true, false>,
                gemm<2, true, false>, gemm<8, false, false>,
                gemm<4, false, false>, gemm<2, false, false>, gemm_grains);
}
