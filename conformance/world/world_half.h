/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_half.h - loops over numbers of 16 bits, of which folds are made. They
 * are compiled once for any processor and once for AVX2, with the same bits,
 * and one of the two is chosen at run time.
 */
#ifndef FSDP_CTS_WORLD_HALF_H
#define FSDP_CTS_WORLD_HALF_H

#include <stdint.h>

struct world_half {
    /* y = x, which is exact. */
    void (*widen)(const uint16_t *x, uint64_t n, float *y);
    /* y = x, to nearest even. */
    void (*narrow)(const float *x, uint64_t n, uint16_t *y);
    /* x = x, rounded to 16 bits. */
    void (*round)(float *x, uint64_t n);
    /* y = a + b, rounded once; y may be one of them. */
    void (*add)(const uint16_t *a, const uint16_t *b, uint64_t n, uint16_t *y);
};

/* [0]: BF16, [1]: F16. `avx2` has NULLs if it could not be compiled. */
extern const struct world_half world_half_plain[2], world_half_avx2[2];

/* The loops for a dtype, BF16 or F16, that are fastest on this processor. */
const struct world_half *world_half_of(uint32_t dtype);

#endif
