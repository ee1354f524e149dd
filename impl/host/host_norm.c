/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_norm.c - NORM and NORM_BACKWARD, a row at a time.
 */
#include "lanes.h"
#include "operators.h"

#include <fsdp/arith/rsqrt.h>

static float row_variance(const float *x, float mean, uint64_t n)
{
    uint64_t whole = lanes_whole(n);
    struct lanes acc = {0};
    float lane[LANES];

    for (uint64_t c = 0; c < whole; c += LANES) {
        HOST_UNROLL
        for (int v = 0; v < LANES_VECS; v++) {
            vec d = vec_load(x + c + (uint64_t)v * VEC_WIDTH) - vec_splat(mean);

            lanes_fma(&acc, v, d, d);
        }
    }
    lanes_store(&acc, lane);
    for (uint64_t c = whole; c < n; c++) {
        float d = x[c] - mean;

        lane[c - whole] = host_fmaf(d, d, lane[c - whole]);
    }
    return lanes_fold(lane) / (float)n;
}

int HOST_NAME(host_norm)(const struct fsdp_op *op, struct workspace *ws)
{
    uint64_t n = op->dim[1];
    const float *restrict gamma = op->in[1].p;
    const float *restrict beta = op->in[2].p;
    float *restrict stat = op->out[1].p;

    (void)ws;
    for (uint64_t row = 0; row < op->dim[0]; row++) {
        const float *restrict x = (const float *)op->in[0].p + row * n;
        float *restrict y = (float *)op->out[0].p + row * n;
        float mean = lanes_sum(x, n) / (float)n;
        float r = fsdp_rsqrtf(row_variance(x, mean, n) + op->f[0]);

        for (uint64_t c = 0; c < n; c++) {
            y[c] = host_fmaf((x[c] - mean) * r, gamma[c], beta[c]);
        }
        stat[row * 2] = mean;
        stat[row * 2 + 1] = r;
    }
    return FSDP_OK;
}

/* s1 and s2 of a row. */
static void backward_sums(const float *x, const float *gamma, const float *stat,
                          const float *dy, uint64_t n, float s[2])
{
    uint64_t whole = lanes_whole(n);
    struct lanes acc_1 = {0};
    struct lanes acc_2 = {0};
    float lane_1[LANES];
    float lane_2[LANES];

    for (uint64_t c = 0; c < whole; c += LANES) {
        HOST_UNROLL
        for (int v = 0; v < LANES_VECS; v++) {
            uint64_t at = c + (uint64_t)v * VEC_WIDTH;
            vec h =
                (vec_load(x + at) - vec_splat(stat[0])) * vec_splat(stat[1]);
            vec g = vec_load(dy + at) * vec_load(gamma + at);

            lanes_add(&acc_1, v, g);
            lanes_fma(&acc_2, v, g, h);
        }
    }
    lanes_store(&acc_1, lane_1);
    lanes_store(&acc_2, lane_2);
    for (uint64_t c = whole; c < n; c++) {
        float h = (x[c] - stat[0]) * stat[1];
        float g = dy[c] * gamma[c];

        lane_1[c - whole] = lane_1[c - whole] + g;
        lane_2[c - whole] = host_fmaf(g, h, lane_2[c - whole]);
    }
    s[0] = lanes_fold(lane_1) / (float)n;
    s[1] = lanes_fold(lane_2) / (float)n;
}

int HOST_NAME(host_norm_backward)(const struct fsdp_op *op,
                                  struct workspace *ws)
{
    uint64_t n = op->dim[1];
    const float *restrict gamma = op->in[1].p;

    (void)ws;
    for (uint64_t row = 0; row < op->dim[0]; row++) {
        const float *restrict x = (const float *)op->in[0].p + row * n;
        const float *stat = (const float *)op->in[2].p + row * 2;
        const float *restrict dy = (const float *)op->in[3].p + row * n;
        float *restrict dx = (float *)op->out[0].p + row * n;
        float mean = stat[0];
        float r = stat[1];
        float s[2];

        backward_sums(x, gamma, stat, dy, n, s);
        for (uint64_t c = 0; c < n; c++) {
            float h = (x[c] - mean) * r;

            dx[c] = r * host_fmaf(-h, s[1], dy[c] * gamma[c] - s[0]);
        }
    }
    return FSDP_OK;
}
