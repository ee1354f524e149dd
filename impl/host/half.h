/* SPDX-License-Identifier: Apache-2.0 */
/*
 * half.h - loops over casts: `widen` to float32, `narrow` from it.
 * host_arith_test.c compares them with <fsdp/arith/>.
 */
#ifndef FSDP_CTS_HALF_H
#define FSDP_CTS_HALF_H

#include "level.h"

#include <fsdp/arith/bf16.h>
#include <fsdp/arith/f16.h>
#include <fsdp/model.h>
#include <stdint.h>
#include <string.h>

#ifdef __F16C__
#    include <immintrin.h>
#endif

/* The instructions for f16 flush nothing, whatever the thread's modes are, and
 * keep NaNs as <fsdp/arith/> does. They take a multiple of eight elements. */
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
            to[i] = fsdp_bf16_to_f32(from[i]);
        }
    } else if (dtype == FSDP_DTYPE_F16) {
        for (uint64_t i = half_widen_f16(x, y, n); i < n; i++) {
            to[i] = fsdp_f16_to_f32(from[i]);
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
            to[i] = fsdp_bf16_from_f32(from[i]);
        }
    } else if (dtype == FSDP_DTYPE_F16) {
        for (uint64_t i = half_narrow_f16(x, y, n); i < n; i++) {
            to[i] = fsdp_f16_from_f32(from[i]);
        }
    } else {
        memcpy(y, x, n * sizeof(float));
    }
}

#endif
