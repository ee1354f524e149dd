/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exp.h - e^x, correctly rounded to float32 (nearest, ties to even) for every
 * float32, subnormal results included.
 *
 * x = k ln 2 + r with |r| <= ln(2)/2, and e^x = 2^k (1 + expm1(r)) in double
 * arithmetic, rounded once more to float. The double is within about one unit
 * in its last place; no float32 has its exponential within 1.2 such units of
 * the middle between two floats, so the second rounding is always right.
 * (arith_exhaustive checks all inputs.)
 */
#ifndef FSDP_ARITH_EXP_H
#define FSDP_ARITH_EXP_H

#include "bits.h"
#include "qualify.h"

/* A number e^x - 1 = 2^k (1 + p) - 1 that has not been put together yet. */
struct fsdp_exp_parts {
    int k;
    double p;
};

/*
 * Needs |x| <= 200. p is the polynomial r + r^2 q(r), where q interpolates
 * (e^r - 1 - r) / r^2 at the 11 Chebyshev nodes of [-ln(2)/2, ln(2)/2]; its
 * error is below 2^-59, and p keeps full relative accuracy for tiny r.
 */
FSDP_ARITH struct fsdp_exp_parts fsdp_exp_split(double x)
{
    /* k times the high part, a multiple of 2^-40, is exact. */
    const double ln2_high = 0x1.62e42fefa2p-1;
    const double ln2_low = 0x1.9ef35793c7673p-41;
    /* Adding it pushes the fraction out: the nearest integer remains. */
    const double shift = 0x1.8p52;
    struct fsdp_exp_parts parts;
    double k = (x * 0x1.71547652b82fep+0 + shift) - shift;
    double r = (x - k * ln2_high) - k * ln2_low;
    double r2 = r * r;
    double r4 = r2 * r2;
    double q01 = 0x1p-1 + r * 0x1.5555555555557p-3;
    double q23 = 0x1.5555555555556p-5 + r * 0x1.11111111100dcp-7;
    double q45 = 0x1.6c16c16c162d4p-10 + r * 0x1.a01a01abe7fe1p-13;
    double q67 = 0x1.a01a01a6d889cp-16 + r * 0x1.71de0231960ebp-19;
    double q89 = 0x1.27e4db646b17ep-22 + r * 0x1.af4de97ca4194p-26;
    double q47 = q45 + r2 * q67;
    double q8a = q89 + r2 * 0x1.1f730349868cep-29;
    double q = (q01 + r2 * q23) + r4 * (q47 + r4 * q8a);

    parts.k = (int)k;
    parts.p = r + r2 * q;
    return parts;
}

FSDP_ARITH float fsdp_expf(float x)
{
    struct fsdp_exp_parts parts;

    if (x != x) {
        return fsdp_f32_nan();
    }
    if (x > 89.0f) {
        return fsdp_f32_from_bits(FSDP_F32_INFINITY);
    }
    if (x < -104.0f) {
        return 0.0f; /* Below half of the least subnormal. */
    }
    parts = fsdp_exp_split((double)x);
    return (float)((1.0 + parts.p) * fsdp_f64_power_of_two(parts.k));
}

#endif
