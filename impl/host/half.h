/* SPDX-License-Identifier: Apache-2.0 */
/*
 * half.h - the casts of <fsdp/arith/> without branches, so that loops over
 * them vectorise, and such loops: `widen` to float32, `narrow` from it.
 * host_arith_test.c compares them for all inputs.
 */
#ifndef FSDP_CTS_HALF_H
#define FSDP_CTS_HALF_H

#include "level.h"

#include <fsdp/model.h>
#include <stdint.h>
#include <string.h>

#ifdef __F16C__
#    include <immintrin.h>
#endif

/* By integers: instructions for it may flush subnormals. */
HOST_INLINE uint16_t half_bf16_of(uint32_t bits)
{
    uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
    uint32_t quiet = bits | 0x400000;

    return (uint16_t)(((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded) >>
                      16);
}

HOST_INLINE float half_float(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

HOST_INLINE uint32_t half_bits(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

HOST_INLINE uint16_t half_f16_of(uint32_t bits)
{
    uint32_t magnitude = bits & 0x7fffffff;
    uint32_t normal =
        (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    /* From 1/2 on floats are 2^-24 apart, as f16 is below its least normal:
     * the addition rounds. What is larger does not come here. */
    uint32_t small = magnitude < 0x38800000 ? magnitude : 0;
    uint32_t subnormal = half_bits(half_float(small) + 0.5f) - 0x3f000000;
    uint32_t nan = 0x7e00 | (magnitude >> 13 & 0x1ff);
    uint32_t result = magnitude < 0x38800000 ? subnormal : normal;

    result = magnitude >= 0x47800000 ? 0x7c00 : result;
    result = magnitude > 0x7f800000 ? nan : result;
    return (uint16_t)(bits >> 16 & 0x8000) | (uint16_t)result;
}

HOST_INLINE uint32_t half_f16_bits(uint16_t x)
{
    uint32_t magnitude = x & 0x7fffu;
    uint32_t shifted = magnitude << 13;
    uint32_t normal = shifted + (112u << 23);
    uint32_t subnormal = half_bits((float)(int32_t)magnitude * 0x1p-24f);
    uint32_t result = magnitude < 0x0400 ? subnormal : normal;

    /* Infinities and NaNs have the greatest exponent. */
    result = magnitude >= 0x7c00 ? shifted + (224u << 23) : result;
    result = magnitude > 0x7c00 ? result | 0x400000 : result;
    return (uint32_t)(x & 0x8000) << 16 | result;
}

/* The instructions for f16 flush nothing, whatever the thread's modes are, and
 * keep NaNs as <fsdp/arith/> does. They take what is a multiple of eight. */
HOST_INLINE uint64_t half_widen_f16(const uint16_t *x, float *y, uint64_t n)
{
    uint64_t i = 0;

#ifdef __F16C__
    for (; n - i >= 8; i += 8) {
        __m128i narrow = _mm_loadu_si128((const __m128i_u *)(x + i));

        _mm256_storeu_ps(y + i, _mm256_cvtph_ps(narrow));
    }
#else
    (void)x;
    (void)y;
    (void)n;
#endif
    return i;
}

HOST_INLINE uint64_t half_narrow_f16(const float *x, uint16_t *y, uint64_t n)
{
    uint64_t i = 0;

#ifdef __F16C__
    for (; n - i >= 8; i += 8) {
        __m256 wide = _mm256_loadu_ps(x + i);

        _mm_storeu_si128((__m128i_u *)(y + i),
                         _mm256_cvtps_ph(wide, _MM_FROUND_TO_NEAREST_INT));
    }
#else
    (void)x;
    (void)y;
    (void)n;
#endif
    return i;
}

/* y[i] = x[i] for i < n, of this dtype; widening is exact. */
HOST_INLINE void half_widen(uint32_t dtype, const void *x, float *y, uint64_t n)
{
    const uint16_t *restrict from = x;
    float *restrict to = y;

    if (dtype == FSDP_DTYPE_BF16) {
        for (uint64_t i = 0; i < n; i++) {
            to[i] = half_float((uint32_t)from[i] << 16);
        }
    } else if (dtype == FSDP_DTYPE_F16) {
        for (uint64_t i = half_widen_f16(x, y, n); i < n; i++) {
            to[i] = half_float(half_f16_bits(from[i]));
        }
    } else {
        memcpy(y, x, n * sizeof(float));
    }
}

/* The reverse, to nearest even. */
HOST_INLINE void half_narrow(uint32_t dtype, const float *x, void *y,
                             uint64_t n)
{
    const float *restrict from = x;
    uint16_t *restrict to = y;

    if (dtype == FSDP_DTYPE_BF16) {
        for (uint64_t i = 0; i < n; i++) {
            to[i] = half_bf16_of(half_bits(from[i]));
        }
    } else if (dtype == FSDP_DTYPE_F16) {
        for (uint64_t i = half_narrow_f16(x, y, n); i < n; i++) {
            to[i] = half_f16_of(half_bits(from[i]));
        }
    } else {
        memcpy(y, x, n * sizeof(float));
    }
}

#endif
