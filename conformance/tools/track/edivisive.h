/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edivisive.h - change points of a series of measurements: E-divisive (Matteson
 * and James, 2014) with a permutation test, replayed run by run in the order in
 * which runs came in. A change that was called once stays called: a later run
 * never takes it back, so that a check, a page and a bisection of the same
 * history agree.
 */
#ifndef FSDP_CTS_EDIVISIVE_H
#define FSDP_CTS_EDIVISIVE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A change so large that few runs are enough for it, without a test of
 * significance, which few runs never pass. All of the newest `after` runs are
 * on one side of the level's `before` runs or more. Their median is at least
 * `least` away from the level's, and twice as far as any run of the level is.
 */
struct edivisive_large {
    uint32_t before, after;
    uint32_t most; /* only for a level of at most so many runs; 0: of any
                    * number */
    double least;
};

struct edivisive_options {
    uint32_t window;       /* runs that are looked at, the newest included */
    uint32_t before;       /* at least so many on the left of a change */
    uint32_t after;        /* at least so many on the right of it */
    uint32_t permutations; /* of the significance test */
    double significance;   /* with a larger chance it is no change */
    double least;          /* a smaller change of the median does not count:
                            * 0.02 */
    uint64_t seed;         /* of the permutations */
    const struct edivisive_large *large; /* [n_large]; NULL: none */
    uint32_t n_large;
};
extern const struct edivisive_options edivisive_defaults;

struct edivisive_change {
    uint32_t begin; /* the first run of the new level */
    uint32_t found; /* the run after which this could be told */
    double before;  /* medians of the levels, of the runs there were then */
    double after;
    double chance; /* of a statistic so large without a change; 0: `large` */
    bool large;    /* called without a test */
};

/* How many runs there must be before the test can call any change: fewer can be
 * permuted in too few ways for the significance. */
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
