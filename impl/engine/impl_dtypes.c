/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_dtypes.c - the dtypes of a unit's values outside its shard: its own come
 * before the options', and one that neither gives follows from the others.
 */
#include "impl_calls.h"

/* The first of these that is given: the unit's own, then the option. */
static uint32_t choose(const uint32_t *own, uint32_t unit, uint32_t option,
                       uint32_t otherwise)
{
    if (own && own[unit] != FSDP_DTYPE_NONE) {
        return own[unit];
    }
    return option != FSDP_DTYPE_NONE ? option : otherwise;
}

struct impl_dtypes impl_dtypes_of(const struct fsdp_units *units,
                                  const struct fsdp_options *o, uint32_t u)
{
    struct impl_dtypes d = {
        .param = choose(units->param_dtype, u, o->param_dtype, FSDP_DTYPE_F32),
        .reduce =
            choose(units->reduce_dtype, u, o->reduce_dtype, FSDP_DTYPE_F32)};

    d.grad = choose(units->grad_dtype, u, o->grad_dtype, d.param);
    d.accumulate =
        choose(units->accumulate_dtype, u, o->accumulate_dtype, d.reduce);
    d.sum = choose(units->sum_dtype, u, o->sum_dtype, d.reduce);
    return d;
}

uint64_t impl_words(uint32_t dtype, uint64_t n)
{
    return (n * fsdp_dtype_bytes(dtype) + sizeof(float) - 1) / sizeof(float);
}

void *impl_element(const void *array, uint32_t dtype, uint64_t i)
{
    return array ? (unsigned char *)array + i * fsdp_dtype_bytes(dtype) : NULL;
}
