/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bf16.h - bfloat16, the upper half of a float32, by integer operations.
 *
 * Instructions that convert to bfloat16 flush subnormals on some processors;
 * integers do not. Rounding is to nearest, ties to even. A NaN keeps its sign
 * and upper payload and becomes quiet, so that it cannot round to infinity.
 * Without branches, so that loops over them vectorise.
 */
#ifndef FSDP_ARITH_BF16_H
#define FSDP_ARITH_BF16_H

#include <stdbool.h>

#include "bits.h"
#include "qualify.h"

FSDP_ARITH uint16_t fsdp_bf16_from_f32(float x)
{
    uint32_t bits = fsdp_f32_bits(x);
    /* A carry out of the significand moves to the next exponent, rightly. */
    uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
    uint32_t quiet = bits | 0x00400000u;
    bool nan = (bits & ~FSDP_F32_SIGN) > FSDP_F32_INFINITY;

    return (uint16_t)((nan ? quiet : rounded) >> 16);
}

FSDP_ARITH float fsdp_bf16_to_f32(uint16_t x)
{
    return fsdp_f32_from_bits((uint32_t)x << 16);
}

#endif
