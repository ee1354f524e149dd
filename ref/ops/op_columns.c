/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_columns.c - COLUMN_SUM and NORM_GRAD: sums down the columns of a matrix,
 * in blocks of rows, for each grain, and then up the tree.
 *
 * The columns are taken REF_COLUMNS at a time and the loop over them is
 * innermost: it vectorises, and a column's order does not depend on it.
 */
#include "ops.h"

enum {
    BLOCK_ROWS = 64
};

/* A function that adds what row r contributes to columns [j0, j0 + columns)
 * of the sum. */
typedef void add_row(const struct fsdp_op *op, uint64_t r, uint64_t j0,
                     uint64_t columns, float *block);

static void grain_sum(const struct fsdp_op *op, add_row *add, uint64_t r0,
                      uint64_t rows, uint64_t j0, uint64_t columns,
                      float *total)
{
    ref_zero(total, columns);
    for (uint64_t b0 = 0; b0 < rows; b0 += BLOCK_ROWS) {
        uint64_t end = rows - b0 < BLOCK_ROWS ? rows : b0 + BLOCK_ROWS;
        float block[REF_COLUMNS] = {0.0f};

        for (uint64_t r = b0; r < end; r++) {
            add(op, r0 + r, j0, columns, block);
        }
        for (uint64_t j = 0; j < columns; j++) {
            total[j] = total[j] + block[j];
        }
    }
}

static void column_sums(const struct fsdp_op *op, add_row *add, float *sum)
{
    uint64_t rows = op->dim[0];
    uint64_t n = op->dim[1];
    uint64_t grains = op->dim[2];
    float part[FSDP_MAX_GRAINS][REF_COLUMNS];

    for (uint64_t j0 = 0; j0 < n; j0 += REF_COLUMNS) {
        uint64_t columns = ref_block(j0, n);

        for (uint64_t grain = 0; grain < grains; grain++) {
            grain_sum(op, add, rows / grains * grain, rows / grains, j0,
                      columns, part[grain]);
        }
        ref_tree(part, grains, columns);
        for (uint64_t j = 0; j < columns; j++) {
            sum[j0 + j] = part[0][j];
        }
    }
}

static void add_x(const struct fsdp_op *op, uint64_t r, uint64_t j0,
                  uint64_t columns, float *block)
{
    const float *x = (const float *)op->in[0].p + r * op->dim[1] + j0;

    for (uint64_t j = 0; j < columns; j++) {
        block[j] = block[j] + x[j];
    }
}

int REF_NAME(ref_column_sum)(const struct fsdp_op *op)
{
    uint64_t rows = op->dim[0];
    uint64_t n = op->dim[1];

    FSDP_TRY(
        ref_lengths(op, (uint64_t[]){ref_words(rows, n), ref_words(n, 1)}));
    if (!ref_grains_fit(op->dim[2], rows)) {
        return FSDP_ERR_INVALID;
    }
    column_sums(op, add_x, op->out[0].p);
    return FSDP_OK;
}

static void add_dgamma(const struct fsdp_op *op, uint64_t r, uint64_t j0,
                       uint64_t columns, float *block)
{
    const float *x = (const float *)op->in[0].p + r * op->dim[1] + j0;
    const float *stat = (const float *)op->in[1].p + r * 2;
    const float *dy = (const float *)op->in[2].p + r * op->dim[1] + j0;

    for (uint64_t j = 0; j < columns; j++) {
        float h = (x[j] - stat[0]) * stat[1];

        block[j] = ref_fma(dy[j], h, block[j]);
    }
}

static void add_dbeta(const struct fsdp_op *op, uint64_t r, uint64_t j0,
                      uint64_t columns, float *block)
{
    const float *dy = (const float *)op->in[2].p + r * op->dim[1] + j0;

    for (uint64_t j = 0; j < columns; j++) {
        block[j] = block[j] + dy[j];
    }
}

int REF_NAME(ref_norm_grad)(const struct fsdp_op *op)
{
    uint64_t rows = op->dim[0];
    uint64_t n = op->dim[1];

    FSDP_TRY(
        ref_lengths(op, (uint64_t[]){ref_words(rows, n), ref_words(rows, 2),
                                     ref_words(rows, n), ref_words(n, 1),
                                     ref_words(n, 1)}));
    if (!ref_grains_fit(op->dim[2], rows)) {
        return FSDP_ERR_INVALID;
    }
    column_sums(op, add_dgamma, op->out[0].p);
    column_sums(op, add_dbeta, op->out[1].p);
    return FSDP_OK;
}
