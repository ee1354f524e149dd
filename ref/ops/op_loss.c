/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_loss.c - MSE, LINEAR_LOSS and CROSS_ENTROPY: each gives the loss of every
 * row, and the gradient of their sum times f[0].
 */
#include "ops.h"

#include <fsdp/arith/exp.h>
#include <fsdp/arith/log.h>

int REF_NAME(ref_mse)(const struct fsdp_op *op)
{
    uint64_t rows = op->dim[0];
    uint64_t n = op->dim[1];
    const float *y = op->in[0].p;
    const float *target = op->in[1].p;
    float *row_loss = op->out[0].p;
    float *dy = op->out[1].p;

    FSDP_TRY(
        ref_lengths(op, (uint64_t[]){ref_words(rows, n), ref_words(rows, n),
                                     ref_words(rows, 1), ref_words(rows, n)}));
    for (uint64_t r = 0; r < rows; r++) {
        float lane[REF_LANES] = {0.0f};

        for (uint64_t c = 0; c < n; c++) {
            float d = y[r * n + c] - target[r * n + c];

            lane[c % REF_LANES] = ref_fma(d, d, lane[c % REF_LANES]);
            dy[r * n + c] = op->f[0] * d;
        }
        row_loss[r] = ref_lanes_fold(lane);
    }
    return FSDP_OK;
}

int REF_NAME(ref_linear_loss)(const struct fsdp_op *op)
{
    uint64_t rows = op->dim[0];
    uint64_t n = op->dim[1];
    const float *y = op->in[0].p;
    const float *factor = op->in[1].p;
    float *row_loss = op->out[0].p;
    float *dy = op->out[1].p;

    FSDP_TRY(
        ref_lengths(op, (uint64_t[]){ref_words(rows, n), ref_words(rows, n),
                                     ref_words(rows, 1), ref_words(rows, n)}));
    for (uint64_t r = 0; r < rows; r++) {
        float lane[REF_LANES] = {0.0f};

        for (uint64_t j = 0; j < n; j++) {
            uint64_t l = j % REF_LANES;

            lane[l] = ref_fma(y[r * n + j], factor[r * n + j], lane[l]);
            dy[r * n + j] = op->f[0] * factor[r * n + j];
        }
        row_loss[r] = ref_lanes_fold(lane);
    }
    return FSDP_OK;
}

/* One row; dx may be x, so x is read for the last time where e is written. */
static float cross_entropy_row(const float *x, uint64_t n, uint64_t id,
                               float factor, float *dx)
{
    float lane[REF_LANES] = {0.0f};
    float m = -__builtin_inff();
    float x_id = x[id];
    float s;

    for (uint64_t c = 0; c < n; c++) {
        m = ref_maximum(m, x[c]);
    }
    for (uint64_t c = 0; c < n; c++) {
        float e = fsdp_expf(x[c] - m);

        lane[c % REF_LANES] = lane[c % REF_LANES] + e;
        dx[c] = e;
    }
    s = ref_lanes_fold(lane);
    for (uint64_t c = 0; c < n; c++) {
        dx[c] = (dx[c] / s - (c == id ? 1.0f : 0.0f)) * factor;
    }
    return fsdp_logf(s) - (x_id - m);
}

int REF_NAME(ref_cross_entropy)(const struct fsdp_op *op)
{
    uint64_t rows = op->dim[0];
    uint64_t n = op->dim[1];
    const float *x = op->in[0].p;
    const int32_t *id = op->in[1].p;
    float *row_loss = op->out[0].p;
    float *dx = op->out[1].p;

    FSDP_TRY(
        ref_lengths(op, (uint64_t[]){ref_words(rows, n), ref_words(rows, 1),
                                     ref_words(rows, 1), ref_words(rows, n)}));
    for (uint64_t r = 0; r < rows; r++) {
        if (id[r] < 0 || (uint64_t)id[r] >= n) {
            return FSDP_ERR_INVALID;
        }
    }
    for (uint64_t r = 0; r < rows; r++) {
        row_loss[r] = cross_entropy_row(x + r * n, n, (uint64_t)id[r], op->f[0],
                                        dx + r * n);
    }
    return FSDP_OK;
}
