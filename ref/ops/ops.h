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

enum {
    REF_COLUMNS = 64, /* of a matrix, that a loop keeps sums of on the stack */
    REF_LANES = 32,   /* accumulators of lanes() */
};

/* The operators (op.h). */
int ref_fill(const struct fsdp_op *op);
int ref_scale(const struct fsdp_op *op);
int ref_add(const struct fsdp_op *op);
int ref_copy_2d(const struct fsdp_op *op);
int ref_cast(const struct fsdp_op *op);
int ref_gemm(const struct fsdp_op *op);
int ref_gemm_grad(const struct fsdp_op *op);
int ref_bias(const struct fsdp_op *op);
int ref_column_sum(const struct fsdp_op *op);
int ref_relu(const struct fsdp_op *op);
int ref_relu_backward(const struct fsdp_op *op);
int ref_gelu(const struct fsdp_op *op);
int ref_gelu_backward(const struct fsdp_op *op);
int ref_norm(const struct fsdp_op *op);
int ref_norm_backward(const struct fsdp_op *op);
int ref_norm_grad(const struct fsdp_op *op);
int ref_embedding(const struct fsdp_op *op);
int ref_embedding_grad(const struct fsdp_op *op);
int ref_attention(const struct fsdp_op *op);
int ref_attention_backward(const struct fsdp_op *op);
int ref_mse(const struct fsdp_op *op);
int ref_linear_loss(const struct fsdp_op *op);
int ref_cross_entropy(const struct fsdp_op *op);
int ref_sgd(const struct fsdp_op *op);
int ref_momentum(const struct fsdp_op *op);
int ref_adamw(const struct fsdp_op *op);

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

/* chain(k; a[k], b[k]) */
static inline float ref_chain(const float *a, const float *b, uint64_t n)
{
    float acc = 0.0f;

    for (uint64_t k = 0; k < n; k++) {
        acc = __builtin_fmaf(a[k], b[k], acc);
    }
    return acc;
}

/* One step of n chains that share the factor a: side by side, so that the
 * loop vectorises although each chain keeps its order. */
static inline void ref_chain_step(float *restrict acc, float a,
                                  const float *restrict b, uint64_t n)
{
    for (uint64_t j = 0; j < n; j++) {
        acc[j] = __builtin_fmaf(a, b[j], acc[j]);
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
