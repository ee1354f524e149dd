/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_tile.cuh - how the threads of a block make a tile of a product, R x S
 * elements each, every element one chain. Slices of both operands go through
 * registers to shared memory, which holds two, so that the next slice is on its
 * way from memory while this one is used.
 *
 * Why these shapes: a step of R x S fused multiply-adds reads R + S floats of
 * shared memory, as vectors. The threads of a warp stand 4 x 8, the first two
 * down, so that neighbours share what they read and a warp reads each vector
 * once.
 */
#ifndef FSDP_CTS_CUDA_TILE_CUH
#define FSDP_CTS_CUDA_TILE_CUH

#include "cuda_common.cuh"

enum {
    GAP = 4 /* floats behind a row in shared memory, against conflicts */
};

/* DOWN x ACROSS threads, DEPTH terms a slice. RESIDENT_: how many blocks are to
 * fit into a multiprocessor, which bounds the registers. */
template <int DOWN_, int ACROSS_, int R_, int S_, int DEPTH_, int RESIDENT_>
struct tile_of {
    static constexpr int down = DOWN_, across = ACROSS_, R = R_, S = S_;
    static constexpr int resident = RESIDENT_;
    static constexpr unsigned int depth = DEPTH_;
    static constexpr unsigned int threads = DOWN_ * ACROSS_;
    static constexpr unsigned int rows = DOWN_ * R_, columns = ACROSS_ * S_;

    /* Where the thread stands. */
    static __device__ __forceinline__ unsigned int y()
    {
        const unsigned int lane = threadIdx.x % WARP;

        return threadIdx.x / WARP / (across / 8) * 4 + lane / 16 * 2 + lane % 2;
    }
    static __device__ __forceinline__ unsigned int x()
    {
        return threadIdx.x / WARP % (across / 8) * 8 + threadIdx.x % 16 / 2;
    }
};

/* Element number i of the N that thread t of T has along a side of the tile:
 * fours of neighbours, and what is left of N, one or two. */
template <int T, int N>
static __device__ __forceinline__ unsigned int place(unsigned int t, int i)
{
    constexpr int fours = N / 4 * 4;

    return i < fours ? (unsigned int)(i / 4 * 4 * T + i % 4) + t * 4
                     : (unsigned int)(fours * T + i - fours) + t * (N - fours);
}

/* Row and column of a thread's element (r, s) in the tile. */
template <class T> static __device__ __forceinline__ unsigned int row_of(int r)
{
    return place<T::down, T::R>(T::y(), r);
}

template <class T>
static __device__ __forceinline__ unsigned int column_of(int s)
{
    return place<T::across, T::S>(T::x(), s);
}

/* A thread's N elements of a row in shared memory. */
template <int T, int N>
static __device__ __forceinline__ void
read_own(float (&to)[N], const float *row, unsigned int t)
{
#pragma unroll
    for (int i = 0; i + 4 <= N; i += 4) {
        const float4 v =
            *reinterpret_cast<const float4 *>(row + place<T, N>(t, i));

        to[i] = v.x;
        to[i + 1] = v.y;
        to[i + 2] = v.z;
        to[i + 3] = v.w;
    }
    if constexpr (N % 4 == 2) {
        const float2 v =
            *reinterpret_cast<const float2 *>(row + place<T, N>(t, N - 2));

        to[N - 2] = v.x;
        to[N - 1] = v.y;
    } else if constexpr (N % 4 == 1) {
        to[N - 1] = row[place<T, N>(t, N - 1)];
    }
}

/* Writes them, to shared memory. */
template <int T, int N>
static __device__ __forceinline__ void store_own(float *row, unsigned int t,
                                                 const float (&from)[N])
{
#pragma unroll
    for (int i = 0; i + 4 <= N; i += 4) {
        *reinterpret_cast<float4 *>(row + place<T, N>(t, i)) = {
            from[i], from[i + 1], from[i + 2], from[i + 3]};
    }
#pragma unroll
    for (int i = N / 4 * 4; i < N; i++) {
        row[place<T, N>(t, i)] = from[i];
    }
}

