/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_attention.cuh - what attention and its backward share: a head, tiles of
 * scores, and sums of rows with weights from a tile.
 *
 * Nothing of the size time x time is ever kept: a block has a tile of rows of
 * the result and walks the other index in tiles, ascending, so that every sum
 * is one chain in the order of op.h. Scores are computed again where they are
 * needed; they are the same bits each time.
 *
 * A block has as many columns of the result as its tile has; wider heads take
 * several blocks.
 */
#ifndef FSDP_CTS_CUDA_ATTENTION_CUH
#define FSDP_CTS_CUDA_ATTENTION_CUH

#include "cuda_math.cuh"
#include "cuda_tile.cuh"

#include <limits.h>

/* Square tiles of scores: 64 a side or, for small products, 16. A thread of
 * scores_64 has 8 x 8 scores, and as many sums; one of lean_64 and ragged_64
 * has 8 x 4, for kernels in which it has two sums, or looks at each element
 * that it reads. */
using scores_64 = tile_of<8, 8, 8, 8, 16, 4>;
using lean_64 = tile_of<8, 16, 8, 4, 16, 3>;
using ragged_64 = tile_of<8, 16, 8, 4, 16, 2>;
using scores_16 = tile_of<8, 16, 2, 1, 16, 3>;

/* The numbers of an attention operator, and where its tensors are. Rows of qkv
 * are `stride` floats apart, rows of o and its gradient `o_stride`, rows of
 * stat `stat_stride`. */
struct attention {
    unsigned int time, dim;
    uint64_t batch, heads, stride, o_stride, stat_stride;
    float scale;
    const float *qkv, *o, *stat, *d_o;
    float *out, *out_stat;
};

static inline struct attention attention_of(const struct fsdp_op *op)
{
    struct attention a = {};

    a.time = (unsigned int)op->dim[1];
    a.dim = (unsigned int)op->dim[3];
    a.batch = op->dim[0];
    a.heads = op->dim[2];
    a.o_stride = op->dim[2] * op->dim[3];
    a.stride = 3 * a.o_stride;
    a.stat_stride = 2 * a.heads;
    a.scale = op->f[0];
    a.qkv = in_of<float>(op, 0);
    return a;
}

/* Where a head of a sequence begins in qkv, in o and in stat. */
struct head {
    uint64_t at, o_at, stat_at;
};

/* Which part of which head a block works on. */
struct part {
    struct head head;
    unsigned int x0, column;
};

template <class T>
static __device__ __forceinline__ struct part
part_of(const struct attention &op)
{
    const unsigned int tiles = (op.time + T::rows - 1) / T::rows;
    const unsigned int chunks =
        op.dim > 0 ? (op.dim + T::columns - 1) / T::columns : 1;
    const unsigned int rest = blockIdx.x / chunks;
    const uint64_t row = rest / tiles / op.heads * op.time;
    const uint64_t h = rest / tiles % op.heads;

    return {{row * op.stride + h * op.dim, row * op.o_stride + h * op.dim,
             row * op.stat_stride + 2 * h},
            rest % tiles * T::rows,
            blockIdx.x % chunks * T::columns};
}

template <class T> static uint64_t blocks_of(const struct attention *op)
{
    return op->batch * op->heads * divide_up(op->time, T::rows) *
           divide_up(op->dim, T::columns);
}

/* Rows of a head in a matrix. */
struct rows_of {
    const float *p;
    uint64_t stride;
};

/* Shared memory of a block: slices of two operands, and a tile of scores or of
 * the weights made from them; row x and column y of it are at [y][x]. */
template <class T> struct attention_memory {
    slices<T> pair;
    float tile[T::columns][T::rows + GAP];
};

/* s[x][y] = chain(d; x_row[d], y_row[d]), d < dim. */
template <class T, bool WHOLE>
static __device__ __forceinline__ void
chains(float (&s)[T::R][T::S], const struct attention &op, struct rows_of x,
       unsigned int x0, struct rows_of y, unsigned int y0,
       attention_memory<T> &memory, unsigned int &turn)
{
#pragma unroll
    for (int r = 0; r < T::R; r++) {
#pragma unroll
        for (int c = 0; c < T::S; c++) {
            s[r][c] = 0.0f;
        }
    }
    multiply<T, WHOLE>(s, left_of<T, true, WHOLE>(x.p, x.stride, x0, op.time),
                       right_of<T, true, WHOLE>(y.p, y.stride, y0, op.time),
                       op.dim, memory.pair, turn);
}

