/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_gemm.cu - GEMM and GEMM_GRAD. Every element is one chain over k: no
 * split of k, no second accumulator, no atomics. A block has a tile of C in
 * its registers and walks k in slices (cuda_tile.cuh).
 */
#include "cuda_tile.cuh"

#include <limits.h>

enum {
    BAND = 16, /* tiles down that are walked before the next column */
    GRAIN_THREADS =
        128 /* of a block that has grains: a part of each a thread */
};

/* The product C[m,n] of A and B, given as A_K_INNER and B_K_INNER say. */
struct product {
    uint64_t m, n;
    unsigned int k;
    const float *a, *b;
    uint64_t a_stride, b_stride;
    float *c;
};

/*
 * Tiles by their purpose. The large one has the most arithmetic for each byte.
 * The flat one is a quarter of it, so that gradients of weights, long sums for
 * few elements, divide evenly among multiprocessors. The small one is for small
 * products. Bits do not depend on the choice.
 */
using large_tile = tile_of<8, 16, 16, 8, 8, 2>; /* 128 x 128 */
using flat_tile = tile_of<16, 8, 6, 6, 16, 4>;  /* 96 x 48 */
using small_tile = tile_of<8, 8, 4, 4, 16, 8>;  /* 32 x 32 */

/* Where tile number `tile` begins. Bands of tiles are walked down, so that
 * tiles that are made at the same time share rows and columns in the cache. */
struct place_of_tile {
    unsigned int i0, j0;
};

template <class T>
static __device__ __forceinline__ struct place_of_tile
place_of(const struct product &p, unsigned int tile)
{
    const unsigned int down = (unsigned int)((p.m + T::rows - 1) / T::rows);
    const unsigned int across =
        (unsigned int)((p.n + T::columns - 1) / T::columns);
    const unsigned int band = tile / (BAND * across) * BAND;
    const unsigned int height = at_most(BAND, down - band);
    const unsigned int in_band = tile % (BAND * across);

    return {(band + in_band % height) * T::rows, in_band / height * T::columns};
}

template <class T, bool WHOLE>
static __device__ __forceinline__ void put_tile(const struct product &p,
                                                struct place_of_tile at,
                                                const float (&acc)[T::R][T::S])
{
#pragma unroll
    for (int r = 0; r < T::R; r++) {
        const uint64_t i = at.i0 + row_of<T>(r);

        if constexpr (WHOLE) {
            write_own<T::across, T::S>(p.c + i * p.n + at.j0, T::x(), acc[r]);
        } else {
#pragma unroll
            for (int s = 0; s < T::S; s++) {
                const uint64_t j = at.j0 + column_of<T>(s);

                if (i < p.m && j < p.n) {
                    p.c[i * p.n + j] = acc[r][s];
                }
            }
        }
    }
}

/* A block takes every gridDim.x-th tile: with as many blocks as the GPU holds
 * at once, no multiprocessor has more than one tile more than another. Which
 * one it is at stands in shared memory: the sums need all registers. */
