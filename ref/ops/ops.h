/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops.h - the operators of the reference device, one function each, and the
 * few loops that several of them share: chains, lanes and trees (op.h).
 *
 * An operator checks its dimensions against the lengths of its ranges and
 * returns INVALID before it writes anything. That the ranges are there, are
 * as many as they should be and do not overlap, device.c has checked.
 */
#ifndef FSDP_CTS_OPS_H
#define FSDP_CTS_OPS_H

#include <fsdp/op.h>
#include <string.h>

/*
 * Operators are compiled for more than one level of instructions; the build
 * gives each compilation its REF_LEVEL, plain or fma, and REF_NAME(ref_gemm) is
 * then ref_gemm_fma. All levels have the same bits.
 */
#ifndef REF_LEVEL
#    define REF_LEVEL plain
#endif
#define REF_PASTE(name, level)  name##_##level
#define REF_EXPAND(name, level) REF_PASTE(name, level)
#define REF_NAME(name)          REF_EXPAND(name, REF_LEVEL)

enum {
    REF_COLUMNS = 64, /* of a matrix, that a loop keeps sums of on the stack */
    REF_LANES = 32,   /* accumulators of lanes() */
};

/* The operators (op.h). */
int REF_NAME(ref_fill)(const struct fsdp_op *op);
int REF_NAME(ref_scale)(const struct fsdp_op *op);
int REF_NAME(ref_add)(const struct fsdp_op *op);
int REF_NAME(ref_copy_2d)(const struct fsdp_op *op);
int REF_NAME(ref_cast)(const struct fsdp_op *op);
int REF_NAME(ref_gemm)(const struct fsdp_op *op);
int REF_NAME(ref_gemm_grad)(const struct fsdp_op *op);
int REF_NAME(ref_bias)(const struct fsdp_op *op);
int REF_NAME(ref_column_sum)(const struct fsdp_op *op);
int REF_NAME(ref_relu)(const struct fsdp_op *op);
int REF_NAME(ref_relu_backward)(const struct fsdp_op *op);
int REF_NAME(ref_gelu)(const struct fsdp_op *op);
int REF_NAME(ref_gelu_backward)(const struct fsdp_op *op);
int REF_NAME(ref_norm)(const struct fsdp_op *op);
int REF_NAME(ref_norm_backward)(const struct fsdp_op *op);
int REF_NAME(ref_norm_grad)(const struct fsdp_op *op);
int REF_NAME(ref_embedding)(const struct fsdp_op *op);
int REF_NAME(ref_embedding_grad)(const struct fsdp_op *op);
int REF_NAME(ref_attention)(const struct fsdp_op *op);
int REF_NAME(ref_attention_backward)(const struct fsdp_op *op);
int REF_NAME(ref_mse)(const struct fsdp_op *op);
int REF_NAME(ref_linear_loss)(const struct fsdp_op *op);
int REF_NAME(ref_cross_entropy)(const struct fsdp_op *op);
int REF_NAME(ref_sgd)(const struct fsdp_op *op);
int REF_NAME(ref_momentum)(const struct fsdp_op *op);
int REF_NAME(ref_adamw)(const struct fsdp_op *op);