/* Writes them to global memory, which is aligned as vectors need it. The
 * compiler would take a plain assignment of a vector apart. */
template <int T, int N>
static __device__ __forceinline__ void write_own(float *row, unsigned int t,
                                                 const float (&from)[N])
{
#pragma unroll
    for (int i = 0; i + 4 <= N; i += 4) {
        __stwb(reinterpret_cast<float4 *>(row + place<T, N>(t, i)),
               {from[i], from[i + 1], from[i + 2], from[i + 3]});
    }
    if constexpr (N % 4 == 2) {
        __stwb(reinterpret_cast<float2 *>(row + place<T, N>(t, N - 2)),
               {from[N - 2], from[N - 1]});
    } else if constexpr (N % 4 == 1) {
        row[place<T, N>(t, N - 1)] = from[N - 1];
    }
}

/* One term of each row (or column) of the tile, for all terms of a slice. */
template <unsigned int X, unsigned int DEPTH> struct slice {
    float x[DEPTH][X + GAP];
};

template <class T> struct slices {
    slice<T::rows, T::depth> left[2];
    slice<T::columns, T::depth> right[2];
};

/* The lesser of how much is left and how much a tile takes. */
static __device__ __forceinline__ unsigned int at_most(unsigned int most,
                                                       uint64_t left)
{
    return left < most ? (unsigned int)left : most;
}

/*
 * An operand of a product, elements (x, k) with x the row of the result for the
 * left one, its column for the right one. K_INNER: k is contiguous. It walks
 * along k, a slice at a time; a thread brings fours of neighbours in memory,
 * `passes` of them.
 *
 * WHOLE: all of the tile is inside, and fours are aligned. Otherwise each
 * element is checked. Elements outside are not read, and the values in their
 * places are never used, because a sum ends where its terms end: adding 0 * 0
 * would turn -0 into +0.
 */
template <unsigned int THREADS_, unsigned int X, unsigned int DEPTH,
          bool K_INNER, bool WHOLE>
struct operand {
    static_assert(DEPTH % 8 == 0 && THREADS_ % DEPTH == 0 && X % 4 == 0, "");
    /* Where k is contiguous, pairs of threads bring 8 terms of a row, the
     * next pair those of the next row, so that they store without conflicts.
     * Else a thread has one term, and fours `wide` threads apart. */
    static constexpr unsigned int wide = K_INNER ? 2 : THREADS_ / DEPTH;
    static constexpr unsigned int high = K_INNER ? THREADS_ / 2 : wide * 4;
    static constexpr unsigned int turns = (X + high - 1) / high;
    static constexpr unsigned int passes = K_INNER ? turns * DEPTH / 8 : turns;

    const float *p;      /* this thread's first element of the next slice */
    uint64_t stride;     /* between neighbours in the other direction */
    unsigned int x_left; /* of the tile: what lies inside */

