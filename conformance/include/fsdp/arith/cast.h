/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cast.h - one element of an array whose dtype is float32, bfloat16 or
 * float16: reading it widens, which is exact; writing it rounds once, to
 * nearest even.
 */
#ifndef FSDP_ARITH_CAST_H
#define FSDP_ARITH_CAST_H

#include <fsdp/model.h>

#include "bf16.h"
#include "f16.h"

/* Is this one of the three dtypes of this header? */
FSDP_ARITH bool fsdp_is_float(uint32_t dtype)
{
    return dtype == FSDP_DTYPE_F32 || dtype == FSDP_DTYPE_BF16 ||
           dtype == FSDP_DTYPE_F16;
}

/* x[i] of an array of this dtype. */
FSDP_ARITH float fsdp_load(uint32_t dtype, const void *x, uint64_t i)
{
    if (dtype == FSDP_DTYPE_BF16) {
        return fsdp_bf16_to_f32(((const uint16_t *)x)[i]);
    }
    if (dtype == FSDP_DTYPE_F16) {
        return fsdp_f16_to_f32(((const uint16_t *)x)[i]);
    }
    return ((const float *)x)[i];
}

/* y[i] = value, rounded to the array's dtype. */
FSDP_ARITH void fsdp_store(uint32_t dtype, void *y, uint64_t i, float value)
{
    if (dtype == FSDP_DTYPE_BF16) {
        ((uint16_t *)y)[i] = fsdp_bf16_from_f32(value);
    } else if (dtype == FSDP_DTYPE_F16) {
        ((uint16_t *)y)[i] = fsdp_f16_from_f32(value);
    } else {
        ((float *)y)[i] = value;
    }
}

/* A value rounded to a dtype, as a float32. */
FSDP_ARITH float fsdp_round(uint32_t dtype, float value)
{
    if (dtype == FSDP_DTYPE_BF16) {
        return fsdp_bf16_to_f32(fsdp_bf16_from_f32(value));
    }
    if (dtype == FSDP_DTYPE_F16) {
        return fsdp_f16_to_f32(fsdp_f16_from_f32(value));
    }
    return value;
}

#endif
