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

#include <stdbool.h>
#include <stdint.h>

/*
 * A change so large that few runs are enough for it: without a test of
 * significance, which few runs never pass. The newest `after` runs are all on
 * one side of the `before` or more that the level has, their median at least
 * `least` away from the level's; and twice as far as any run of the level is.
 */
struct edivisive_large {
    uint32_t before, after;
    uint32_t most; /* of a level with no more runs; 0: of any */
    double least;
};

struct edivisive_options {
    uint32_t window;       /* runs that are looked at, the newest included */
    uint32_t before;       /* at least so many on the left of a change */
    uint32_t after;        /* at least so many on the right of it */
    uint32_t permutations; /* of the significance test */
    double significance;   /* a chance above it is no change */
    double least;          /* a smaller change of the median is none: 0.02 */
    uint64_t seed;         /* of the permutations */
    const struct edivisive_large *large; /* [n_large]; NULL: none */
    uint32_t n_large;
};
extern const struct edivisive_options edivisive_defaults;

struct edivisive_change {
    uint32_t begin; /* the first run of the new level */
    uint32_t found; /* the run at which this could be told */
    double before;  /* medians of the levels, of what was there then */
    double after;
    double chance; /* of so large a statistic without a change; 0: `large` */
    bool large;    /* called without a test */
};

/* How many runs there must be before any change can be called by the test: so
 * few can be dealt out in too few ways for the significance. */
uint32_t edivisive_earliest(const struct edivisive_options *options);

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
