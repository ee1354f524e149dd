/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pairs.h - two builds, measured in turns in one sitting: A B A B. Results of
 * both for the same thing are compared pair by pair, so that slow changes of
 * the machine cancel out.
 */
#ifndef FSDP_CTS_PAIRS_H
#define FSDP_CTS_PAIRS_H

#include "tools/track/results.h"
#include "tools/track/signed_rank.h"

struct pairs_options {
    double significance; /* of all comparisons together (Holm) */
    double least;        /* a smaller change of the median pair is none */
};
extern const struct pairs_options pairs_defaults;

enum pairs_call {
    PAIRS_SAME = 0,
    PAIRS_WORSE = 1,
    PAIRS_BETTER = 2,
};

struct pairs_result {
    const struct timed_result *of; /* in the first file */
    double ratio;                  /* median of B / A */
    double chance;                 /* that nothing differs; of one side */
    uint32_t n, slower;            /* pairs that differ; B worse in so many */
    uint32_t call;                 /* enum pairs_call */
};

/*
 * r[0], r[2], ... are A's, r[1], r[3], ... B's, n of them in all. *out has a
 * row for each timed result that all files have. INVALID: an odd number, no
 * such result, or so few pairs that nothing could ever be called. NOMEM.
 */
int pairs_compare(const struct results *r, uint32_t n,
                  const struct pairs_options *options,
                  struct pairs_result **out, uint32_t *n_out,
                  struct fsdp_error *error);

#endif
