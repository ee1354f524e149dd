/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bits.h - the bit patterns of floats and doubles, and the special values
 * that the functions of this folder return.
 */
#ifndef FSDP_ARITH_BITS_H
#define FSDP_ARITH_BITS_H

#include <stdint.h>
#include <string.h>

#include "qualify.h"

#define FSDP_F32_SIGN     0x80000000u
#define FSDP_F32_INFINITY 0x7f800000u
#define FSDP_F32_NAN      0x7fc00000u
#define FSDP_F32_HALF     0x3f000000u
#define FSDP_F32_ONE      0x3f800000u

FSDP_ARITH uint32_t fsdp_f32_bits(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

FSDP_ARITH float fsdp_f32_from_bits(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

FSDP_ARITH uint64_t fsdp_f64_bits(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

FSDP_ARITH double fsdp_f64_from_bits(uint64_t bits)
{
    double x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

/*
 * The one NaN that the functions of this folder return: processors differ in
 * the sign and payload of the NaNs they make, and these bits must not.
 */
FSDP_ARITH float fsdp_f32_nan(void)
{
    return fsdp_f32_from_bits(FSDP_F32_NAN);
}

/* 2^n for -1022 <= n <= 1023. */
FSDP_ARITH double fsdp_f64_power_of_two(int n)
{
    return fsdp_f64_from_bits((uint64_t)(1023 + n) << 52);
}

#endif
