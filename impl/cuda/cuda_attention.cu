/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_attention.cu - causal self-attention, streaming: a block walks the keys
 * of its queries twice, for the maximum and for the sums.
 */
#include "cuda_attention.cuh"

/* Maxima of a thread's rows over the keys of one tile, and whether a NaN is
 * among them: the sum of all scores times 0 is NaN exactly if one of them is
 * NaN or infinite. */
template <class T, bool DIAGONAL>
static __device__ __forceinline__ void
take_maximum(float (&m)[T::R], bool (&nan)[T::R], const float (&s)[T::R][T::S],
             float scale)
{
    float zero = 0.0f;

#pragma unroll
    for (int r = 0; r < T::R; r++) {
#pragma unroll
        for (int c = 0; c < T::S; c++) {
            const float score = s[r][c] * scale;

            if (!DIAGONAL || column_of<T>(c) <= row_of<T>(r)) {
                m[r] = fmaxf(m[r], score);
            }
            zero = fmaf(score, 0.0f, zero);
        }
    }
    if (zero == zero) {
        return;
    }
#pragma unroll
    for (int r = 0; r < T::R; r++) {
#pragma unroll
        for (int c = 0; c < T::S; c++) {
            const float score = s[r][c] * scale;

            if (!DIAGONAL || column_of<T>(c) <= row_of<T>(r)) {
                nan[r] = nan[r] || score != score;
            }
        }
    }
}

/* The maximum of each row from those of the threads that share it: neighbours
 * in the warp, and warps side by side. */
template <class T>
static __device__ __forceinline__ void
put_maximum(float (&of_row)[T::rows], float (&part)[T::across / 8][T::rows],
            const float (&m)[T::R], const bool (&nan)[T::R])
{
#pragma unroll
    for (int r = 0; r < T::R; r++) {
        float x = nan[r] ? NAN : m[r];

#pragma unroll
        for (int o = 2; o < 16; o *= 2) {
            x = maximum(x, __shfl_xor_sync(WHOLE_WARP, x, o));
        }
        part[T::x() / 8][row_of<T>(r)] = x;
    }
    __syncthreads();
    if (threadIdx.x < T::rows) {
        float x = part[0][threadIdx.x];

        for (int w = 1; w < T::across / 8; w++) {
            x = maximum(x, part[w][threadIdx.x]);
        }
        of_row[threadIdx.x] = x;
    }
    __syncthreads();
}

/* Writes the result of a block: its rows of o, divided by their sums. */
template <class T>
static __device__ __forceinline__ void
put_result(const struct attention &op, const struct part &at,
           const float (&acc)[T::R][T::S], const float (&sum)[T::rows])
{
#pragma unroll
    for (int r = 0; r < T::R; r++) {
        const unsigned int x = row_of<T>(r);

#pragma unroll
        for (int c = 0; c < T::S; c++) {
            const unsigned int d = at.column + column_of<T>(c);

            if (at.x0 + x < op.time && d < op.dim) {
                op.out[at.head.o_at + (at.x0 + x) * op.o_stride + d] =
                    acc[r][c] / sum[x];
            }
        }
    }
}

/* What backward needs from the forward of a row: its maximum, and its sum. */
template <class T>
static __device__ __forceinline__ void
put_statistic(const struct attention &op, const struct part &at,
              const float (&maxima)[T::rows], const float (&sum)[T::rows])
{
    const unsigned int x = threadIdx.x;

    if (x < T::rows && at.x0 + x < op.time && at.column == 0) {
        float *stat =
            op.out_stat + at.head.stat_at + (at.x0 + x) * op.stat_stride;

        stat[0] = maxima[x];
        stat[1] = sum[x];
    }
}

template <class T, bool WHOLE>
static __global__ void __launch_bounds__(T::threads, T::resident)
    attend(const __grid_constant__ struct attention op)
{
    __shared__ __align__(16) attention_memory<T> memory;
    __shared__ float part[T::across / 8][T::rows];
    __shared__ float maxima[T::rows];
    __shared__ float sums[T::rows];
    const struct part at = part_of<T>(op);
    const float *q = op.qkv + at.head.at;
    const struct rows_of queries = {q, op.stride};
    const struct rows_of keys = {q + op.o_stride, op.stride};
    const struct rows_of values = {q + 2 * op.o_stride, op.stride};
    const unsigned int t = threadIdx.x;
    unsigned int turn = 0;
    float s[T::R][T::S];
    float m[T::R];
    bool nan[T::R] = {};
    float acc[T::R][T::S] = {};
    float l = 0.0f;

#pragma unroll
    for (int r = 0; r < T::R; r++) {
        m[r] = -INFINITY;
    }
    for (unsigned int y0 = 0; y0 <= at.x0; y0 += T::columns) {
        chains<T, WHOLE>(s, op, queries, at.x0, keys, y0, memory, turn);
        if (y0 != at.x0) {
            take_maximum<T, false>(m, nan, s, op.scale);
        } else {
            take_maximum<T, true>(m, nan, s, op.scale);
        }
    }
    put_maximum<T>(maxima, part, m, nan);
    for (unsigned int y0 = 0; y0 <= at.x0; y0 += T::columns) {
        const bool diagonal = y0 == at.x0;

        chains<T, WHOLE>(s, op, queries, at.x0, keys, y0, memory, turn);
        __syncthreads(); /* the weights before were used */
        put_scores<T>(memory, s);
        __syncthreads();
        each_score<T>(memory, [&](float score, unsigned int x, unsigned int y) {
            return !diagonal || y <= x ? cuda_expf(score * op.scale - maxima[x])
                                       : 0.0f;
        });
        __syncthreads();
        for (unsigned int y = 0;
             t < T::rows && y < T::columns && (!diagonal || y <= t); y++) {
            l = l + memory.tile[y][t];
        }
        add_rows<T, WHOLE, true>(acc, op, values, at, y0, memory, turn);
    }
    if (t < T::rows) {
        sums[t] = l;
    }
    __syncthreads();
    put_result<T>(op, at, acc, sums);
    put_statistic<T>(op, at, maxima, sums);
}

/* A head of no columns still has its statistics: with one column of none, its
 * scores are sums of nothing. */
template <class T, bool WHOLE>
static cudaError_t run_attention(const struct attention *op,
                                 const struct cuda_target *target)
{
    return launch(target,
                  op->dim > 0
                      ? blocks_of<T>(op)
                      : op->batch * op->heads * divide_up(op->time, T::rows),
                  T::threads, attend<T, WHOLE>, *op);
}

extern "C" cudaError_t cuda_op_attention(const struct fsdp_op *op,
                                         const struct cuda_target *target)
{
    struct attention a = attention_of(op);

    if (!attention_fits(op)) {
        return cudaErrorInvalidConfiguration;
    }
    a.out = out_of<float>(op, 0);
    a.out_stat = out_of<float>(op, 1);
    switch (shape_of(&a, target)) {
    case EVEN:
        return run_attention<scores_64, true>(&a, target);
    case RAGGED:
        return run_attention<ragged_64, false>(&a, target);
    default:
        return run_attention<scores_16, false>(&a, target);
    }
}

extern "C" cudaError_t cuda_load_attention(void)
{
    return load(attend<scores_64, true>, attend<ragged_64, false>,
                attend<scores_16, false>);
}
