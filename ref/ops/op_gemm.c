/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_gemm.c - GEMM and GEMM_GRAD.
 *
 * The loop over the columns j is innermost: it steps many chains at once and
 * vectorises, while each element still sees its k, or its rows, in order.
 */
#include "ops.h"

/* C += A B for some columns of C: columns j0, ... of C, k0, ... of A, and as
 * many rows and columns of `b`, whose rows are `stride` apart. */
struct panel {
    uint64_t j0, columns, k0, depth;
    const float *b;
    uint64_t stride;
};

static void gemm_panel(float *c, const float *a, uint64_t m, uint64_t n,
                       uint64_t k, const struct panel *panel)
{
    for (uint64_t i = 0; i < m; i++) {
        float *row = c + i * n + panel->j0;
        const float *factor = a + i * k + panel->k0;

        for (uint64_t p = 0; p < panel->depth; p++) {
            ref_chain_step(row, factor[p], panel->b + p * panel->stride,
                           panel->columns);
        }
    }
}

/* B is [n,k]: turns it, a block at a time, blocks of k ascending. */
static void gemm_transposed(float *c, const float *a, const float *b,
                            uint64_t m, uint64_t n, uint64_t k)
{
    float turned[REF_COLUMNS][REF_COLUMNS];

    for (uint64_t j0 = 0; j0 < n; j0 += REF_COLUMNS) {
        for (uint64_t k0 = 0; k0 < k; k0 += REF_COLUMNS) {
            struct panel panel = {j0,        ref_block(j0, n),
                                  k0,        ref_block(k0, k),
                                  turned[0], REF_COLUMNS};

            for (uint64_t j = 0; j < panel.columns; j++) {
                for (uint64_t p = 0; p < panel.depth; p++) {
                    turned[p][j] = b[(j0 + j) * k + k0 + p];
                }
            }
            gemm_panel(c, a, m, n, k, &panel);
        }
    }
}

int REF_NAME(ref_gemm)(const struct fsdp_op *op)
{
    uint64_t m = op->dim[0];
    uint64_t n = op->dim[1];
    uint64_t k = op->dim[2];
    const float *a = op->in[0].p;
    const float *b = op->in[1].p;
    float *c = op->out[0].p;
    struct panel whole = {0, n, 0, k, b, n};

    FSDP_TRY(ref_lengths(
        op, (uint64_t[]){ref_words(m, k), ref_words(k, n), ref_words(m, n)}));
    ref_zero(c, m * n);
    if ((op->flags & FSDP_OP_TRANSPOSE_B) != 0) {
        gemm_transposed(c, a, b, m, n, k);
    } else {
        gemm_panel(c, a, m, n, k, &whole);
    }
    return FSDP_OK;
}

int REF_NAME(ref_gemm_grad)(const struct fsdp_op *op)
{
    uint64_t m = op->dim[0];
    uint64_t n = op->dim[1];
    uint64_t rows = op->dim[2];
    uint64_t grains = op->dim[3];
    const float *x = op->in[0].p;
    const float *g = op->in[1].p;
    float *w = op->out[0].p;
    float part[FSDP_MAX_GRAINS][REF_COLUMNS];

    FSDP_TRY(
        ref_lengths(op, (uint64_t[]){ref_words(rows, m), ref_words(rows, n),
                                     ref_words(m, n)}));
    if (!ref_grains_fit(grains, rows)) {
        return FSDP_ERR_INVALID;
    }
    for (uint64_t i = 0; i < m; i++) {
        for (uint64_t j0 = 0; j0 < n; j0 += REF_COLUMNS) {
            uint64_t columns = ref_block(j0, n);

            for (uint64_t grain = 0; grain < grains; grain++) {
                uint64_t r0 = rows / grains * grain;

                ref_zero(part[grain], columns);
                for (uint64_t r = r0; r < r0 + rows / grains; r++) {
                    ref_chain_step(part[grain], x[r * m + i], g + r * n + j0,
                                   columns);
                }
            }
            ref_tree(part, grains, columns);
            for (uint64_t j = 0; j < columns; j++) {
                w[i * n + j0 + j] = part[0][j];
            }
        }
    }
    return FSDP_OK;
}
