/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_norm.h - the norm of all gradients without a rounding but the last:
 * elements are sorted into bins by their exponent, bins become one long
 * integer, which ranks add up.
 */
#ifndef FSDP_CTS_IMPL_NORM_H
#define FSDP_CTS_IMPL_NORM_H

#include <stdbool.h>
#include <stdint.h>

enum {
    IMPL_NORM_WORDS = 11, /* of 64 bits, the lowest of weight 2^-300 */
    IMPL_NORM_BINS = 255, /* exponent fields of finite numbers */
};

/* What a rank has of a norm; the same on every rank that adds it up. */
struct impl_norm {
    uint64_t word[IMPL_NORM_WORDS]; /* of |x|^p, p = 1 or 2 */
    float largest;                  /* |x|; NaN if any x is */
};

/* Sums of mantissas, or of their squares, by exponent: both halves of each by
 * themselves, so that 2^32 fit. */
struct impl_norm_bins {
    uint64_t low[IMPL_NORM_BINS], high[IMPL_NORM_BINS];
    uint64_t n;
};

/* Elements of a gradient into bins, or into the norm where they are full. */
void impl_norm_add(struct impl_norm *norm, struct impl_norm_bins *bins, float p,
                   const float *x, uint64_t n);
/* What is in bins. */
void impl_norm_settle(struct impl_norm *norm, struct impl_norm_bins *bins,
                      float p);
void impl_norm_merge(struct impl_norm *norm, const struct impl_norm *other);
/* To the nearest float32, ties to even. */
float impl_norm_root(const struct impl_norm *norm, float p);

#endif
