/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_embedding.c - EMBEDDING and EMBEDDING_GRAD: rows of two tables, looked up
 * by a token's id and by its place in the sequence.
 */
#include "ops.h"

#include <stddef.h>

static bool ids_fit(const int32_t *id, uint64_t rows, uint64_t vocabulary)
{
    for (uint64_t r = 0; r < rows; r++) {
        if (id[r] < 0 || (uint64_t)id[r] >= vocabulary) {
            return false;
        }
    }
    return true;
}

int REF_NAME(ref_embedding)(const struct fsdp_op *op)
{
    uint64_t rows = op->dim[0];
    uint64_t n = op->dim[1];
    uint64_t period = op->dim[2];
    uint64_t vocabulary = op->dim[3];
    const int32_t *id = op->in[0].p;
    const float *table = op->in[1].p;
    const float *position = op->in[2].p;
    float *y = op->out[0].p;

    FSDP_TRY(ref_lengths(
        op, (uint64_t[]){ref_words(rows, 1), ref_words(vocabulary, n),
                         ref_words(period, n), ref_words(rows, n)}));
    if ((rows > 0 && period == 0) || !ids_fit(id, rows, vocabulary)) {
        return FSDP_ERR_INVALID;
    }
    for (uint64_t r = 0; r < rows; r++) {
        for (uint64_t j = 0; j < n; j++) {
            y[r * n + j] =
                table[(uint64_t)id[r] * n + j] + position[r % period * n + j];
        }
    }
    return FSDP_OK;
}

/* Row r belongs to one row of the table: that of its id, or of its position
 * where there are no ids. */
static uint64_t table_row(const int32_t *id, uint64_t period, uint64_t r)
{
    return id ? (uint64_t)id[r] : r % period;
}

/* One row of a table's gradient: the sum of the rows that belong to `entry`. */
static void entry_grad(const struct fsdp_op *op, const int32_t *id,
                       uint64_t entry, float *grad)
{
    uint64_t rows = op->dim[0];
    uint64_t n = op->dim[1];
    uint64_t grains = op->dim[4];
    const float *dy = op->in[1].p;
    float part[FSDP_MAX_GRAINS][REF_COLUMNS];

    for (uint64_t j0 = 0; j0 < n; j0 += REF_COLUMNS) {
        uint64_t columns = ref_block(j0, n);

        for (uint64_t grain = 0; grain < grains; grain++) {
            uint64_t r0 = rows / grains * grain;

            ref_zero(part[grain], columns);
            for (uint64_t r = r0; r < r0 + rows / grains; r++) {
                if (table_row(id, op->dim[2], r) != entry) {
                    continue;
                }
                for (uint64_t j = 0; j < columns; j++) {
                    part[grain][j] = part[grain][j] + dy[r * n + j0 + j];
                }
            }
        }
        ref_tree(part, grains, columns);
        for (uint64_t j = 0; j < columns; j++) {
            grad[j0 + j] = part[0][j];
        }
    }
}

int REF_NAME(ref_embedding_grad)(const struct fsdp_op *op)
{
    uint64_t rows = op->dim[0];
    uint64_t n = op->dim[1];
    uint64_t period = op->dim[2];
    uint64_t vocabulary = op->dim[3];
    const int32_t *id = op->in[0].p;
    float *dtable = op->out[0].p;
    float *dposition = op->out[1].p;

    FSDP_TRY(ref_lengths(
        op, (uint64_t[]){ref_words(rows, 1), ref_words(rows, n),
                         ref_words(vocabulary, n), ref_words(period, n)}));
    if ((rows > 0 && period == 0) || !ids_fit(id, rows, vocabulary) ||
        !ref_grains_fit(op->dim[4], rows)) {
        return FSDP_ERR_INVALID;
    }
    for (uint64_t v = 0; v < vocabulary; v++) {
        entry_grad(op, id, v, dtable + v * n);
    }
    for (uint64_t p = 0; p < period; p++) {
        entry_grad(op, NULL, p, dposition + p * n);
    }
    return FSDP_OK;
}
