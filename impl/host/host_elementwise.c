/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_elementwise.c - the operators each of whose elements is a function of
 * the elements in the same place, as loops that the compiler vectorises.
 */
#include "half.h"
#include "host_arith.h"
#include "operators.h"
#include "vec.h"

/* As many elements as a step of a loop over 16 bits takes, so that the widened
 * values stay in the first level cache. */
enum {
    BLOCK = 1024
};

HOST_INLINE uint64_t block_of(const struct fsdp_op *op, uint64_t first)
{
    return op->dim[0] - first < BLOCK ? op->dim[0] - first : BLOCK;
}

HOST_INLINE uint32_t dtype_of(uint32_t aux)
{
    return aux != FSDP_DTYPE_NONE ? aux : FSDP_DTYPE_F32;
}

int HOST_NAME(host_fill)(const struct fsdp_op *op, struct workspace *ws)
{
    float *x = op->out[0].p;
    uint16_t *narrow = op->out[0].p;
    float value = op->f[0];

    (void)ws;
    if (dtype_of(op->aux[0]) != FSDP_DTYPE_F32) {
        uint16_t rounded[2]; /* room for a float32, which it is not */

        half_narrow(op->aux[0], &value, rounded, 1);
        for (uint64_t i = 0; i < op->dim[0]; i++) {
            narrow[i] = rounded[0];
        }
        return FSDP_OK;
    }
    for (uint64_t i = 0; i < op->dim[0]; i++) {
        x[i] = value;
    }
    return FSDP_OK;
}

static int scale_half(const struct fsdp_op *op)
{
    float wide[BLOCK];
    uint16_t *x = op->out[0].p;

    for (uint64_t first = 0; first < op->dim[0]; first += BLOCK) {
        uint64_t n = block_of(op, first);

        half_widen(op->aux[0], x + first, wide, n);
        for (uint64_t i = 0; i < n; i++) {
            wide[i] = wide[i] * op->f[0];
        }
        half_narrow(op->aux[0], wide, x + first, n);
    }
    return FSDP_OK;
}

int HOST_NAME(host_scale)(const struct fsdp_op *op, struct workspace *ws)
{
    float *x = op->out[0].p;
    float factor = op->f[0];

    (void)ws;
    if (dtype_of(op->aux[0]) != FSDP_DTYPE_F32) {
        return scale_half(op);
    }
    for (uint64_t i = 0; i < op->dim[0]; i++) {
        x[i] = x[i] * factor;
    }
    return FSDP_OK;
}

static int add_half(const struct fsdp_op *op)
{
    uint32_t a_dtype = dtype_of(op->aux[0]);
    uint32_t b_dtype = dtype_of(op->aux[1]);
    uint64_t a_bytes = fsdp_dtype_bytes(a_dtype);
    uint64_t b_bytes = fsdp_dtype_bytes(b_dtype);
    const unsigned char *a = op->in[0].p;
    const unsigned char *b = op->in[1].p;
    unsigned char *y = op->out[0].p;
    float sum[BLOCK];
    float wide[BLOCK];

    for (uint64_t first = 0; first < op->dim[0]; first += BLOCK) {
        uint64_t n = block_of(op, first);

        half_widen(a_dtype, a + first * a_bytes, sum, n);
        half_widen(b_dtype, b + first * b_bytes, wide, n);
        for (uint64_t i = 0; i < n; i++) {
            sum[i] = sum[i] + wide[i];
        }
        half_narrow(a_dtype, sum, y + first * a_bytes, n);
    }
    return FSDP_OK;
}

int HOST_NAME(host_add)(const struct fsdp_op *op, struct workspace *ws)
{
    const float *a = op->in[0].p;
    const float *b = op->in[1].p;
    float *y = op->out[0].p;

    (void)ws;
    if (dtype_of(op->aux[0]) != FSDP_DTYPE_F32 ||
        dtype_of(op->aux[1]) != FSDP_DTYPE_F32) {
        return add_half(op);
    }
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

int HOST_NAME(host_cast)(const struct fsdp_op *op, struct workspace *ws)
{
    const uint16_t *x = op->in[0].p;
    uint16_t *y = op->out[0].p;
    float wide[BLOCK];

    (void)ws;
    if (op->aux[1] == FSDP_DTYPE_F32) {
        half_widen(op->aux[0], x, op->out[0].p, op->dim[0]);
        return FSDP_OK;
    }
    if (op->aux[0] == FSDP_DTYPE_F32) {
        half_narrow(op->aux[1], op->in[0].p, y, op->dim[0]);
        return FSDP_OK;
    }
    for (uint64_t first = 0; first < op->dim[0]; first += BLOCK) {
        uint64_t n = block_of(op, first);

        half_widen(op->aux[0], x + first, wide, n);
        half_narrow(op->aux[1], wide, y + first, n);
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
