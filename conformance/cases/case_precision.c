/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_precision.c - see case_precision.h: a row a precision.
 */
#include "cases/case_precision.h"

#include <string.h>

enum {
    F32 = FSDP_DTYPE_F32,
    BF16 = FSDP_DTYPE_BF16,
    F16 = FSDP_DTYPE_F16,
    NONE = FSDP_DTYPE_NONE
};

static const struct precision {
    const char *name;
    struct case_dtypes d; /* param, grad, accumulate, reduce, sum */
} precisions[CASE_N_PRECISIONS] = {
    [CASE_F32] = {"f32", {F32, F32, F32, F32, F32}},
    [CASE_BF16] = {"bf16", {BF16, BF16, F32, F32, F32}},
    [CASE_BF16_REDUCE] = {"bf16r", {BF16, BF16, BF16, BF16, BF16}},
    [CASE_BF16_SUM] = {"bf16s", {BF16, BF16, BF16, BF16, F32}},
    [CASE_REDUCE_BF16] = {"r16", {F32, F32, F32, BF16, BF16}},
    [CASE_BF16_ACCUMULATE] = {"bf16a", {BF16, BF16, BF16, F32, F32}},
    [CASE_FP16] = {"fp16", {F16, F16, F16, F16, F16}},
    [CASE_FP16_REDUCE_F32] = {"fp16r32", {F16, F16, F32, F32, F32}},
    [CASE_UNITS] = {"units", {BF16, BF16, F32, F32, F32}},
    [CASE_DEFAULTS] = {"defaults", {BF16, NONE, NONE, NONE, NONE}},
    [CASE_REDUCE_BF16_PENDING] = {"r16a", {F32, F32, BF16, BF16, BF16}},
};

const char *case_precision_name(uint32_t precision)
{
    return precision < CASE_N_PRECISIONS ? precisions[precision].name : NULL;
}

struct case_dtypes case_dtypes(const struct run_case *c)
{
    return precisions[c->precision < CASE_N_PRECISIONS ? c->precision : 0].d;
}

bool case_has_units_dtypes(const struct run_case *c)
{
    return c->precision == CASE_UNITS || c->precision == CASE_DEFAULTS;
}

/* Neighbours have other dtypes: those of the options, float32, float16. Where
 * defaults are asked for, those of a unit follow from what it has of its own,
 * and its gradients are wider than their sum, or as narrow. */
bool case_dtypes_of_unit(const struct run_case *c, uint32_t unit,
                         struct case_dtypes *out)
{
    static const uint32_t of[] = {CASE_UNITS, CASE_F32, CASE_FP16};

    static const struct case_dtypes less[] = {{BF16, NONE, NONE, NONE, NONE},
                                              {F32, NONE, NONE, F16, NONE},
                                              {F16, NONE, NONE, F16, NONE}};

    *out = case_dtypes(c);
    if (!case_has_units_dtypes(c)) {
        return false;
    }
    *out = c->precision == CASE_UNITS ? precisions[of[unit % 3]].d
                                      : less[unit % 3];
    return unit % 3 != 0;
}

bool case_uses_dtype(const struct run_case *c, uint32_t dtype)
{
    for (uint32_t u = 0; u < 3; u++) {
        struct case_dtypes d;

        (void)case_dtypes_of_unit(c, u, &d);
        if (d.param == dtype || d.grad == dtype || d.accumulate == dtype ||
            d.reduce == dtype) {
            return true;
        }
    }
    return false;
}

uint32_t case_buffer_dtype(const struct run_case *c, uint32_t param)
{
    return case_has_buffers(c) && c->precision != CASE_DEFAULTS ? param : NONE;
}

bool case_sums_wide(const struct run_case *c)
{
    const struct case_dtypes d = case_dtypes(c);

    return d.sum != NONE && d.sum != d.reduce;
}
