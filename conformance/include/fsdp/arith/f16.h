/* SPDX-License-Identifier: Apache-2.0 */
/*
 * f16.h - IEEE 754 binary16, five bits of exponent and ten of significand.
 *
 * Rounding is to nearest, ties to even; what is too large becomes infinity,
 * and subnormals are kept. A NaN keeps its sign and upper payload and becomes
 * quiet both ways, as processors have it. Without branches, so that loops
 * over them vectorise.
 */
#ifndef FSDP_ARITH_F16_H
#define FSDP_ARITH_F16_H

#include <stdbool.h>

#include "bits.h"
#include "qualify.h"

#define FSDP_F16_INFINITY     0x7c00u
#define FSDP_F16_QUIET        0x0200u
#define FSDP_F16_LEAST_NORMAL 0x38800000u /* as a float32 */

FSDP_ARITH uint16_t fsdp_f16_from_f32(float x)
{
    uint32_t bits = fsdp_f32_bits(x);
    uint32_t sign = bits >> 16 & 0x8000u;
    uint32_t magnitude = bits & ~FSDP_F32_SIGN;
    bool tiny = magnitude < FSDP_F16_LEAST_NORMAL;
    /* The biases differ by 112. A carry moves to the next exponent, from the
     * largest to infinity. */
    uint32_t normal =
        (magnitude - ((uint32_t)112 << 23) + 0xfffu + (magnitude >> 13 & 1u)) >>
        13;
    /* From 1/2 on float32 are 2^-24 apart, as float16 are below their least
     * normal: the addition rounds. */
    float rounded = fsdp_f32_from_bits(tiny ? magnitude : 0) + 0.5f;
    uint32_t subnormal = fsdp_f32_bits(rounded) - FSDP_F32_HALF;
    uint32_t nan =
        FSDP_F16_INFINITY | FSDP_F16_QUIET | (magnitude >> 13 & 0x1ffu);
    uint32_t result = tiny ? subnormal : normal;

    result = magnitude >= 0x47800000u ? FSDP_F16_INFINITY : result; /* 2^16 */
    result = magnitude > FSDP_F32_INFINITY ? nan : result;
    return (uint16_t)(sign | result);
}

FSDP_ARITH float fsdp_f16_to_f32(uint16_t x)
{
    uint32_t sign = (uint32_t)(x & 0x8000u) << 16;
    uint32_t magnitude = x & 0x7fffu;
    uint32_t shifted = magnitude << 13;
    /* An integer times 2^-24, which is exact. */
    uint32_t subnormal = fsdp_f32_bits((float)(int32_t)magnitude * 0x1p-24f);
    uint32_t bits =
        magnitude < 0x0400u ? subnormal : shifted + ((uint32_t)112 << 23);
    uint32_t quiet = magnitude > FSDP_F16_INFINITY ? 0x00400000u : 0;

    /* Infinities and NaNs have the greatest exponent in both formats. */
    bits =
        magnitude >= FSDP_F16_INFINITY ? shifted + ((uint32_t)224 << 23) : bits;
    return fsdp_f32_from_bits(sign | bits | quiet);
}

#endif