/* a * b, or UINT64_MAX, which is no length, if that overflows. */
static inline uint64_t ref_times(uint64_t a, uint64_t b)
{
    uint64_t product;

    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* The bytes of a matrix of 4-byte elements. */
static inline uint64_t ref_words(uint64_t rows, uint64_t columns)
{
    return ref_times(ref_times(rows, columns), 4);
}

/* INVALID unless the ranges, in[] and then out[], are as long as `bytes`,
 * which has as many: plain_device.c has counted them.
 * NOLINTBEGIN(clang-analyzer-core.UndefinedBinaryOperatorResult) */
static inline int ref_lengths(const struct fsdp_op *op, const uint64_t *bytes)
{
    for (uint32_t i = 0; i < op->n_in; i++, bytes++) {
        if (*bytes == UINT64_MAX || op->in[i].bytes != *bytes) {
            return FSDP_ERR_INVALID;
        }
    }
    for (uint32_t o = 0; o < op->n_out; o++, bytes++) {
        if (*bytes == UINT64_MAX || op->out[o].bytes != *bytes) {
            return FSDP_ERR_INVALID;
        }
    }
    return FSDP_OK;
}
/* NOLINTEND(clang-analyzer-core.UndefinedBinaryOperatorResult) */

/* `grains` equal parts of `rows` rows? */
static inline bool ref_grains_fit(uint64_t grains, uint64_t rows)
{
    return grains > 0 && grains <= FSDP_MAX_GRAINS && rows % grains == 0;
}

/* The columns of a block that begins at `first`. */
static inline uint64_t ref_block(uint64_t first, uint64_t n)
{
    return n - first < REF_COLUMNS ? n - first : REF_COLUMNS;
}

static inline void ref_zero(float *x, uint64_t n)
{
    for (uint64_t j = 0; j < n; j++) {
        x[j] = 0.0f;
    }
}

/* Whether fma() is an instruction; not every compiler says __FP_FAST_FMAF. */
#if defined(__FP_FAST_FMAF) || defined(__FMA__) || defined(__aarch64__)
#    define REF_HAS_FMA 1
#endif

/*
 * fma(a, b, c). Where it is no instruction, calling a function for each element
 * would take most of an operator's time; so it is made of doubles. The product
 * is exact, and so is `lost`, what the sum was rounded by. Rounded to odd, the
 * sum is never half-way between two floats, so that it may be rounded again: if
 * something was lost and it is even, it becomes its neighbour on that side.
 * What is not finite has lost NaN, and stays. Whether lost is neither 0 nor NaN
 * is asked of its bits, since SSE2 cannot choose by a comparison of doubles.
 */
static inline float ref_fma(float a, float b, float c)
{
#ifdef REF_HAS_FMA
    return __builtin_fmaf(a, b, c);
#else
    const uint64_t infinite = UINT64_C(0x7ff0000000000000);
    const double product = (double)a * (double)b;
    double sum = product + (double)c;
    const double part = sum - product;
    const double lost = (product - (sum - part)) + ((double)c - part);
    uint64_t bits;
    uint64_t lost_bits;
    uint64_t size;
    uint64_t some;

    memcpy(&bits, &sum, sizeof(bits));
    memcpy(&lost_bits, &lost, sizeof(lost_bits));
    size = lost_bits & (UINT64_MAX >> 1);
    some = ((0 - size) & (size - infinite)) >> 63;
    /* All ones where it is to move, 1 or -1: away from 0 or towards it. */
    bits += (0 - (some & ~bits & 1)) & (1 - (((bits ^ lost_bits) >> 63) << 1));
    memcpy(&sum, &bits, sizeof(sum));
    return (float)sum;
#endif
}

/* chain(k; a[k], b[k]) */
static inline float ref_chain(const float *a, const float *b, uint64_t n)
{
    float acc = 0.0f;

    for (uint64_t k = 0; k < n; k++) {
        acc = ref_fma(a[k], b[k], acc);
    }
    return acc;
}

/* One step of n chains that share the factor a: side by side, so that the
 * loop vectorises although each chain keeps its order. */
static inline void ref_chain_step(float *restrict acc, float a,
                                  const float *restrict b, uint64_t n)
{
    for (uint64_t j = 0; j < n; j++) {
        acc[j] = ref_fma(a, b[j], acc[j]);
    }
}

/* The end of lanes(): folds the accumulators. A lane past `o` is read no
 * more once the fold has passed it, so it need not be written. */
static inline float ref_lanes_fold(float lane[REF_LANES])
{
    for (int o = REF_LANES / 2; o > 0; o /= 2) {
        for (int l = 0; l < o; l++) {
            lane[l] = lane[l] + lane[l ^ o];
        }
    }
    return lane[0];
}

/* tree() of each column: adds up part[0], ..., part[grains - 1] in part[0].
 * The specification is recursive. NOLINTNEXTLINE(misc-no-recursion) */
static inline void ref_tree(float (*part)[REF_COLUMNS], uint64_t grains,
                            uint64_t columns)
{
    uint64_t first = (grains + 1) / 2;

    if (grains <= 1) {
        return;
    }
    ref_tree(part, first, columns);
    ref_tree(part + first, grains - first, columns);
    for (uint64_t j = 0; j < columns; j++) {
        part[0][j] = part[0][j] + part[first][j];
    }
}

/* maximum: NaN if either is NaN; +0 is above -0. */
static inline float ref_maximum(float a, float b)
{
    if (a != a || b != b) {
        return a + b;
    }
    if (a == b) {
        return __builtin_signbitf(a) ? b : a;
    }
    return a > b ? a : b;
}

#endif
