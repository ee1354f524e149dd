/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_attention_backward.cu - the gradients of q, k and v, a kernel each. All
 * three are sums of rows with weights from a tile of scores: dq_i over the
 * keys j <= i, dk_j and dv_j over the queries i >= j.
 */
#include "cuda_attention.cuh"

#include <fsdp/arith/exp.h>

enum gradient {
    OF_QUERY,
    OF_KEY,
    OF_VALUE
};

/* What the weights of a query need: stat, and the chain of do and o. */
template <int R> struct query_facts {
    float m[SIDE * R], l[SIDE * R], big_d[SIDE * R];
};

template <int R>
static __device__ __forceinline__ void
fetch_facts(query_facts<R> &facts, const struct attention &op,
            const struct head &head, uint64_t i0)
{
    const unsigned int t = threadIdx.x;
    const uint64_t i = i0 + t;
    float sum = 0.0f;

    if (t >= SIDE * R || i >= head.time) {
        return;
    }
    for (uint64_t d = 0; d < head.dim; d++) {
        const uint64_t at = head.o_at + i * head.o_stride + d;

        sum = fmaf(op.d_o[at], op.o[at], sum);
    }
    facts.m[t] = op.stat[head.stat_at + i * head.stat_stride];
    facts.l[t] = op.stat[head.stat_at + i * head.stat_stride + 1];
    facts.big_d[t] = sum;
}

/* Weights of the tile at (x0, y0) from its scores s and, but for values, from
 * dp = chain(do, v). */
template <int R, enum gradient G>
static __device__ __forceinline__ void
put_weights(attention_memory<R> &memory, const query_facts<R> &facts,
            const float (&s)[R][R], const float (&dp)[R][R], float scale,
            const struct head &head, uint64_t x0, uint64_t y0)
{
    const unsigned int ty = threadIdx.x / SIDE;
    const unsigned int tx = threadIdx.x % SIDE;

#pragma unroll
    for (int r = 0; r < R; r++) {
#pragma unroll
        for (int c = 0; c < R; c++) {
            const unsigned int x = place<R>(ty, r);
            const unsigned int y = place<R>(tx, c);
            const unsigned int query = G == OF_QUERY ? x : y;
            const uint64_t i = G == OF_QUERY ? x0 + x : y0 + y;
            const uint64_t j = G == OF_QUERY ? y0 + y : x0 + x;
            float weight = 0.0f;

            if (j <= i && i < head.time) {
                weight = fsdp_expf(s[r][c] * scale - facts.m[query]) /
                         facts.l[query];
                if (G != OF_VALUE) {
                    weight = weight * (dp[r][c] - facts.big_d[query]);
                }
            }
            memory.weight[x][y] = weight;
        }
    }
}

/* What a block has made: its rows of dq, dk or dv, which begin at `out`. */
template <int R, enum gradient G>
static __device__ __forceinline__ void
put_result(const struct attention &op, const struct head &head,
           const struct part &at, const float (&acc)[R][PER_THREAD], float *out)
{
    const unsigned int ty = threadIdx.x / SIDE;
    const unsigned int tx = threadIdx.x % SIDE;

#pragma unroll
    for (int r = 0; r < R; r++) {
#pragma unroll
        for (int c = 0; c < PER_THREAD; c++) {
            const uint64_t x = at.x0 + place<R>(ty, r);
            const uint64_t d = at.column + tx * PER_THREAD + (unsigned int)c;

            if (x < head.time && d < head.dim) {
                out[x * head.stride + d] =
                    G == OF_VALUE ? acc[r][c] : acc[r][c] * op.scale;
            }
        }
    }
}

