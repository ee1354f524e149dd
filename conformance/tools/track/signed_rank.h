/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signed_rank.h - two builds measured in turns, A B A B: whether the pairs
 * differ. Wilcoxon's signed-rank test, exact at every n, ties included.
 */
#ifndef FSDP_CTS_SIGNED_RANK_H
#define FSDP_CTS_SIGNED_RANK_H

#include <stdint.h>

enum {
    SIGNED_RANK_MOST = 200
};

struct signed_rank {
    uint32_t n;        /* pairs that differ */
    uint32_t positive; /* how many of these have a positive difference */
    double larger;     /* chance of so large a sum of positive ranks if nothing
                        * differs */
    double smaller;    /* and of so small a one */
};

/* Of the differences d[0..n-1]. INVALID: more than SIGNED_RANK_MOST, or a
 * difference that is no finite number. NOMEM. */
int signed_rank(const double *d, uint32_t n, struct signed_rank *out);

#endif
