/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_norm.c - NORM, layer normalisation, and NORM_BACKWARD, a row at a time.
 * The gradients of gamma and beta sum over rows: op_columns.c.
 */
#include "ops.h"

#include <fsdp/arith/rsqrt.h>

static float row_mean(const float *x, uint64_t n)
{
    float lane[REF_LANES] = {0.0f};

    for (uint64_t c = 0; c < n; c++) {
        lane[c % REF_LANES] = lane[c % REF_LANES] + x[c];
    }
    return ref_lanes_fold(lane) / (float)n;
}

static float row_variance(const float *x, float mean, uint64_t n)
{
    float lane[REF_LANES] = {0.0f};

    for (uint64_t c = 0; c < n; c++) {
        float d = x[c] - mean;

        lane[c % REF_LANES] = ref_fma(d, d, lane[c % REF_LANES]);
    }
    return ref_lanes_fold(lane) / (float)n;
}

int REF_NAME(ref_norm)(const struct fsdp_op *op)
{
    uint64_t rows = op->dim[0];
    uint64_t n = op->dim[1];
    const float *gamma = op->in[1].p;
    const float *beta = op->in[2].p;
    float *stat = op->out[1].p;

    FSDP_TRY(ref_lengths(op, (uint64_t[]){ref_words(rows, n), ref_words(n, 1),
                                          ref_words(n, 1), ref_words(rows, n),
                                          ref_words(rows, 2)}));
    for (uint64_t row = 0; row < rows; row++) {
        const float *x = (const float *)op->in[0].p + row * n;
        float *y = (float *)op->out[0].p + row * n;
        float mean = row_mean(x, n);
        float r = fsdp_rsqrtf(row_variance(x, mean, n) + op->f[0]);

        for (uint64_t c = 0; c < n; c++) {
            float d = x[c] - mean;

            y[c] = ref_fma(d * r, gamma[c], beta[c]);
        }
        stat[row * 2] = mean;
        stat[row * 2 + 1] = r;
    }
    return FSDP_OK;
}

static void norm_backward_row(const float *x, const float *gamma,
                              const float *stat, const float *dy, float *dx,
                              uint64_t n)
{
    float mean = stat[0];
    float r = stat[1];
    float lane_1[REF_LANES] = {0.0f};
    float lane_2[REF_LANES] = {0.0f};
    float s1;
    float s2;

    for (uint64_t c = 0; c < n; c++) {
        uint64_t l = c % REF_LANES;
        float h = (x[c] - mean) * r;
        float g = dy[c] * gamma[c];

        lane_1[l] = lane_1[l] + g;
        lane_2[l] = ref_fma(g, h, lane_2[l]);
    }
    s1 = ref_lanes_fold(lane_1) / (float)n;
    s2 = ref_lanes_fold(lane_2) / (float)n;
    for (uint64_t c = 0; c < n; c++) {
        float h = (x[c] - mean) * r;
        float g = dy[c] * gamma[c];

        dx[c] = r * ref_fma(-h, s2, g - s1);
    }
}

int REF_NAME(ref_norm_backward)(const struct fsdp_op *op)
{
    uint64_t rows = op->dim[0];
    uint64_t n = op->dim[1];
    const float *x = op->in[0].p;
    const float *gamma = op->in[1].p;
    const float *stat = op->in[2].p;
    const float *dy = op->in[3].p;
    float *dx = op->out[0].p;

    FSDP_TRY(
        ref_lengths(op, (uint64_t[]){ref_words(rows, n), ref_words(n, 1),
                                     ref_words(rows, 2), ref_words(rows, n),
                                     ref_words(rows, n)}));
    for (uint64_t row = 0; row < rows; row++) {
        norm_backward_row(x + row * n, gamma, stat + row * 2, dy + row * n,
                          dx + row * n, n);
    }
    return FSDP_OK;
}
