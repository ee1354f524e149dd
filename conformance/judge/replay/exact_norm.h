/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exact_norm.h - the norm of a gradient as engine.h demands it: the root of the
 * exact sum, rounded once. This code is the judge's own.
 */
#ifndef FSDP_CTS_EXACT_NORM_H
#define FSDP_CTS_EXACT_NORM_H

#include <stdint.h>

enum {
    /* Digits of 32 bits. Squares of finite float32 in units of 2^-300 have 556
     * bits, and there are fewer than 2^64 of them. */
    EXACT_NORM_DIGITS = 20
};

struct exact_norm {
    float p;                         /* 1, 2 or infinity */
    float worst;                     /* the largest |x|, NaN if any x is */
    uint32_t sum[EXACT_NORM_DIGITS]; /* exact; for p = 1 in units of 2^-150 */
};

void exact_norm_begin(struct exact_norm *norm, float p);
void exact_norm_add(struct exact_norm *norm, float x);
/* The norm as the nearest float32; a tie goes to even. */
float exact_norm_end(const struct exact_norm *norm);

#endif
