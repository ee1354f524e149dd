/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_half_loops.h - the loops of world_half.h. Each file that includes them
 * compiles them with its own instructions. Blocks of eight may lie anywhere:
 * all of a block is read before any of it is written.
 */
#ifndef FSDP_CTS_WORLD_HALF_LOOPS_H
#define FSDP_CTS_WORLD_HALF_LOOPS_H

#include "world_half.h"

#include <fsdp/arith/bf16.h>
#include <fsdp/arith/f16.h>

#include <string.h>

#ifdef __F16C__
#    include <immintrin.h>
#endif

enum {
    EIGHT = 8
};

/* ---- Blocks ------------------------------------------------------------ */

static inline void bf16_widen_8(const uint16_t *x, float *y)
{
    for (int i = 0; i < EIGHT; i++) {
        y[i] = fsdp_bf16_to_f32(x[i]);
    }
}

static inline void bf16_narrow_8(const float *x, uint16_t *y)
{
    for (int i = 0; i < EIGHT; i++) {
        y[i] = fsdp_bf16_from_f32(x[i]);
    }
}

/* The instructions for F16 flush nothing and keep NaNs as f16.h does. */
static inline void f16_widen_8(const uint16_t *x, float *y)
{
#ifdef __F16C__
    _mm256_storeu_ps(y, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i_u *)x)));
#else
    for (int i = 0; i < EIGHT; i++) {
        y[i] = fsdp_f16_to_f32(x[i]);
    }
#endif
}

static inline void f16_narrow_8(const float *x, uint16_t *y)
{
#ifdef __F16C__
    _mm_storeu_si128(
        (__m128i_u *)y,
        _mm256_cvtps_ph(_mm256_loadu_ps(x), _MM_FROUND_TO_NEAREST_INT));
#else
    for (int i = 0; i < EIGHT; i++) {
        y[i] = fsdp_f16_from_f32(x[i]);
    }
#endif
}

/* ---- Loops ------------------------------------------------------------- */

/* Makes the loops for a format whose blocks of eight are converted by
 * FORMAT_widen_8 and FORMAT_narrow_8, and its elements by LOAD and STORE. */
#define WORLD_HALF_LOOPS(FORMAT, LOAD, STORE)                                  \
    static void FORMAT##_widen(const uint16_t *x, uint64_t n, float *y)        \
    {                                                                          \
        uint64_t i = 0;                                                        \
        for (; n - i >= EIGHT; i += EIGHT) {                                   \
            FORMAT##_widen_8(x + i, y + i);                                    \
        }                                                                      \
        for (; i < n; i++) {                                                   \
            y[i] = LOAD(x[i]);                                                 \
        }                                                                      \
    }                                                                          \
    static void FORMAT##_narrow(const float *x, uint64_t n, uint16_t *y)       \
    {                                                                          \
        uint64_t i = 0;                                                        \
        for (; n - i >= EIGHT; i += EIGHT) {                                   \
            FORMAT##_narrow_8(x + i, y + i);                                   \
        }                                                                      \
        for (; i < n; i++) {                                                   \
            y[i] = STORE(x[i]);                                                \
        }                                                                      \
    }                                                                          \
    static void FORMAT##_round(float *x, uint64_t n)                           \
    {                                                                          \
        uint64_t i = 0;                                                        \
        for (; n - i >= EIGHT; i += EIGHT) {                                   \
            uint16_t narrow[EIGHT];                                            \
            FORMAT##_narrow_8(x + i, narrow);                                  \
            FORMAT##_widen_8(narrow, x + i);                                   \
        }                                                                      \
        for (; i < n; i++) {                                                   \
            x[i] = LOAD(STORE(x[i]));                                          \
        }                                                                      \
    }                                                                          \
    static void FORMAT##_add(const uint16_t *a, const uint16_t *b, uint64_t n, \
                             uint16_t *y)                                      \
    {                                                                          \
        uint64_t i = 0;                                                        \
        for (; n - i >= EIGHT; i += EIGHT) {                                   \
            float sum[EIGHT];                                                  \
            float other[EIGHT];                                                \
            FORMAT##_widen_8(a + i, sum);                                      \
            FORMAT##_widen_8(b + i, other);                                    \
            for (int k = 0; k < EIGHT; k++) {                                  \
                sum[k] = sum[k] + other[k];                                    \
            }                                                                  \
            FORMAT##_narrow_8(sum, y + i);                                     \
        }                                                                      \
        for (; i < n; i++) {                                                   \
            y[i] = STORE(LOAD(a[i]) + LOAD(b[i]));                             \
        }                                                                      \
    }

WORLD_HALF_LOOPS(bf16, fsdp_bf16_to_f32, fsdp_bf16_from_f32)
WORLD_HALF_LOOPS(f16, fsdp_f16_to_f32, fsdp_f16_from_f32)

#define WORLD_HALF_TABLE                                 \
    {                                                    \
        {bf16_widen, bf16_narrow, bf16_round, bf16_add}, \
        {                                                \
            f16_widen, f16_narrow, f16_round, f16_add    \
        }                                                \
    }

#endif
