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
 * A block has COLUMNS columns of the result; wider heads take several blocks.
 */
#ifndef CUDA_ATTENTION_CUH
#define CUDA_ATTENTION_CUH

#include "cuda_tile.cuh"

enum {
    PER_THREAD = 4,              /* columns of the result */
    COLUMNS = SIDE * PER_THREAD, /* of a block */
};

/* The numbers of an attention operator, and where its tensors are. */
struct attention {
    uint64_t batch, time, heads, dim;
    float scale;
    const float *qkv, *o, *stat, *d_o;
    float *out, *out_stat;
};

/* One head of one sequence. Rows of qkv are `stride` floats apart, rows of o
 * and its gradient `o_stride`, those of stat `stat_stride`. */
struct head {
    uint64_t time, dim, stride, o_stride, stat_stride;
    uint64_t at, o_at, stat_at; /* where it begins */
};

static __device__ __forceinline__ struct head
head_of(const struct attention &op, uint64_t number)
{
    const uint64_t row = number / op.heads * op.time;
    const uint64_t h = number % op.heads;
    const uint64_t width = op.heads * op.dim;

    return {op.time,
            op.dim,
            3 * width,
            width,
            2 * op.heads,
            row * 3 * width + h * op.dim,
            row * width + h * op.dim,
            (row * op.heads + h) * 2};
}

/* Which part of which head a block works on. */
struct part {
    uint64_t head, x0, column;
};

static __device__ __forceinline__ struct part
part_of(const struct attention &op, unsigned int tile)
{
    const uint64_t tiles = (op.time + tile - 1) / tile;
    const uint64_t chunks = op.dim > 0 ? (op.dim + COLUMNS - 1) / COLUMNS : 1;
    const uint64_t rest = blockIdx.x / chunks;

    return {rest / tiles, rest % tiles * tile, blockIdx.x % chunks * COLUMNS};
}

static inline uint64_t attention_blocks(const struct attention *op,
                                        uint64_t tile)
{
    return op->batch * op->heads * divide_up(op->time, tile) *
           divide_up(op->dim, COLUMNS);
}

/* Shared memory of a block: slices of two operands, a tile of weights, rows
 * that are summed with them. */
template <int R> struct attention_memory {
    slice<R> left, right;
    float weight[SIDE * R][SIDE * R + 1];
    float row[SIDE * R][COLUMNS + GAP];
};

/* acc[x][y] = chain(d; a_x[d], b_y[d]), d < dim. */
template <int R>
static __device__ __forceinline__ void
chains(float (&acc)[R][R], operand<R, true> a, operand<R, true> b, uint64_t dim,
       attention_memory<R> &memory)
{
    constexpr unsigned int depth = slices<R>::depth;
    const unsigned int ty = threadIdx.x / SIDE;
    const unsigned int tx = threadIdx.x % SIDE;
    float got_a[slices<R>::own];
    float got_b[slices<R>::own];

#pragma unroll
    for (int i = 0; i < R; i++) {
#pragma unroll
        for (int j = 0; j < R; j++) {
            acc[i][j] = 0.0f;
        }
    }
    for (unsigned int rest = (unsigned int)dim; rest > 0;) {
        const unsigned int terms = rest < depth ? rest : depth;

        a.fetch(got_a, rest);
        b.fetch(got_b, rest);
        rest -= terms;
        __syncthreads(); /* the slices before were read */
        a.put(memory.left, got_a);
        b.put(memory.right, got_b);
        __syncthreads();
        if (terms == depth) {
#pragma unroll
            for (unsigned int d = 0; d < depth; d++) {
                step<R>(acc, memory.left.x[d], memory.right.x[d], ty, tx);
            }
        } else {
            for (unsigned int d = 0; d < terms; d++) {
                step<R>(acc, memory.left.x[d], memory.right.x[d], ty, tx);
            }
        }
    }
}

/* Brings COLUMNS columns of rows y0, ... of a matrix. */
template <int R>
static __device__ __forceinline__ void
fetch_rows(attention_memory<R> &memory, const float *from, uint64_t stride,
           uint64_t y0, uint64_t y_end, uint64_t column, uint64_t dim)
{
    for (unsigned int e = threadIdx.x; e < SIDE * R * COLUMNS;
         e += SIDE * SIDE) {
        const uint64_t y = y0 + e / COLUMNS;
        const uint64_t d = column + e % COLUMNS;

        memory.row[e / COLUMNS][e % COLUMNS] =
            y < y_end && d < dim ? from[y * stride + d] : 0.0f;
    }
}

/* The y of a tile that belong to the sum of row x: those in [first, end). */
struct bounds {
    uint64_t first, end;
};

/*
 * acc[r][c] goes on as chain(y; weight[x_r][y], row[y][column c]) over the y
 * of the tile that `of(x_r)` names. Terms outside are left out, not added as
 * 0: that would turn -0 into +0, and infinity into NaN.
 */
template <int R, class F>
static __device__ __forceinline__ void
add_rows(float (&acc)[R][PER_THREAD], const attention_memory<R> &memory,
         uint64_t x0, uint64_t y0, F of)
{
    const unsigned int ty = threadIdx.x / SIDE;
    const unsigned int tx = threadIdx.x % SIDE;
    struct bounds some[R];

#pragma unroll
    for (int r = 0; r < R; r++) {
        some[r] = of(x0 + place<R>(ty, r));
    }
    for (unsigned int y = 0; y < SIDE * R; y++) {
        const float4 v =
            *reinterpret_cast<const float4 *>(&memory.row[y][tx * PER_THREAD]);

#pragma unroll
        for (int r = 0; r < R; r++) {
            const float w = memory.weight[place<R>(ty, r)][y];

            if (y0 + y >= some[r].first && y0 + y < some[r].end) {
                acc[r][0] = fmaf(w, v.x, acc[r][0]);
                acc[r][1] = fmaf(w, v.y, acc[r][1]);
                acc[r][2] = fmaf(w, v.z, acc[r][2]);
                acc[r][3] = fmaf(w, v.w, acc[r][3]);
            }
        }
    }
}

/* Large tiles where they fill the GPU. Bits do not depend on it. */
static inline bool large_tiles(const struct attention *op,
                               const struct cuda_target *target)
{
    return attention_blocks(op, SIDE * 4) >= target->processors;
}

#endif
