/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notary.h - a process beside the ranks, in which no engine is: the kernel
 * tells it each call that a rank's limits (rank_limits.h) refuse, and the
 * notary notes it. It weighs a rank that asks for it (scales.h); and it writes
 * the record of what crosses to it (scribe.h).
 */
#ifndef FSDP_CTS_NOTARY_H
#define FSDP_CTS_NOTARY_H

#include "record/record.h"
#include "run/witness/scales.h"
#include "run/witness/scribe.h"

#include <sys/types.h>

struct notary {
    pid_t pid; /* 0: there is none */
    int hand;  /* where a rank hands over what it is told by; else -1 */
    int words; /* where it says at its end what it has noted; else -1 */
    /* Of a rank, to the notary (rank_line.h, crossing.h); else -1. And the
     * other ends, until they are handed over. */
    int line, pipe;
    int other_line, other_pipe;
};

enum {
    NOTARY_RANKS = SCALES_RANKS, /* at most */
    NOTARY_FOLDERS = 2
};

/* What it has to know of a world's ranks. */
struct notary_task {
    const char *const *folders; /* that ranks can write to, up to NULL and
                                   NOTARY_FOLDERS; NULL: nobody asks what lies
                                   there */
    const char *record;         /* where records go; NULL: nowhere */
};

/* Before the ranks are started. False: there is no room for it. */
bool notary_start(struct notary *n, const struct notary_task *task);
/* The same, of one that has reported: another world's ranks are to come. False:
 * there is none any more. */
bool notary_go_on(struct notary *n, const struct notary_task *task);
/* In a rank, while it still can: makes its line and its pipe. */
bool notary_make_line(struct notary *n);
/* And then: `rank` is told by the descriptor `listener`, which is closed here,
 * as is what this process has of the notary, but for its line. */
bool notary_hand_over(struct notary *n, uint32_t rank, int listener);
/* What ranks were refused, the first ones, in order; and, by rank, what they
 * weighed (scales.h), and what was told to have been communicated (scribe.h).
 */
struct notary_notes {
    uint32_t n, n_ranks;
    struct record_refusal refusal[RECORD_REFUSALS];
    struct record_weight weight[NOTARY_RANKS];
    struct scribe_told told[NOTARY_RANKS];
};

/* When all ranks have ended. False: it has ended, whoever ended it, and nothing
 * is known of what ranks were refused; *why says so. */
bool notary_report(struct notary *n, struct notary_notes *notes,
                   const char **why);
/* The same, and it is the last time. */
bool notary_stop(struct notary *n, struct notary_notes *notes,
                 const char **why);

#endif
