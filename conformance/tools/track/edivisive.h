/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edivisive.h - change points of a series of measurements: E-divisive
 * (Matteson and James, 2014) with a permutation test, played run by run as
 * the runs came in. What was called once stays called: a later run never
 * takes a change point back, so that a check, a page and a bisection of the
 * same history agree.
 */
#ifndef FSDP_CTS_EDIVISIVE_H
#define FSDP_CTS_EDIVISIVE_H

#include <stdint.h>

struct edivisive_options {
    uint32_t window;       /* runs that are looked at, the newest included */
    uint32_t before;       /* at least so many on the left of a change */
    uint32_t after;        /* at least so many on the right of it */
    uint32_t permutations; /* of the significance test */
    double significance;   /* a chance above it is no change */
    double least;          /* a smaller change of the median is none: 0.02 */
    uint64_t seed;         /* of the permutations */
};
extern const struct edivisive_options edivisive_defaults;

struct edivisive_change {
    uint32_t begin; /* the first run of the new level */
    uint32_t found; /* the run at which this could be told */
    double before;  /* medians of the levels, of what was there then */
    double after;
    double chance; /* of so large a statistic without a change */
};

/*
 * All changes of x[0..n-1], oldest first: *out is malloc'ed, the caller's; *n
 * of them. INVALID: options that make no sense, or a value that is no finite
 * number. NOMEM.
 */
int edivisive_changes(const double *x, uint32_t n,
                      const struct edivisive_options *options,
                      struct edivisive_change **out, uint32_t *n_out);

/* The scaled divergence of the parts x[0..cut-1] and x[cut..n-1]. */
double edivisive_divergence(const double *x, uint32_t n, uint32_t cut);

#endif
