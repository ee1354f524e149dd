/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_arith.h - the exponential and the hyperbolic tangent of <fsdp/arith/>,
 * without branches, so that loops over them vectorise. Both are correctly
 * rounded, which leaves no choice of results; host_arith_test.c compares them
 * for all 2^32 inputs.
 *
 * The result in double may have the same error as there: below 1.2 units in its
 * last place for exp, 2.5 for tanh. It does not matter whether products and
 * sums are fused.
 */
#ifndef FSDP_CTS_HOST_ARITH_H
#define FSDP_CTS_HOST_ARITH_H

#include "level.h"

#include <stdint.h>
#include <string.h>

#ifdef __FP_FAST_FMA
#    define HOST_MULADD(a, b, c) __builtin_fma(a, b, c)
#else
#    define HOST_MULADD(a, b, c) ((a) * (b) + (c))
#endif

/* e^x = scale (1 + p), scale a power of two. For |x| <= 200, or NaN. */
struct host_exp {
    double scale;
    double p;
};

HOST_INLINE struct host_exp host_exp_split(double x)
{
    const double shift = 0x1.8p52; /* pushes the fraction out */
    double shifted = HOST_MULADD(x, 0x1.71547652b82fep+0, shift);
    double k = shifted - shift;
    /* ln 2 in two parts; k times the first is exact. */
    double r = HOST_MULADD(k, -0x1.9ef35793c7673p-41,
                           HOST_MULADD(k, -0x1.62e42fefa2p-1, x));
    double r2 = r * r;
    double r4 = r2 * r2;
    double q01 = HOST_MULADD(r, 0x1.5555555555557p-3, 0x1p-1);
    double q23 = HOST_MULADD(r, 0x1.11111111100dcp-7, 0x1.5555555555556p-5);
    double q45 = HOST_MULADD(r, 0x1.a01a01abe7fe1p-13, 0x1.6c16c16c162d4p-10);
    double q67 = HOST_MULADD(r, 0x1.71de0231960ebp-19, 0x1.a01a01a6d889cp-16);
    double q89 = HOST_MULADD(r, 0x1.af4de97ca4194p-26, 0x1.27e4db646b17ep-22);
    double q03 = HOST_MULADD(r2, q23, q01);
    double q47 = HOST_MULADD(r2, q67, q45);
    double q8a = HOST_MULADD(r2, 0x1.1f730349868cep-29, q89);
    double q = HOST_MULADD(r4, HOST_MULADD(r4, q8a, q47), q03);
    struct host_exp parts = {.p = HOST_MULADD(r2, q, r)};
    uint64_t bits;

    /* The low bits of `shifted` are k: they become the exponent. */
    memcpy(&bits, &shifted, sizeof(bits));
    bits = (bits + 1023) << 52;
    memcpy(&parts.scale, &bits, sizeof(bits));
    return parts;
}

HOST_INLINE float host_expf(float x)
{
    struct host_exp parts;

    /* Beyond these bounds the result is infinity or +0, as it is at the
     * bounds. */
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    parts = host_exp_split((double)x);
    return (float)HOST_MULADD(parts.scale, parts.p, parts.scale);
}

HOST_INLINE float host_tanhf(float x)
{
    float magnitude = __builtin_fabsf(x);
    struct host_exp parts;
    double e;

    /* From here on the result is 1. */
    magnitude = magnitude > 10.0f ? 10.0f : magnitude;
    parts = host_exp_split(2.0 * (double)magnitude);
    e = HOST_MULADD(parts.scale, parts.p, parts.scale - 1.0);
    return __builtin_copysignf((float)(e / (e + 2.0)), x);
}

#endif
