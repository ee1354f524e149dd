/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_math.cuh - the exponential and the hyperbolic tangent of <fsdp/arith/>
 * as a GPU likes them: products and sums of doubles are fused, since a GPU does
 * only half as many of them a cycle as of floats; no branches; constants are in
 * memory that instructions read directly.
 *
 * Both functions are correctly rounded, so any way of computing them closely
 * enough gives the same bits. Fused steps round less often than those of exp.h
 * and tanh.h, whose bounds hold; emulated_math_test compares all floats.
 */
#ifndef FSDP_CTS_CUDA_MATH_CUH
#define FSDP_CTS_CUDA_MATH_CUH

#include "cuda_common.cuh"

#include <fsdp/arith/exp.h>
#include <fsdp/arith/tanh.h>

/* The constants of fsdp_exp_split: 1 / ln 2, ln 2 in two parts, and q from the
 * highest power down. Not const, or else each would be moved to registers each
 * time. */
static __constant__ double cuda_exp_number[] = {
    0x1.71547652b82fep+0,  0x1.62e42fefa2p-1,     0x1.9ef35793c7673p-41,
    0x1.1f730349868cep-29, 0x1.af4de97ca4194p-26, 0x1.27e4db646b17ep-22,
    0x1.71de0231960ebp-19, 0x1.a01a01a6d889cp-16, 0x1.a01a01abe7fe1p-13,
    0x1.6c16c16c162d4p-10, 0x1.11111111100dcp-7,  0x1.5555555555556p-5,
    0x1.5555555555557p-3};

/* fsdp_exp_split. Adding `shift` leaves the integer nearest to x / ln 2 in the
 * low word. */
static __device__ __forceinline__ struct fsdp_exp_parts cuda_exp_split(double x)
{
    const double *c = cuda_exp_number;
    const double shift = 0x1.8p52;
    struct fsdp_exp_parts parts;
    const double shifted = fma(x, c[0], shift);
    const double k = shifted - shift;
    const double r = fma(-k, c[2], fma(-k, c[1], x));
    const double r2 = r * r;
    const double r4 = r2 * r2;
    const double q01 = fma(r, c[12], 0.5);
    const double q23 = fma(r, c[10], c[11]);
    const double q45 = fma(r, c[8], c[9]);
    const double q67 = fma(r, c[6], c[7]);
    const double q89 = fma(r, c[4], c[5]);
    const double q47 = fma(r2, q67, q45);
    const double q8a = fma(r2, c[3], q89);
    const double q = fma(r4, fma(r4, q8a, q47), fma(r2, q23, q01));

    parts.k = (int)(uint32_t)fsdp_f64_bits(shifted);
    parts.p = fma(r2, q, r);
    return parts;
}

/* fsdp_expf. Beyond the bounds the result is infinity, or 0. */
static __device__ __forceinline__ float cuda_expf(float x)
{
    const float inside = fminf(fmaxf(x, -104.0f), 89.0f);
    const struct fsdp_exp_parts parts = cuda_exp_split((double)inside);
    const uint64_t mantissa = fsdp_f64_bits(1.0 + parts.p);
    const float y = (float)fsdp_f64_from_bits(
        mantissa + ((uint64_t)(int64_t)parts.k << 52));

    return x != x ? fsdp_f32_nan() : y;
}

/* e / s for many e of [0, 1] and one s of [1, 2^32], rounded as division is:
 * the double quotient is the nearest one (Markstein), and rounding it once more
 * changes nothing, as a double has more than twice the digits of a float. */
struct cuda_divisor {
    double s, r;

    __device__ __forceinline__ cuda_divisor(float x)
        : s((double)x), r(1.0 / (double)x)
    {
    }
    __device__ __forceinline__ float quotient(float e) const
    {
        const double q = (double)e * r;

        return (float)fma(fma(-s, q, (double)e), r, q);
    }
};

/* e / d for 0 <= e < d and d in [2, 2^30], within an ulp: a quotient of floats,
 * two steps of Newton, and one that corrects the quotient. None of the special
 * cases that division checks for can occur. */
static __device__ __forceinline__ double cuda_quotient(double e, double d)
{
    const double r0 = (double)__fdividef(1.0f, (float)d);
    const double r1 = fma(r0, fma(-d, r0, 1.0), r0);
    const double r = fma(r1, fma(-d, r1, 1.0), r1);
    const double q = e * r;

    return fma(fma(-d, q, e), r, q);
}

/* fsdp_tanhf. Beyond 10 the result is 1. */
static __device__ __forceinline__ float cuda_tanhf(float x)
{
    const uint32_t sign = fsdp_f32_bits(x) & FSDP_F32_SIGN;
    const float magnitude = fsdp_f32_from_bits(fsdp_f32_bits(x) ^ sign);
    const struct fsdp_exp_parts parts =
        cuda_exp_split((double)(2.0f * fminf(magnitude, 10.0f)));
    const double scale = fsdp_f64_power_of_two(parts.k);
    const double e = fma(scale, parts.p, scale - 1.0);
    const float y = (float)cuda_quotient(e, e + 2.0);

    return x != x ? fsdp_f32_nan()
                  : fsdp_f32_from_bits(fsdp_f32_bits(y) | sign);
}

#endif
