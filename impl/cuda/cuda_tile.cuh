/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_tile.cuh - how a block of 16 x 16 threads shares a square tile of a
 * matrix: each thread has R x R of its elements, in groups of up to four
 * neighbours that are read from shared memory as one vector.
 */
#ifndef CUDA_TILE_CUH
#define CUDA_TILE_CUH

#include "cuda_common.cuh"

enum {
    SIDE = 16, /* threads, a side of a block */
    GAP = 4,   /* floats behind a row in shared memory, against conflicts */
};

/* Terms of a product that are loaded at once, and elements of them that a
 * thread brings. Large tiles have no registers to spare. */
template <int R> struct slices {
    static constexpr int depth = R < 8 ? 16 : 8;
    static constexpr int own = SIDE * R * depth / (SIDE * SIDE);
};

/* Row or column number r of thread t's R ones in a tile of SIDE * R. */
template <int R>
static __device__ __forceinline__ unsigned int place(unsigned int t, int r)
{
    constexpr int V = R < 4 ? R : 4;

    return (unsigned int)(r / V * (SIDE * V) + r % V) + t * V;
}

/* A slice of an operand in shared memory: `depth` rows, each with a term of all
 * rows (or columns) of the tile. */
template <int R> struct slice {
    float x[slices<R>::depth][SIDE * R + GAP];
};

/* The lesser of what is left and what a tile takes. */
static __device__ __forceinline__ unsigned int at_most(unsigned int most,
                                                       uint64_t left)
{
    return left < most ? (unsigned int)left : most;
}

/*
 * An operand of a product, elements (x, k) with x the row of the result for
 * the left one, its column for the right one. K_INNER: k is contiguous. It
 * walks along k, a slice at a time. What lies outside is not read; what stands
 * there instead is never used, because a sum ends where its terms end: adding
 * 0 * 0 would turn -0 into +0.
 */
template <int R, bool K_INNER> struct operand {
    static constexpr unsigned int depth = slices<R>::depth;
    static constexpr unsigned int tile = SIDE * R;

    const float *p;      /* this thread's first element of the next slice */
    uint64_t stride;     /* between neighbours in the other direction */
    unsigned int x_left; /* of the tile: what lies inside */

    /* Rows x of `matrix` from x0 on, of x_end. */
    __device__ __forceinline__ operand(const float *matrix, uint64_t row,
                                       uint64_t x0, uint64_t x_end)
        : stride(row), x_left(at_most(tile, x_end - x0))
    {
        p = matrix + (K_INNER ? (x0 + x_of(0)) * row + k_of(0)
                              : x0 + x_of(0) + k_of(0) * row);
    }
    /* Which element of a slice the thread brings as its number i. */
    static __device__ __forceinline__ unsigned int x_of(int i)
    {
        return K_INNER ? threadIdx.x / depth +
                             (unsigned int)i * (SIDE * SIDE / depth)
                       : (threadIdx.x + (unsigned int)i * (SIDE * SIDE)) % tile;
    }
    static __device__ __forceinline__ unsigned int k_of(int i)
    {
        return K_INNER ? threadIdx.x % depth
                       : (threadIdx.x + (unsigned int)i * (SIDE * SIDE)) / tile;
    }
    /* Takes the next slice, of which k_left terms are inside. */
    __device__ __forceinline__ void fetch(float (&got)[slices<R>::own],
                                          unsigned int k_left)
    {
#pragma unroll
        for (int i = 0; i < slices<R>::own; i++) {
            const unsigned int far =
                K_INNER ? x_of(i) - x_of(0) : k_of(i) - k_of(0);

            got[i] =
                x_of(i) < x_left && k_of(i) < k_left ? p[far * stride] : 0.0f;
        }
        p += K_INNER ? depth : depth * stride;
    }
    static __device__ __forceinline__ void
    put(slice<R> &to, const float (&got)[slices<R>::own])
    {
#pragma unroll
        for (int i = 0; i < slices<R>::own; i++) {
            to.x[k_of(i)][x_of(i)] = got[i];
        }
    }
};

/* A thread's R elements of a row of a slice. */
template <int R>
static __device__ __forceinline__ void
read_own(float (&to)[R], const float *row, unsigned int t)
{
    if constexpr (R % 4 == 0) {
#pragma unroll
        for (int r = 0; r < R; r += 4) {
            const float4 four =
                *reinterpret_cast<const float4 *>(row + place<R>(t, r));

            to[r] = four.x;
            to[r + 1] = four.y;
            to[r + 2] = four.z;
            to[r + 3] = four.w;
        }
    } else {
#pragma unroll
        for (int r = 0; r < R; r++) {
            to[r] = row[place<R>(t, r)];
        }
    }
}

/* One term of the sums of a thread: acc += a's element times b's, each. */
template <int R>
static __device__ __forceinline__ void step(float (&acc)[R][R], const float *a,
                                            const float *b, unsigned int ty,
                                            unsigned int tx)
{
    float u[R];
    float v[R];

    read_own<R>(u, a, ty);
    read_own<R>(v, b, tx);
#pragma unroll
    for (int i = 0; i < R; i++) {
#pragma unroll
        for (int j = 0; j < R; j++) {
            acc[i][j] = fmaf(u[i], v[j], acc[i][j]);
        }
    }
}

#endif
