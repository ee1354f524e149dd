/* SPDX-License-Identifier: Apache-2.0 */
/*
 * maximum.h - maximum (op.h) in any order: floats are compared as integers that
 * have the same order, with +0 above -0; NaN is noted beside them.
 */
#ifndef FSDP_CTS_MAXIMUM_H
#define FSDP_CTS_MAXIMUM_H

#include "level.h"

#include <stdint.h>
#include <string.h>

struct maximum {
    int32_t key;
    int32_t nan; /* not 0 once a NaN was seen */
};

/* Turns the order of negative floats around. It is its own inverse. */
HOST_INLINE int32_t maximum_key(int32_t bits)
{
    return bits ^ (bits >> 31 & 0x7fffffff);
}

/* The maximum of nothing: -infinity. */
HOST_INLINE struct maximum maximum_start(void)
{
    return (struct maximum){~0x7f800000, 0};
}

HOST_INLINE struct maximum maximum_take(struct maximum m, float x)
{
    int32_t key;

    memcpy(&key, &x, sizeof(key));
    m.nan |= (key & 0x7fffffff) > 0x7f800000;
    key = maximum_key(key);
    m.key = m.key > key ? m.key : key;
    return m;
}

HOST_INLINE float maximum_end(struct maximum m)
{
    int32_t bits = m.nan != 0 ? 0x7fc00000 : maximum_key(m.key);
    float x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

HOST_INLINE float maximum_of(const float *x, uint64_t n)
{
    struct maximum m = maximum_start();

    for (uint64_t i = 0; i < n; i++) {
        m = maximum_take(m, x[i]);
    }
    return maximum_end(m);
}

#endif