/* Writes the thread's scores to the tile. */
template <class T>
static __device__ __forceinline__ void put_scores(attention_memory<T> &memory,
                                                  const float (&s)[T::R][T::S])
{
#pragma unroll
    for (int c = 0; c < T::S; c++) {
        float own[T::R];

#pragma unroll
        for (int r = 0; r < T::R; r++) {
            own[r] = s[r][c];
        }
        store_own<T::down, T::R>(memory.tile[column_of<T>(c)], T::y(), own);
    }
}

/* tile[y][x] = f(tile[y][x], x, y): the threads share the work evenly, which
 * keeps long functions out of unrolled code. */
template <class T, class F>
static __device__ __forceinline__ void each_score(attention_memory<T> &memory,
                                                  F f)
{
    const unsigned int x = threadIdx.x % T::rows;

#pragma unroll 4
    for (unsigned int y = threadIdx.x / T::rows; y < T::columns;
         y += T::threads / T::rows) {
        memory.tile[y][x] = f(memory.tile[y][x], x, y);
    }
}

/* Adds one term to acc, in the rows r where take[r]. */
template <class T>
static __device__ __forceinline__ void
step_where(float (&acc)[T::R][T::S], const float *a, const float *b,
           const bool (&take)[T::R])
{
    float u[T::R];
    float v[T::S];

    read_own<T::down, T::R>(u, a, T::y());
    read_own<T::across, T::S>(v, b, T::x());
#pragma unroll
    for (int r = 0; r < T::R; r++) {
#pragma unroll
        for (int s = 0; s < T::S; s++) {
            acc[r][s] = take[r] ? fmaf(u[r], v[s], acc[r][s]) : acc[r][s];
        }
    }
}

/*
 * Goes on with acc[x][d] as chain(y; tile[y][x], row[y][d]), over the y of the
 * tile that belong to the sum of row x: y <= x if BELOW, else y >= x. Other
 * terms are left out, not added as 0: that would turn -0 into +0, and infinity
 * into NaN. Earlier stores to the tile are visible here.
 */
template <class T, bool WHOLE, bool BELOW>
static __device__ __forceinline__ void
add_rows(float (&acc)[T::R][T::S], const struct attention &op,
         struct rows_of rows, const struct part &at, unsigned int y0,
         attention_memory<T> &memory, unsigned int &turn)
{
    const unsigned int all = at_most(T::columns, op.time - y0);
    right_of<T, false, WHOLE> b(rows.p + y0 * rows.stride, rows.stride,
                                at.column, op.dim);
    float4 next[right_of<T, false, WHOLE>::passes] = {};

    b.fetch(next, all);
    for (unsigned int done = 0; done < all; done += T::depth) {
        const slice<T::columns, T::depth> &right = memory.pair.right[turn];

        b.put(memory.pair.right[turn], next);
        __syncthreads();
        if (done + T::depth < all) {
            b.fetch(next, all - done - T::depth);
        }
        if (y0 != at.x0 && (WHOLE || done + T::depth <= all)) {
#pragma unroll
            for (unsigned int d = 0; d < T::depth; d++) {
                step<T>(acc, memory.tile[done + d], right.x[d]);
            }
        } else {
#pragma unroll 1
            for (unsigned int d = 0; d < T::depth && done + d < all; d++) {
                bool take[T::R];

#pragma unroll
                for (int r = 0; r < T::R; r++) {
                    take[r] = y0 != at.x0 || (BELOW ? done + d <= row_of<T>(r)
                                                    : done + d >= row_of<T>(r));
                }
                step_where<T>(acc, memory.tile[done + d], right.x[d], take);
            }
        }
        turn = 1 - turn;
    }
}

static inline bool attention_fits(const struct fsdp_op *op)
{
    return op->dim[1] <= INT_MAX && op->dim[3] <= INT_MAX;
}

/* Which kernel: one with tiles of 64 where these fill the GPU (EVEN: no part of
 * a tile is outside, so that it need not look; RAGGED: it looks), else one with
 * tiles of 16. */
enum attention_shape {
    SMALL,
    RAGGED,
    EVEN
};

static enum attention_shape shape_of(const struct attention *op,
                                     const struct cuda_target *target)
{
    const uintptr_t at = reinterpret_cast<uintptr_t>(op->qkv) |
                         reinterpret_cast<uintptr_t>(op->o) |
                         reinterpret_cast<uintptr_t>(op->d_o) |
                         reinterpret_cast<uintptr_t>(op->out);

    if (blocks_of<scores_64>(op) < target->processors) {
        return SMALL;
    }
    return op->time % scores_64::rows == 0 &&
                   op->dim % scores_64::columns == 0 && at % sizeof(float4) == 0
               ? EVEN
               : RAGGED;
}

#endif
