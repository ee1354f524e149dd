/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_attention.cu - causal self-attention, streaming: a block walks the keys
 * of its queries twice, for the maximum and for the sums.
 */
#include "cuda_attention.cuh"

#include <fsdp/arith/exp.h>

/* Maxima of a thread's rows over the keys of one tile. */
template <int R>
static __device__ __forceinline__ void
take_maximum(float (&m)[R], const float (&s)[R][R], float scale, uint64_t i0,
             uint64_t j0)
{
    const unsigned int ty = threadIdx.x / SIDE;
    const unsigned int tx = threadIdx.x % SIDE;

#pragma unroll
    for (int r = 0; r < R; r++) {
#pragma unroll
        for (int c = 0; c < R; c++) {
            if (j0 + place<R>(tx, c) <= i0 + place<R>(ty, r)) {
                m[r] = maximum(m[r], s[r][c] * scale);
            }
        }
    }
}

/* exp(s - m) into the tile of weights; 0 where a key is none. */
template <int R>
static __device__ __forceinline__ void
put_weights(attention_memory<R> &memory, const float (&s)[R][R],
            const float (&m)[R], float scale, uint64_t i0, uint64_t j0)
{
    const unsigned int ty = threadIdx.x / SIDE;
    const unsigned int tx = threadIdx.x % SIDE;

#pragma unroll
    for (int r = 0; r < R; r++) {
#pragma unroll
        for (int c = 0; c < R; c++) {
            const unsigned int x = place<R>(ty, r);
            const unsigned int y = place<R>(tx, c);

            memory.weight[x][y] =
                j0 + y <= i0 + x ? fsdp_expf(s[r][c] * scale - m[r]) : 0.0f;
        }
    }
}

/* What a block has made: its rows of o, divided by their sums, and stat. */
template <int R>
static __device__ __forceinline__ void
put_result(const struct attention &op, const struct head &head,
           const struct part &at, const float (&acc)[R][PER_THREAD],
           const float (&m)[R], const float *sum)
{
    const unsigned int ty = threadIdx.x / SIDE;
    const unsigned int tx = threadIdx.x % SIDE;

#pragma unroll
    for (int r = 0; r < R; r++) {
        const unsigned int x = place<R>(ty, r);
        const uint64_t i = at.x0 + x;

#pragma unroll
        for (int c = 0; c < PER_THREAD; c++) {
            const uint64_t d = at.column + tx * PER_THREAD + (unsigned int)c;

            if (i < head.time && d < head.dim) {
                op.out[head.o_at + i * head.o_stride + d] = acc[r][c] / sum[x];
            }
        }
        if (i < head.time && at.column == 0 && tx == 0) {
            float *stat = op.out_stat + head.stat_at + i * head.stat_stride;

            stat[0] = m[r];
            stat[1] = sum[x];
        }
    }
}

template <int R>
static __global__ void __launch_bounds__(SIDE *SIDE, 2)
    attend(const __grid_constant__ struct attention op)
{
    constexpr unsigned int TILE = SIDE * R;
    __shared__ __align__(16) attention_memory<R> memory;
    __shared__ float sum[TILE];
    const struct part at = part_of(op, TILE);
    const struct head head = head_of(op, at.head);
    const float *q = op.qkv + head.at;
    const float *k = q + head.o_stride;
    const float *v = k + head.o_stride;
    const unsigned int t = threadIdx.x;
    const uint64_t last = at.x0 + TILE < head.time ? at.x0 + TILE : head.time;
    const operand<R, true> queries(q, head.stride, at.x0, head.time);
    float s[R][R];
    float m[R];
    float acc[R][PER_THREAD] = {};
    float l = 0.0f;

#pragma unroll
    for (int r = 0; r < R; r++) {
        m[r] = -INFINITY;
    }
    for (uint64_t j0 = 0; j0 < last; j0 += TILE) {
        const operand<R, true> keys(k, head.stride, j0, head.time);

        chains<R>(s, queries, keys, head.dim, memory);
        take_maximum<R>(m, s, op.scale, at.x0, j0);
    }
#pragma unroll
    for (int r = 0; r < R; r++) {
#pragma unroll
        for (int o = SIDE / 2; o > 0; o /= 2) {
            m[r] = maximum(m[r], __shfl_xor_sync(WHOLE_WARP, m[r], o));
        }
    }
    for (uint64_t j0 = 0; j0 < last; j0 += TILE) {
        const operand<R, true> keys(k, head.stride, j0, head.time);

        chains<R>(s, queries, keys, head.dim, memory);
        __syncthreads(); /* the weights before were used */
        put_weights<R>(memory, s, m, op.scale, at.x0, j0);
        fetch_rows<R>(memory, v, head.stride, j0, head.time, at.column,
                      head.dim);
        __syncthreads();
        add_rows<R>(acc, memory, at.x0, j0, [](uint64_t i) {
            return bounds{0, i + 1};
        });
        for (unsigned int y = 0; t < TILE && y < TILE && j0 + y <= at.x0 + t;
             y++) {
            l = l + memory.weight[t][y];
        }
    }
    if (t < TILE) {
        sum[t] = l;
    }
    __syncthreads();
    put_result<R>(op, head, at, acc, m, sum);
}

/* A head of no columns still has its statistics: with one column of none, its
 * scores are sums of nothing. */
static uint64_t blocks_of(const struct attention *op, uint64_t tile)
{
    return op->dim > 0 ? attention_blocks(op, tile)
                       : op->batch * op->heads * divide_up(op->time, tile);
}

extern "C" cudaError_t cuda_op_attention(const struct fsdp_op *op,
                                         const struct cuda_target *target)
{
    const struct attention a = {op->dim[0],
                                op->dim[1],
                                op->dim[2],
                                op->dim[3],
                                op->f[0],
                                in_of<float>(op, 0),
                                NULL,
                                NULL,
                                NULL,
                                out_of<float>(op, 0),
                                out_of<float>(op, 1)};

    return large_tiles(&a, target)
               ? launch(target, blocks_of(&a, SIDE * 4), SIDE * SIDE, attend<4>,
                        a)
               : launch(target, blocks_of(&a, SIDE), SIDE * SIDE, attend<1>, a);
}

extern "C" cudaError_t cuda_load_attention(void)
{
    return load(attend<4>, attend<1>);
}
