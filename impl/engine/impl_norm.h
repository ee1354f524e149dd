/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_norm.h - the norm of all gradients, rounded only once, at the end:
 * elements are sorted into bins by their exponent, and bins are added up to one
 * long integer, which ranks add up.
 */
#ifndef FSDP_CTS_IMPL_NORM_H
#define FSDP_CTS_IMPL_NORM_H

#include <stdbool.h>
#include <stdint.h>

enum {
    IMPL_NORM_WORDS = 11, /* of 64 bits, the lowest of weight 2^-300 */
    IMPL_NORM_BINS = 255, /* exponent fields of finite numbers */
};

/* The sums of one rank; adding up the ranks' gives the same on every rank. */
struct impl_norm {
    uint64_t word[IMPL_NORM_WORDS]; /* of |x|^p, p = 1 or 2 */
    float largest;                  /* |x|; NaN if any x is */
};

/* Sums of mantissas, or of their squares, by exponent: the upper and the lower
 * half of each sum by itself, so that 2^32 elements fit. */
struct impl_norm_bins {
    uint64_t low[IMPL_NORM_BINS], high[IMPL_NORM_BINS];
    uint64_t n;
};

/* Adds elements of a gradient to bins, and full bins to the norm. */
void impl_norm_add(struct impl_norm *norm, struct impl_norm_bins *bins, float p,
                   const float *x, uint64_t n);
/* Adds what is left in bins to the norm. */
void impl_norm_settle(struct impl_norm *norm, struct impl_norm_bins *bins,
                      float p);
void impl_norm_merge(struct impl_norm *norm, const struct impl_norm *other);
/* To the nearest float32, ties to even. */
float impl_norm_root(const struct impl_norm *norm, float p);

#endif
