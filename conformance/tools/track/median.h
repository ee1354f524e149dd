/* SPDX-License-Identifier: Apache-2.0 */
/* median.h - the quantile of a few numbers, and pseudorandom numbers. */
#ifndef FSDP_CTS_MEDIAN_H
#define FSDP_CTS_MEDIAN_H

#include <stdint.h>

enum {
    MEDIAN_MOST = 4096
};

/* The quantile q in [0, 1] of x[0..n-1], between neighbours in proportion; 0
 * of nothing. At most MEDIAN_MOST numbers: of more, the last ones. */
double quantile_of(const double *x, uint32_t n, double q);
double median_of(const double *x, uint32_t n);

/* The next pseudorandom number (splitmix64), the same on every machine. */
uint64_t draw_of(uint64_t *state);

#endif
