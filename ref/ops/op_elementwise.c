/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_elementwise.c - the operators whose every element is a function of the
 * elements in its own place: FILL, SCALE, ADD, COPY_2D, CAST, BIAS, RELU, GELU
 * and the backwards of the last two.
 */
#include "ops.h"

#include <fsdp/arith/cast.h>
#include <fsdp/arith/tanh.h>
#include <string.h>

/* The dtype that an operator names; without a name it is float32. */
static uint32_t named(uint32_t aux)
{
    return aux != FSDP_DTYPE_NONE ? aux : FSDP_DTYPE_F32;
}

static uint64_t bytes_of(uint32_t dtype, uint64_t n)
{
    return ref_times(n, fsdp_dtype_bytes(dtype));
}

int REF_NAME(ref_fill)(const struct fsdp_op *op)
{
    uint64_t n = op->dim[0];
    uint32_t dtype = named(op->aux[0]);

    if (!fsdp_is_float(dtype)) {
        return FSDP_ERR_UNSUPPORTED;
    }
    FSDP_TRY(ref_lengths(op, (uint64_t[]){bytes_of(dtype, n)}));
    for (uint64_t i = 0; i < n; i++) {
        fsdp_store(dtype, op->out[0].p, i, op->f[0]);
    }
    return FSDP_OK;
}

int REF_NAME(ref_scale)(const struct fsdp_op *op)
{
    uint64_t n = op->dim[0];
    uint32_t dtype = named(op->aux[0]);
    void *x = op->out[0].p;

    if (!fsdp_is_float(dtype)) {
        return FSDP_ERR_UNSUPPORTED;
    }
    FSDP_TRY(
        ref_lengths(op, (uint64_t[]){bytes_of(dtype, n), bytes_of(dtype, n)}));
    for (uint64_t i = 0; i < n; i++) {
        fsdp_store(dtype, x, i, fsdp_load(dtype, x, i) * op->f[0]);
    }
    return FSDP_OK;
}

int REF_NAME(ref_add)(const struct fsdp_op *op)
{
    uint64_t n = op->dim[0];
    uint32_t dtype = named(op->aux[0]); /* of a and of y */
    uint32_t b_dtype = named(op->aux[1]);
    const void *a = op->in[0].p;
    const void *b = op->in[1].p;

    if (!fsdp_is_float(dtype) || !fsdp_is_float(b_dtype)) {
        return FSDP_ERR_UNSUPPORTED;
    }
    if (n > 0 && op->out[0].p == b && dtype != b_dtype) {
        return FSDP_ERR_INVALID;
    }
    FSDP_TRY(
        ref_lengths(op, (uint64_t[]){bytes_of(dtype, n), bytes_of(b_dtype, n),
                                     bytes_of(dtype, n)}));
    for (uint64_t i = 0; i < n; i++) {
        fsdp_store(dtype, op->out[0].p, i,
                   fsdp_load(dtype, a, i) + fsdp_load(b_dtype, b, i));
    }
    return FSDP_OK;
}

/* From the first byte of the first row to the last byte of the last. */
static uint64_t span(uint64_t rows, uint64_t row_bytes, uint64_t stride)
{
    uint64_t bytes;

    if (rows == 0 || row_bytes == 0) {
        return 0;
    }
    if (__builtin_add_overflow(ref_times(rows - 1, stride), row_bytes,
                               &bytes)) {
        return UINT64_MAX;
    }
    return bytes;
}

int REF_NAME(ref_copy_2d)(const struct fsdp_op *op)
{
    uint64_t rows = op->dim[0];
    uint64_t row_bytes = op->dim[1];
    uint64_t to_stride = op->dim[2];
    uint64_t from_stride = op->dim[3];
    const unsigned char *from = op->in[0].p;
    unsigned char *to = op->out[0].p;

    FSDP_TRY(ref_lengths(op, (uint64_t[]){span(rows, row_bytes, from_stride),
                                          span(rows, row_bytes, to_stride)}));
    if (rows > 1 && to_stride < row_bytes) {
        return FSDP_ERR_INVALID;
    }
    if (row_bytes == 0) {
        return FSDP_OK;
    }
    for (uint64_t r = 0; r < rows; r++) {
        memcpy(to + r * to_stride, from + r * from_stride, row_bytes);
    }
    return FSDP_OK;
}

