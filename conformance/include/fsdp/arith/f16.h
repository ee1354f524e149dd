/* SPDX-License-Identifier: Apache-2.0 */
/*
 * f16.h - IEEE 754 binary16, five bits of exponent and ten of significand, by
 * integer operations.
 *
 * Rounding is to nearest, ties to even; what is too large becomes infinity,
 * and subnormals are kept. A NaN keeps its sign and upper payload and becomes
 * quiet both ways, as processors have it.
 */
#ifndef FSDP_ARITH_F16_H
#define FSDP_ARITH_F16_H

#include "bits.h"
#include "qualify.h"

#define FSDP_F16_INFINITY 0x7c00u
#define FSDP_F16_QUIET    0x0200u

/* bits / 2^shift to nearest, ties to even; 1 <= shift <= 24. */
FSDP_ARITH uint32_t fsdp_shift_to_even(uint32_t bits, uint32_t shift)
{
    uint32_t half = (uint32_t)1 << (shift - 1);

    return (bits + half - 1 + (bits >> shift & 1u)) >> shift;
}

FSDP_ARITH uint16_t fsdp_f16_from_f32(float x)
{
    uint32_t bits = fsdp_f32_bits(x);
    uint32_t sign = bits >> 16 & 0x8000u;
    uint32_t magnitude = bits & ~FSDP_F32_SIGN;
    uint32_t exponent = magnitude >> 23;
    uint32_t result = 0;

    if (magnitude > FSDP_F32_INFINITY) {
        result = FSDP_F16_INFINITY | FSDP_F16_QUIET | (magnitude >> 13 & 0x1ff);
    } else if (exponent >= 127 + 16) {
        result = FSDP_F16_INFINITY;
    } else if (exponent >= 127 - 14) {
        /* The biases differ by 112. A carry moves to the next exponent, from
         * the largest to infinity. */
        result = fsdp_shift_to_even(magnitude - ((uint32_t)112 << 23), 13);
    } else if (exponent >= 127 - 25) {
        /* Subnormal: counted in 2^-24, a significand has 24 bits. */
        result = fsdp_shift_to_even((magnitude & 0x7fffffu) | 0x800000u,
                                    126 - exponent);
    }
    return (uint16_t)(sign | result);
}

FSDP_ARITH float fsdp_f16_to_f32(uint16_t x)
{
    uint32_t sign = (uint32_t)(x & 0x8000u) << 16;
    uint32_t magnitude = x & 0x7fffu;
    uint32_t bits = (magnitude << 13) + ((uint32_t)112 << 23);

    if (magnitude > FSDP_F16_INFINITY) {
        bits = FSDP_F32_NAN | (magnitude << 13 & 0x3fffffu);
    } else if (magnitude == FSDP_F16_INFINITY) {
        bits = FSDP_F32_INFINITY;
    } else if (magnitude < 0x0400u) {
        /* Zero or subnormal: an integer times 2^-24, which is exact. */
        bits = fsdp_f32_bits((float)magnitude * 0x1p-24f);
    }
    return fsdp_f32_from_bits(sign | bits);
}

#endif
