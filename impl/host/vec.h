/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vec.h - a vector of floats, as wide as the registers of the level, in the
 * vector extensions of the compiler; and fma() where there is no instruction.
 */
#ifndef FSDP_CTS_VEC_H
#define FSDP_CTS_VEC_H

#include "level.h"

#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#    include <immintrin.h>
#    define VEC_WIDTH 16
#elif defined(__AVX2__) && defined(__FMA__)
#    include <immintrin.h>
#    define VEC_WIDTH 8
#else
#    define VEC_WIDTH 4
#endif

typedef float vec __attribute__((vector_size(4 * VEC_WIDTH)));
typedef int32_t vec_bits __attribute__((vector_size(4 * VEC_WIDTH)));
/* The same, where memory is aligned to floats only. */
typedef float vec_at
    __attribute__((vector_size(4 * VEC_WIDTH), aligned(4), may_alias));
typedef int32_t vec_bits_at
    __attribute__((vector_size(4 * VEC_WIDTH), aligned(4), may_alias));

HOST_INLINE vec vec_load(const float *p)
{
    return *(const vec_at *)p;
}

HOST_INLINE void vec_store(float *p, vec x)
{
    *(vec_at *)p = x;
}

HOST_INLINE vec vec_splat(float x)
{
    vec zero = {0.0f};

    /* x - 0 is x, whatever x is. */
    return x - zero;
}

/* a where the mask is set, b elsewhere. */
HOST_INLINE vec vec_select(vec_bits mask, vec a, vec b)
{
    return (vec)((mask & (vec_bits)a) | (~mask & (vec_bits)b));
}

#ifdef __FP_FAST_FMAF
HOST_INLINE float host_fmaf(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}
#else
/*
 * fma() in doubles. The product is exact, and so is the error of the sum, by
 * which the sum is rounded to odd: to that one of its two neighbours among the
 * doubles that is never half-way between two floats, so that rounding once more
 * is right. Where a value is not finite the error is NaN and the sum stays.
 */
HOST_INLINE float host_fmaf(float a, float b, float c)
{
    double product = (double)a * (double)b;
    double sum = product + (double)c;
    double part = sum - product;
    double error = (product - (sum - part)) + ((double)c - part);
    uint64_t bits;
    uint64_t error_bits;
    uint64_t step;
    uint64_t toward_zero;

    memcpy(&bits, &sum, sizeof(bits));
    memcpy(&error_bits, &error, sizeof(error_bits));
    step = (uint64_t)(error < 0.0 || error > 0.0) & ~bits & 1;
    toward_zero = (bits ^ error_bits) >> 63;
    bits = bits + step - ((step & toward_zero) << 1);
    memcpy(&sum, &bits, sizeof(sum));
    return (float)sum;
}
#endif

HOST_INLINE vec vec_fma(vec a, vec b, vec c)
{
#if VEC_WIDTH == 16
    return (vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif VEC_WIDTH == 8
    return (vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    for (int l = 0; l < VEC_WIDTH; l++) {
        c[l] = host_fmaf(a[l], b[l], c[l]);
    }
    return c;
#endif
}

#endif
