/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rsqrt.h - 1/sqrt(x), correctly rounded to float32 (nearest, ties to even)
 * for every float32. As IEEE 754 has it, the value at -0 is -infinity.
 *
 * Two double operations, which IEEE 754 rounds correctly, leave an error below
 * 1.1 units in the last place of the double; no float32 has its value within
 * 1.4 such units of the middle between two floats. (arith_exhaustive checks
 * all inputs.)
 */
#ifndef FSDP_ARITH_RSQRT_H
#define FSDP_ARITH_RSQRT_H

#include <math.h>

#include "bits.h"
#include "qualify.h"

FSDP_ARITH float fsdp_rsqrtf(float x)
{
    uint32_t sign = fsdp_f32_bits(x) & FSDP_F32_SIGN;

    if (x == 0.0f) {
        return fsdp_f32_from_bits(FSDP_F32_INFINITY | sign);
    }
    if (!(x > 0.0f)) {
        return fsdp_f32_nan();
    }
    return (float)(1.0 / sqrt((double)x));
}

#endif
