/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tanh.h - the hyperbolic tangent, correctly rounded to float32 (nearest, ties
 * to even) for every float32.
 *
 * tanh |x| = E / (E + 2) with E = e^(2|x|) - 1 in double arithmetic, rounded
 * once more to float. E is made without cancellation, so the quotient keeps
 * its relative accuracy of about two units in the last place down to the
 * subnormals; no float32 has its tangent within 2.5 such units of the middle
 * between two floats. (arith_exhaustive checks all inputs.)
 */
#ifndef FSDP_ARITH_TANH_H
#define FSDP_ARITH_TANH_H

#include "bits.h"
#include "exp.h"
#include "qualify.h"

FSDP_ARITH float fsdp_tanhf(float x)
{
    uint32_t sign = fsdp_f32_bits(x) & FSDP_F32_SIGN;
    float magnitude = fsdp_f32_from_bits(fsdp_f32_bits(x) ^ sign);
    struct fsdp_exp_parts parts;
    double scale;
    double e;
    float y;

    if (x != x) {
        return fsdp_f32_nan();
    }
    if (magnitude > 10.0f) {
        return fsdp_f32_from_bits(FSDP_F32_ONE | sign);
    }
    parts = fsdp_exp_split(2.0 * (double)magnitude);
    scale = fsdp_f64_power_of_two(parts.k);
    e = (scale - 1.0) + scale * parts.p;
    y = (float)(e / (e + 2.0));
    return fsdp_f32_from_bits(fsdp_f32_bits(y) | sign);
}

#endif