int REF_NAME(ref_cast)(const struct fsdp_op *op)
{
    uint64_t n = op->dim[0];
    uint32_t from = op->aux[0];
    uint32_t to = op->aux[1];

    if (!fsdp_is_float(from) || !fsdp_is_float(to)) {
        return FSDP_ERR_UNSUPPORTED;
    }
    FSDP_TRY(ref_lengths(op, (uint64_t[]){bytes_of(from, n), bytes_of(to, n)}));
    for (uint64_t i = 0; i < n; i++) {
        fsdp_store(to, op->out[0].p, i, fsdp_load(from, op->in[0].p, i));
    }
    return FSDP_OK;
}

int REF_NAME(ref_bias)(const struct fsdp_op *op)
{
    uint64_t rows = op->dim[0];
    uint64_t n = op->dim[1];
    const float *x = op->in[0].p;
    const float *b = op->in[1].p;
    float *y = op->out[0].p;

    FSDP_TRY(ref_lengths(op, (uint64_t[]){ref_words(rows, n), ref_words(n, 1),
                                          ref_words(rows, n)}));
    for (uint64_t r = 0; r < rows; r++) {
        for (uint64_t j = 0; j < n; j++) {
            y[r * n + j] = x[r * n + j] + b[j];
        }
    }
    return FSDP_OK;
}

/* y if x > 0, NaN if x is NaN, else +0. */
static float where_positive(float x, float y)
{
    if (x != x) {
        return x;
    }
    return x > 0.0f ? y : 0.0f;
}

int REF_NAME(ref_relu)(const struct fsdp_op *op)
{
    uint64_t n = op->dim[0];
    const float *x = op->in[0].p;
    float *y = op->out[0].p;

    FSDP_TRY(ref_lengths(op, (uint64_t[]){ref_words(n, 1), ref_words(n, 1)}));
    for (uint64_t i = 0; i < n; i++) {
        y[i] = where_positive(x[i], x[i]);
    }
    return FSDP_OK;
}

int REF_NAME(ref_relu_backward)(const struct fsdp_op *op)
{
    uint64_t n = op->dim[0];
    const float *x = op->in[0].p;
    const float *dy = op->in[1].p;
    float *dx = op->out[0].p;

    FSDP_TRY(ref_lengths(
        op, (uint64_t[]){ref_words(n, 1), ref_words(n, 1), ref_words(n, 1)}));
    for (uint64_t i = 0; i < n; i++) {
        dx[i] = where_positive(x[i], dy[i]);
    }
    return FSDP_OK;
}

static const float gelu_a = 0.044715f;
static const float gelu_a3 = 0.134145f;
static const float gelu_c = 0.797884561f; /* sqrt(2 / pi) */

static float gelu_tanh(float x)
{
    float u = gelu_c * ref_fma(gelu_a * (x * x), x, x);

    return fsdp_tanhf(u);
}

int REF_NAME(ref_gelu)(const struct fsdp_op *op)
{
    uint64_t n = op->dim[0];
    const float *x = op->in[0].p;
    float *y = op->out[0].p;

    FSDP_TRY(ref_lengths(op, (uint64_t[]){ref_words(n, 1), ref_words(n, 1)}));
    for (uint64_t i = 0; i < n; i++) {
        float t = gelu_tanh(x[i]);

        y[i] = (0.5f * x[i]) * (1.0f + t);
    }
    return FSDP_OK;
}

int REF_NAME(ref_gelu_backward)(const struct fsdp_op *op)
{
    uint64_t n = op->dim[0];
    const float *x = op->in[0].p;
    const float *dy = op->in[1].p;
    float *dx = op->out[0].p;

    FSDP_TRY(ref_lengths(
        op, (uint64_t[]){ref_words(n, 1), ref_words(n, 1), ref_words(n, 1)}));
    for (uint64_t i = 0; i < n; i++) {
        float t = gelu_tanh(x[i]);
        float v = gelu_c * ref_fma(gelu_a3, x[i] * x[i], 1.0f);
        float slope = ref_fma(-t, t, 1.0f);

        dx[i] = dy[i] * ref_fma((0.5f * x[i]) * slope, v, 0.5f * (1.0f + t));
    }
    return FSDP_OK;
}
