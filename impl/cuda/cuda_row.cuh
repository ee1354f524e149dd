/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_row.cuh - one warp for each row; lanes() of op.h are the lanes of the
 * warp. Rows of 256, 512, 768 and 1024 elements are read once, all at the same
 * time, and stay in registers; others are read from memory each time.
 */
#ifndef FSDP_CTS_CUDA_ROW_CUH
#define FSDP_CTS_CUDA_ROW_CUH

#include "cuda_common.cuh"

/* f(i, c) for the columns c of a lane, ascending; c is its i-th. HELD: how many
 * there are, if that is known; else 0. */
template <int HELD, class F>
static __device__ __forceinline__ void each_column(uint64_t n, F f)
{
    if constexpr (HELD > 0) {
#pragma unroll
        for (unsigned int i = 0; i < HELD; i++) {
            f(i, warp_lane() + i * WARP);
        }
    } else {
        for (uint64_t c = warp_lane(); c < n; c += WARP) {
            f(0u, c);
        }
    }
}

/* A row of n floats. */
template <int HELD> struct row_of_floats {
    const float *p;
    float held[HELD > 0 ? HELD : 1];

    __device__ __forceinline__ row_of_floats(const float *row, uint64_t n)
        : p(row)
    {
        if constexpr (HELD > 0) {
            each_column<HELD>(
                n, [&](unsigned int i, uint64_t c) { held[i] = p[c]; });
        }
    }
    __device__ __forceinline__ float at(unsigned int i, uint64_t c) const
    {
        return HELD > 0 ? held[i] : p[c];
    }
};

/* Of kernels for 0 (any), 8, 16, 24 and 32 elements a lane, the one for `rows`
 * rows of n. */
template <class... P, class... Arguments>
static cudaError_t
launch_rows(const struct cuda_target *target, uint64_t rows, uint64_t n,
            void (*any)(P...), void (*of_8)(P...), void (*of_16)(P...),
            void (*of_24)(P...), void (*of_32)(P...), Arguments... arguments)
{
    return launch(target, blocks_for_rows(rows), THREADS,
                  n == 8 * WARP    ? of_8
                  : n == 16 * WARP ? of_16
                  : n == 24 * WARP ? of_24
                  : n == 32 * WARP ? of_32
                                   : any,
                  rows, n, arguments...);
}

#endif
