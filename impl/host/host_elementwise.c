/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_elementwise.c - the operators whose every element is a function of the
 * elements in its own place, as loops that the compiler vectorises.
 */
#include "host_arith.h"
#include "operators.h"
#include "vec.h"

int HOST_NAME(host_fill)(const struct fsdp_op *op, struct workspace *ws)
{
    float *x = op->out[0].p;
    float value = op->f[0];

    (void)ws;
    for (uint64_t i = 0; i < op->dim[0]; i++) {
        x[i] = value;
    }
    return FSDP_OK;
}

int HOST_NAME(host_scale)(const struct fsdp_op *op, struct workspace *ws)
{
    float *x = op->out[0].p;
    float factor = op->f[0];

    (void)ws;
    for (uint64_t i = 0; i < op->dim[0]; i++) {
        x[i] = x[i] * factor;
    }
    return FSDP_OK;
}

int HOST_NAME(host_add)(const struct fsdp_op *op, struct workspace *ws)
{
    const float *a = op->in[0].p;
    const float *b = op->in[1].p;
    float *y = op->out[0].p;

    (void)ws;
    HOST_INDEPENDENT
    for (uint64_t i = 0; i < op->dim[0]; i++) {
        y[i] = a[i] + b[i];
    }
    return FSDP_OK;
}

int HOST_NAME(host_copy_2d)(const struct fsdp_op *op, struct workspace *ws)
{
    uint64_t rows = op->dim[0];
    uint64_t row_bytes = op->dim[1];
    const unsigned char *from = op->in[0].p;
    unsigned char *to = op->out[0].p;

    (void)ws;
    if (row_bytes == 0) {
        return FSDP_OK;
    }
    for (uint64_t r = 0; r < rows; r++) {
        memcpy(to + r * op->dim[2], from + r * op->dim[3], row_bytes);
    }
    return FSDP_OK;
}

/* To nearest even, by integers: instructions for it may flush subnormals. */
HOST_INLINE uint16_t bf16_of(uint32_t bits)
{
    uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
    uint32_t quiet = bits | 0x400000;

    return (uint16_t)(((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded) >>
                      16);
}

int HOST_NAME(host_cast)(const struct fsdp_op *op, struct workspace *ws)
{
    uint64_t n = op->dim[0];

    (void)ws;
    if (op->aux[0] == FSDP_DTYPE_F32) {
        const uint32_t *restrict x = op->in[0].p;
        uint16_t *restrict y = op->out[0].p;

        for (uint64_t i = 0; i < n; i++) {
            y[i] = bf16_of(x[i]);
        }
    } else {
        const uint16_t *restrict x = op->in[0].p;
        uint32_t *restrict y = op->out[0].p;

        for (uint64_t i = 0; i < n; i++) {
            y[i] = (uint32_t)x[i] << 16;
        }
    }
    return FSDP_OK;
}

int HOST_NAME(host_bias)(const struct fsdp_op *op, struct workspace *ws)
{
    uint64_t rows = op->dim[0];
    uint64_t n = op->dim[1];
    const float *x = op->in[0].p;
    const float *b = op->in[1].p;
    float *y = op->out[0].p;

    (void)ws;
    for (uint64_t r = 0; r < rows && n > 0; r++) {
        HOST_INDEPENDENT
        for (uint64_t j = 0; j < n; j++) {
            y[r * n + j] = x[r * n + j] + b[j];
        }
    }
    return FSDP_OK;
}

/* y if x > 0, NaN if x is NaN, else +0. */
HOST_INLINE float where_positive(float x, float y)
{
    float rest = x != x ? x : 0.0f;

    return x > 0.0f ? y : rest;
}

int HOST_NAME(host_relu)(const struct fsdp_op *op, struct workspace *ws)
{
    const float *x = op->in[0].p;
    float *y = op->out[0].p;

    (void)ws;
    HOST_INDEPENDENT
    for (uint64_t i = 0; i < op->dim[0]; i++) {
        y[i] = where_positive(x[i], x[i]);
    }
    return FSDP_OK;
}

int HOST_NAME(host_relu_backward)(const struct fsdp_op *op,
                                  struct workspace *ws)
{
    const float *x = op->in[0].p;
    const float *dy = op->in[1].p;
    float *dx = op->out[0].p;

    (void)ws;
    HOST_INDEPENDENT
    for (uint64_t i = 0; i < op->dim[0]; i++) {
        float d = dy[i];

        dx[i] = where_positive(x[i], d);
    }
    return FSDP_OK;
}

static const float gelu_a = 0.044715f;
static const float gelu_a3 = 0.134145f;
static const float gelu_c = 0.797884561f;

HOST_INLINE float gelu_tanh(float x)
{
    return host_tanhf(gelu_c * host_fmaf(gelu_a * (x * x), x, x));
}

int HOST_NAME(host_gelu)(const struct fsdp_op *op, struct workspace *ws)
{
    const float *restrict x = op->in[0].p;
    float *restrict y = op->out[0].p;

    (void)ws;
    for (uint64_t i = 0; i < op->dim[0]; i++) {
        y[i] = (0.5f * x[i]) * (1.0f + gelu_tanh(x[i]));
    }
    return FSDP_OK;
}

int HOST_NAME(host_gelu_backward)(const struct fsdp_op *op,
                                  struct workspace *ws)
{
    const float *x = op->in[0].p;
    const float *dy = op->in[1].p;
    float *dx = op->out[0].p;

    (void)ws;
    HOST_INDEPENDENT
    for (uint64_t i = 0; i < op->dim[0]; i++) {
        float t = gelu_tanh(x[i]);
        float v = gelu_c * host_fmaf(gelu_a3, x[i] * x[i], 1.0f);
        float slope = host_fmaf(-t, t, 1.0f);

        dx[i] = dy[i] * host_fmaf((0.5f * x[i]) * slope, v, 0.5f * (1.0f + t));
    }
    return FSDP_OK;
}