template <class T, bool A_K_INNER, bool B_K_INNER, bool WHOLE>
static __global__ void __launch_bounds__(T::threads, T::resident)
    gemm(const unsigned int tiles, const __grid_constant__ struct product p)
{
    __shared__ __align__(16) slices<T> memory;
    __shared__ unsigned int tile;
    unsigned int turn = 0;

    if (threadIdx.x == 0) {
        tile = blockIdx.x;
    }
    __syncthreads();
    while (tile < tiles) {
        const struct place_of_tile at = place_of<T>(p, tile);
        float acc[T::R][T::S] = {};

        multiply<T, WHOLE>(
            acc, left_of<T, A_K_INNER, WHOLE>(p.a, p.a_stride, at.i0, p.m),
            right_of<T, B_K_INNER, WHOLE>(p.b, p.b_stride, at.j0, p.n), p.k,
            memory, turn);
        put_tile<T, WHOLE>(p, place_of<T>(p, tile), acc);
        __syncthreads(); /* all have read it */
        if (threadIdx.x == 0) {
            tile += gridDim.x;
        }
        __syncthreads();
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

template <class T> static uint64_t tiles_of(const struct product *p)
{
    return divide_up(p->m, T::rows) * divide_up(p->n, T::columns);
}

/* Whether no part of any tile is outside, and fours are aligned. A sum over
 * nothing has no first slice to fetch. */
template <class T> static bool is_whole(const struct product *p)
{
    const uintptr_t at = reinterpret_cast<uintptr_t>(p->a) |
                         reinterpret_cast<uintptr_t>(p->b) |
                         reinterpret_cast<uintptr_t>(p->c);

    return p->m % T::rows == 0 && p->n % T::columns == 0 && p->k > 0 &&
           p->k % T::depth == 0 && at % sizeof(float4) == 0;
}

/* Time until the multiprocessor that has most to do is done, in sixteenths of
 * the large tile's multiply-adds; `each` is what one of this tile's takes. */
template <class T>
static uint64_t costs(const struct cuda_target *target, const struct product *p,
                      uint64_t each)
{
    return divide_up(tiles_of<T>(p), target->processors) * T::rows *
           T::columns * (is_whole<T>(p) ? each : each + each / 4);
}

/* Looking at each element takes registers, which slices of half the depth
 * leave. */
template <class T>
using ragged_of = tile_of<T::down, T::across, T::R, T::S, 8, T::resident>;

template <class T, bool A_K_INNER, bool B_K_INNER>
static cudaError_t run_tiles(const struct cuda_target *target,
                             const struct product *p)
{
    const uint64_t tiles = tiles_of<T>(p);
    const uint64_t most = (uint64_t)target->processors * T::resident;

    if (tiles > INT_MAX) {
        return cudaErrorInvalidConfiguration;
    }
    return launch(target, tiles < most ? tiles : most, T::threads,
                  is_whole<T>(p)
                      ? gemm<T, A_K_INNER, B_K_INNER, true>
                      : gemm<ragged_of<T>, A_K_INNER, B_K_INNER, false>,
                  (unsigned int)tiles, *p);
}

template <bool A_K_INNER, bool B_K_INNER>
static cudaError_t run_product(const struct fsdp_op *op,
                               const struct cuda_target *target)
{
    const uint64_t m = op->dim[0];
    const uint64_t n = op->dim[1];
    const uint64_t k = op->dim[2];
    const struct product p = {m,
                              n,
                              (unsigned int)k,
                              in_of<float>(op, 0),
                              in_of<float>(op, 1),
                              A_K_INNER ? k : m,
                              B_K_INNER ? k : n,
                              out_of<float>(op, 0)};
    const uint64_t of_large = costs<large_tile>(target, &p, 16);
    const uint64_t of_flat = costs<flat_tile>(target, &p, 18);
    const uint64_t of_small = costs<small_tile>(target, &p, 26);

    if (m > INT_MAX || n > INT_MAX || k > INT_MAX) {
        return cudaErrorInvalidValue; /* 8 GB a row or column, and more */
    }
    if constexpr (!A_K_INNER) {
        if (of_flat <= of_large && of_flat <= of_small) {
            return run_tiles<flat_tile, A_K_INNER, B_K_INNER>(target, &p);
        }
    }
    return of_large <= of_small
               ? run_tiles<large_tile, A_K_INNER, B_K_INNER>(target, &p)
               : run_tiles<small_tile, A_K_INNER, B_K_INNER>(target, &p);
}

extern "C" cudaError_t cuda_op_gemm(const struct fsdp_op *op,
                                    const struct cuda_target *target)
{
    return (op->flags & FSDP_OP_TRANSPOSE_B) != 0
               ? run_product<true, true>(op, target)
               : run_product<true, false>(op, target);
}

extern "C" cudaError_t cuda_op_gemm_grad(const struct fsdp_op *op,
                                         const struct cuda_target *target)
{
    const uint64_t elements = op->dim[0] * op->dim[1];
    struct cuda_tree tree;

    if (op->dim[3] == 1) {
        return run_product<false, false>(op, target);
    }
    cuda_tree_make(&tree, (unsigned int)op->dim[3]);
    return launch(target, divide_up(elements, GRAIN_THREADS), GRAIN_THREADS,
                  gemm_grains, op->dim[0], op->dim[1], op->dim[2],
                  (unsigned int)op->dim[3], tree, in_of<float>(op, 0),
                  in_of<float>(op, 1), out_of<float>(op, 0));
}

template <class T, bool A_K_INNER, bool B_K_INNER>
static cudaError_t load_tile(void)
{
    return load(gemm<T, A_K_INNER, B_K_INNER, true>,
                gemm<ragged_of<T>, A_K_INNER, B_K_INNER, false>);
}

template <bool A_K_INNER, bool B_K_INNER> static cudaError_t load_product(void)
{
    cudaError_t status = load_tile<large_tile, A_K_INNER, B_K_INNER>();

    return status == cudaSuccess ? load_tile<small_tile, A_K_INNER, B_K_INNER>()
                                 : status;
}

extern "C" cudaError_t cuda_load_gemm(void)
{
    cudaError_t status = load(gemm_grains);

    status = status == cudaSuccess ? load_product<true, true>() : status;
    status = status == cudaSuccess ? load_product<true, false>() : status;
    status = status == cudaSuccess ? load_product<false, false>() : status;
    return status == cudaSuccess ? load_tile<flat_tile, false, false>()
                                 : status;
}
