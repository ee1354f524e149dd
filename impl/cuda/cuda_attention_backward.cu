/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_attention_backward.cu - the gradients of q, k and v: sums of rows with
 * weights from a tile of scores, dq_i over the keys j <= i, dk_j and dv_j over
 * the queries i >= j.
 *
 * D of op.h is needed by both kernels: the first one leaves it where dq will
 * be, in the first column of each part of a head that is one block's.
 */
#include "cuda_attention.cuh"

/* The values of a tile's queries that weights need: stat, and D. */
template <class T> struct query_facts {
    float m[T::rows], l[T::rows], big_d[T::rows];
};

/* Facts of the queries from i0 on; D stands at `column`. */
template <class T>
static __device__ __forceinline__ void
fetch_facts(query_facts<T> &facts, const struct attention &op,
            const struct head &head, unsigned int i0, unsigned int column)
{
    const unsigned int t = threadIdx.x;
    const uint64_t i = i0 + t;

    if (t < T::rows && i < op.time) {
        const float *stat = op.stat + head.stat_at + i * op.stat_stride;

        facts.m[t] = stat[0];
        facts.l[t] = stat[1];
        facts.big_d[t] = op.out[head.at + i * op.stride + column];
    }
}

/* D of a query and head a thread, left in each `columns`-th column of dq. */
template <bool WHOLE>
static __global__ void __launch_bounds__(THREADS)
    leave_d(const __grid_constant__ struct attention op,
            const unsigned int columns)
{
    const uint64_t n = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    const uint64_t row = n / op.heads;
    const uint64_t h = n % op.heads;
    const float *a = op.d_o + n * op.dim;
    const float *b = op.o + n * op.dim;
    float *to = op.out + row * op.stride + h * op.dim;
    float sum = 0.0f;

    if (row >= op.batch * op.time) {
        return;
    }
    if (WHOLE) {
#pragma unroll 4
        for (unsigned int d = 0; d < op.dim; d += 4) {
            const float4 u = *reinterpret_cast<const float4 *>(a + d);
            const float4 v = *reinterpret_cast<const float4 *>(b + d);

            sum = fmaf(u.x, v.x, sum);
            sum = fmaf(u.y, v.y, sum);
            sum = fmaf(u.z, v.z, sum);
            sum = fmaf(u.w, v.w, sum);
        }
    } else {
        for (unsigned int d = 0; d < op.dim; d++) {
            sum = fmaf(a[d], b[d], sum);
        }
    }
    for (unsigned int d = 0; d < op.dim; d += columns) {
        to[d] = sum;
    }
}

/* Turns p, which is in the tile, into p * (dp - D). QUERIES_DOWN: D of row
 * x. */
template <class T, bool QUERIES_DOWN>
static __device__ __forceinline__ void times_dp(attention_memory<T> &memory,
                                                const query_facts<T> &facts,
                                                const float (&dp)[T::R][T::S])
{
#pragma unroll
    for (int c = 0; c < T::S; c++) {
        const unsigned int y = column_of<T>(c);
        float p[T::R];

        read_own<T::down, T::R>(p, memory.tile[y], T::y());
#pragma unroll
        for (int r = 0; r < T::R; r++) {
            p[r] = p[r] *
                   (dp[r][c] - facts.big_d[QUERIES_DOWN ? row_of<T>(r) : y]);
        }
        store_own<T::down, T::R>(memory.tile[y], T::y(), p);
    }
}

/* Writes the result of a block: its rows of dq, dk or dv, which begin at
 * `out`. */
template <class T>
static __device__ __forceinline__ void
put_result(const struct attention &op, float *out, const struct part &at,
           const float (&acc)[T::R][T::S], bool scaled)
{
#pragma unroll
    for (int r = 0; r < T::R; r++) {
#pragma unroll
        for (int c = 0; c < T::S; c++) {
            const unsigned int x = at.x0 + row_of<T>(r);
            const unsigned int d = at.column + column_of<T>(c);

            if (x < op.time && d < op.dim) {
                out[(uint64_t)x * op.stride + d] =
                    scaled ? acc[r][c] * op.scale : acc[r][c];
            }
        }
    }
}