template <int R, enum gradient G>
static __global__ void __launch_bounds__(SIDE *SIDE, 2)
    attend_backward(const __grid_constant__ struct attention op)
{
    constexpr unsigned int TILE = SIDE * R;
    __shared__ __align__(16) attention_memory<R> memory;
    __shared__ query_facts<R> facts;
    const struct part at = part_of(op, TILE);
    const struct head head = head_of(op, at.head);
    const float *q = op.qkv + head.at;
    const float *k = q + head.o_stride;
    const float *v = k + head.o_stride;
    const float *d_o = op.d_o + head.o_at;
    const uint64_t time = head.time;
    const uint64_t last = at.x0 + TILE < time ? at.x0 + TILE : time;
    const uint64_t y_begin = G == OF_QUERY ? 0 : at.x0;
    const uint64_t y_end = G == OF_QUERY ? last : time;
    float s[R][R];
    float dp[R][R] = {};
    float acc[R][PER_THREAD] = {};
    float *out = op.out + head.at +
                 (G == OF_QUERY ? 0
                  : G == OF_KEY ? 1
                                : 2) *
                     head.o_stride;

    if (G == OF_QUERY) {
        fetch_facts<R>(facts, op, head, at.x0);
    }
    for (uint64_t y0 = y_begin; y0 < y_end; y0 += TILE) {
        const operand<R, true> x_score(G == OF_QUERY ? q : k, head.stride,
                                       at.x0, time);
        const operand<R, true> y_score(G == OF_QUERY ? k : q, head.stride, y0,
                                       time);
        const operand<R, true> x_dp(G == OF_QUERY ? d_o : v,
                                    G == OF_QUERY ? head.o_stride : head.stride,
                                    at.x0, time);
        const operand<R, true> y_dp(G == OF_QUERY ? v : d_o,
                                    G == OF_QUERY ? head.stride : head.o_stride,
                                    y0, time);

        chains<R>(s, x_score, y_score, head.dim, memory);
        if (G != OF_VALUE) {
            chains<R>(dp, x_dp, y_dp, head.dim, memory);
        }
        __syncthreads(); /* weights and facts before were used */
        if (G != OF_QUERY) {
            fetch_facts<R>(facts, op, head, y0);
        }
        fetch_rows<R>(memory,
                      G == OF_QUERY ? k
                      : G == OF_KEY ? q
                                    : d_o,
                      G == OF_VALUE ? head.o_stride : head.stride, y0, time,
                      at.column, head.dim);
        __syncthreads();
        put_weights<R, G>(memory, facts, s, dp, op.scale, head, at.x0, y0);
        __syncthreads();
        add_rows<R>(acc, memory, at.x0, y0, [time](uint64_t x) {
            return G == OF_QUERY ? bounds{0, x + 1} : bounds{x, time};
        });
    }
    put_result<R, G>(op, head, at, acc, out);
}

template <enum gradient G>
static cudaError_t run_gradient(const struct attention *a,
                                const struct cuda_target *target)
{
    return large_tiles(a, target)
               ? launch(target, attention_blocks(a, SIDE * 4), SIDE * SIDE,
                        attend_backward<4, G>, *a)
               : launch(target, attention_blocks(a, SIDE), SIDE * SIDE,
                        attend_backward<1, G>, *a);
}

extern "C" cudaError_t
cuda_op_attention_backward(const struct fsdp_op *op,
                           const struct cuda_target *target)
{
    const struct attention a = {op->dim[0],
                                op->dim[1],
                                op->dim[2],
                                op->dim[3],
                                op->f[0],
                                in_of<float>(op, 0),
                                in_of<float>(op, 1),
                                in_of<float>(op, 2),
                                in_of<float>(op, 3),
                                out_of<float>(op, 0),
                                NULL};
    cudaError_t status = run_gradient<OF_QUERY>(&a, target);

    if (status == cudaSuccess) {
        status = run_gradient<OF_KEY>(&a, target);
    }
    if (status == cudaSuccess) {
        status = run_gradient<OF_VALUE>(&a, target);
    }
    return status;
}

extern "C" cudaError_t cuda_load_attention_backward(void)
{
    return load(attend_backward<4, OF_QUERY>, attend_backward<1, OF_QUERY>,
                attend_backward<4, OF_KEY>, attend_backward<1, OF_KEY>,
                attend_backward<4, OF_VALUE>, attend_backward<1, OF_VALUE>);
}