    /* Rows x of `matrix` from x0 on, of x_end. */
    __device__ __forceinline__ operand(const float *matrix, uint64_t row,
                                       uint64_t x0, uint64_t x_end)
        : stride(row), x_left(at_most(X, x_end - x0))
    {
        p = matrix + (K_INNER ? (x0 + x_of(0)) * row + k_of(0)
                              : x0 + x_of(0) + k_of(0) * row);
    }
    /* Which four of a slice the thread brings in a pass: its first element. */
    static __device__ __forceinline__ unsigned int x_of(unsigned int pass)
    {
        return (K_INNER ? threadIdx.x / wide : threadIdx.x % wide * 4) +
               pass % turns * high;
    }
    static __device__ __forceinline__ unsigned int k_of(unsigned int pass)
    {
        return K_INNER ? threadIdx.x % wide * 4 + pass / turns * 8
                       : threadIdx.x / wide;
    }
    /* Whether there is one. */
    static __device__ __forceinline__ bool has(unsigned int pass)
    {
        return X % high == 0 || x_of(pass) < X;
    }
    /* Takes the next slice, of which k_left terms are inside. */
    __device__ __forceinline__ void fetch(float4 (&got)[passes],
                                          unsigned int k_left)
    {
#pragma unroll
        for (unsigned int i = 0; i < passes; i++) {
            const float *from =
                p + (K_INNER ? (i % turns * high) * stride + i / turns * 8
                             : i * high);

            if (WHOLE && has(i)) {
                got[i] = *reinterpret_cast<const float4 *>(from);
            } else if (!WHOLE && has(i)) {
                got[i].x = inside(i, 0, k_left) ? from[0] : 0.0f;
                got[i].y = inside(i, 1, k_left) ? from[1] : 0.0f;
                got[i].z = inside(i, 2, k_left) ? from[2] : 0.0f;
                got[i].w = inside(i, 3, k_left) ? from[3] : 0.0f;
            }
        }
        p += K_INNER ? DEPTH : DEPTH * stride;
    }
    __device__ __forceinline__ bool inside(unsigned int pass, unsigned int j,
                                           unsigned int k_left) const
    {
        return x_of(pass) + (K_INNER ? 0 : j) < x_left &&
               k_of(pass) + (K_INNER ? j : 0) < k_left;
    }
    static __device__ __forceinline__ void put(slice<X, DEPTH> &to,
                                               const float4 (&got)[passes])
    {
#pragma unroll
        for (unsigned int i = 0; i < passes; i++) {
            const unsigned int x = x_of(i);
            const unsigned int k = k_of(i);

            if (!has(i)) {
                continue;
            }
            if (K_INNER) {
                to.x[k][x] = got[i].x;
                to.x[k + 1][x] = got[i].y;
                to.x[k + 2][x] = got[i].z;
                to.x[k + 3][x] = got[i].w;
            } else {
                *reinterpret_cast<float4 *>(&to.x[k][x]) = got[i];
            }
        }
    }
};

template <class T, bool K_INNER, bool WHOLE>
using left_of = operand<T::threads, T::rows, T::depth, K_INNER, WHOLE>;
template <class T, bool K_INNER, bool WHOLE>
using right_of = operand<T::threads, T::columns, T::depth, K_INNER, WHOLE>;

/* Adds one term to the sums of a thread: acc += a's element times b's, each. */
template <class T>
static __device__ __forceinline__ void step(float (&acc)[T::R][T::S],
                                            const float *a, const float *b)
{
    float u[T::R];
    float v[T::S];

    read_own<T::down, T::R>(u, a, T::y());
    read_own<T::across, T::S>(v, b, T::x());
#pragma unroll
    for (int i = 0; i < T::R; i++) {
#pragma unroll
        for (int j = 0; j < T::S; j++) {
            acc[i][j] = fmaf(u[i], v[j], acc[i][j]);
        }
    }
}

/*
 * Goes on with acc by k terms of a and b. `turn` says which of the two slices
 * is the next one. The other was read before this one's barrier, so that there
 * is one barrier for each slice, and none between two products.
 */
template <class T, bool WHOLE, class A, class B>
static __device__ __forceinline__ void
multiply(float (&acc)[T::R][T::S], A a, B b, unsigned int k, slices<T> &memory,
         unsigned int &turn)
{
    float4 next_a[A::passes] = {};
    float4 next_b[B::passes] = {};

    a.fetch(next_a, k);
    b.fetch(next_b, k);
    while (k > 0) {
        const slice<T::rows, T::depth> &left = memory.left[turn];
        const slice<T::columns, T::depth> &right = memory.right[turn];
        const unsigned int terms = WHOLE ? T::depth : at_most(T::depth, k);

        A::put(memory.left[turn], next_a);
        B::put(memory.right[turn], next_b);
        __syncthreads();
        k -= terms;
        if (k > 0) {
            a.fetch(next_a, k);
            b.fetch(next_b, k);
        }
        if (terms == T::depth) {
#pragma unroll
            for (unsigned int d = 0; d < T::depth; d++) {
                step<T>(acc, left.x[d], right.x[d]);
            }
        } else {
#pragma unroll 1
            for (unsigned int d = 0; d < terms; d++) {
                step<T>(acc, left.x[d], right.x[d]);
            }
        }
        turn = 1 - turn;
    }
}

#endif