/* dk and dv: rows x are keys, y their queries. */
template <class T, bool WHOLE>
static __global__ void __launch_bounds__(T::threads, T::resident)
    grad_of_keys(const __grid_constant__ struct attention op)
{
    __shared__ __align__(16) attention_memory<T> memory;
    __shared__ query_facts<T> facts;
    const struct part at = part_of<T>(op);
    const float *q = op.qkv + at.head.at;
    const struct rows_of queries = {q, op.stride};
    const struct rows_of keys = {q + op.o_stride, op.stride};
    const struct rows_of values = {q + 2 * op.o_stride, op.stride};
    const struct rows_of d_o = {op.d_o + at.head.o_at, op.o_stride};
    unsigned int turn = 0;
    float s[T::R][T::S];
    float dk[T::R][T::S] = {};
    float dv[T::R][T::S] = {};

    for (unsigned int y0 = at.x0; y0 < op.time; y0 += T::columns) {
        const bool diagonal = y0 == at.x0;
        const unsigned int y_end = at_most(T::columns, op.time - y0);

        chains<T, WHOLE>(s, op, keys, at.x0, queries, y0, memory, turn);
        put_scores<T>(memory, s);
        fetch_facts<T>(facts, op, at.head, y0, 0);
        __syncthreads();
        each_score<T>(memory, [&](float score, unsigned int x, unsigned int y) {
            return (!diagonal || y >= x) && y < y_end
                       ? cuda_expf(score * op.scale - facts.m[y]) / facts.l[y]
                       : 0.0f;
        });
        add_rows<T, WHOLE, false>(dv, op, d_o, at, y0, memory, turn);
        chains<T, WHOLE>(s, op, values, at.x0, d_o, y0, memory, turn);
        times_dp<T, false>(memory, facts, s);
        add_rows<T, WHOLE, false>(dk, op, queries, at, y0, memory, turn);
    }
    put_result<T>(op, op.out + at.head.at + op.o_stride, at, dk, true);
    put_result<T>(op, op.out + at.head.at + 2 * op.o_stride, at, dv, false);
}

/* dq: rows x are queries, y their keys. */
template <class T, bool WHOLE>
static __global__ void __launch_bounds__(T::threads, T::resident)
    grad_of_queries(const __grid_constant__ struct attention op)
{
    __shared__ __align__(16) attention_memory<T> memory;
    __shared__ query_facts<T> facts;
    const struct part at = part_of<T>(op);
    const float *q = op.qkv + at.head.at;
    const struct rows_of queries = {q, op.stride};
    const struct rows_of keys = {q + op.o_stride, op.stride};
    const struct rows_of values = {q + 2 * op.o_stride, op.stride};
    const struct rows_of d_o = {op.d_o + at.head.o_at, op.o_stride};
    unsigned int turn = 0;
    float s[T::R][T::S];
    float dq[T::R][T::S] = {};

    fetch_facts<T>(facts, op, at.head, at.x0, at.column);
    for (unsigned int y0 = 0; y0 <= at.x0; y0 += T::columns) {
        const bool diagonal = y0 == at.x0;

        chains<T, WHOLE>(s, op, queries, at.x0, keys, y0, memory, turn);
        put_scores<T>(memory, s);
        __syncthreads();
        each_score<T>(memory, [&](float score, unsigned int x, unsigned int y) {
            return (!diagonal || y <= x) && at.x0 + x < op.time
                       ? cuda_expf(score * op.scale - facts.m[x]) / facts.l[x]
                       : 0.0f;
        });
        chains<T, WHOLE>(s, op, d_o, at.x0, values, y0, memory, turn);
        times_dp<T, true>(memory, facts, s);
        add_rows<T, WHOLE, true>(dq, op, keys, at, y0, memory, turn);
    }
    put_result<T>(op, op.out + at.head.at, at, dq, true);
}

/* Tiles of keys, and of queries, of the same size. */
template <class K, class Q, bool WHOLE>
static cudaError_t run_backward(const struct attention *op,
                                const struct cuda_target *target)
{
    const uint64_t blocks = blocks_of<Q>(op); /* none if dim is 0 */
    cudaError_t status = cudaSuccess;

    if (blocks > 0) {
        status =
            launch(target, divide_up(op->batch * op->time * op->heads, THREADS),
                   THREADS, leave_d<WHOLE>, *op, Q::columns);
    }
    if (status == cudaSuccess) {
        status =
            launch(target, blocks, K::threads, grad_of_keys<K, WHOLE>, *op);
    }
    if (status == cudaSuccess) {
        status =
            launch(target, blocks, Q::threads, grad_of_queries<Q, WHOLE>, *op);
    }
    return status;
}

extern "C" cudaError_t
cuda_op_attention_backward(const struct fsdp_op *op,
                           const struct cuda_target *target)
{
    struct attention a = attention_of(op);

    if (!attention_fits(op)) {
        return cudaErrorInvalidConfiguration;
    }
    a.o = in_of<float>(op, 1);
    a.stat = in_of<float>(op, 2);
    a.d_o = in_of<float>(op, 3);
    a.out = out_of<float>(op, 0);
    switch (shape_of(&a, target)) {
    case EVEN:
        return run_backward<lean_64, scores_64, true>(&a, target);
    case RAGGED:
        return run_backward<ragged_64, ragged_64, false>(&a, target);
    default:
        return run_backward<scores_16, scores_16, false>(&a, target);
    }
}

extern "C" cudaError_t cuda_load_attention_backward(void)
{
    return load(leave_d<true>, leave_d<false>, grad_of_keys<lean_64, true>,
                grad_of_keys<ragged_64, false>, grad_of_keys<scores_16, false>,
                grad_of_queries<scores_64, true>,
                grad_of_queries<ragged_64, false>,
                grad_of_queries<scores_16, false>);
}
