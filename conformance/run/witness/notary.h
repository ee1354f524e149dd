/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notary.h - the notary: a process beside the ranks that never runs an engine.
 * The kernel tells it each call that a rank's limits (rank_limits.h) refuse,
 * and it notes them. It weighs a rank that asks for it (scales.h), and it
 * writes the record of a rank that sends it there (scribe.h).
 */
#ifndef FSDP_CTS_NOTARY_H
#define FSDP_CTS_NOTARY_H

#include "record/record.h"
#include "run/witness/scales.h"
#include "run/witness/scribe.h"

#include <sys/types.h>

struct notary {
    pid_t pid; /* 0: there is none */
    int hand;  /* by which a rank hands over the descriptor that tells of its
                  refused calls; else -1 */
    int words; /* by which the notary says at its end what it has noted; else
                  -1 */
    /* A rank's line and pipe to the notary (rank_line.h, crossing.h); else -1.
     * The other ends are here, too, until they are handed over. */
    int line, pipe;
    int other_line, other_pipe;
};

enum {
    NOTARY_RANKS = SCALES_RANKS, /* at most */
    NOTARY_FOLDERS = 2
};

/* What the notary has to know of a world's ranks. */
struct notary_task {
    const char *const *folders; /* folders that ranks can write to, up to NULL,
                                   at most NOTARY_FOLDERS; NULL: what lies there
                                   is not weighed */
    const char *record;         /* where records go; NULL: nowhere */
};

/* Before the ranks are started. False: the machine has no room for a notary. */
bool notary_start(struct notary *n, const struct notary_task *task);
/* Has a notary that has reported go on with the ranks of another world. False:
 * the notary has ended. */
bool notary_go_on(struct notary *n, const struct notary_task *task);
/* In a rank, before its limits forbid it: makes its line and its pipe. */
bool notary_make_line(struct notary *n);
/* After that, in the rank: hands over `listener`, the descriptor that tells of
 * the refused calls of `rank`. Closes it here, and all else that this process
 * has of the notary but its line. */
bool notary_hand_over(struct notary *n, uint32_t rank, int listener);
/* The first calls that ranks were refused, in order; and, by rank, what it
 * weighed (scales.h), and what it told that was communicated (scribe.h). */
struct notary_notes {
    uint32_t n, n_ranks;
    struct record_refusal refusal[RECORD_REFUSALS];
    struct record_weight weight[NOTARY_RANKS];
    struct scribe_told told[NOTARY_RANKS];
};

/* When all ranks have ended. False: the notary has ended, whatever ended it, so
 * that nothing is known of the refused calls; *why says so. */
bool notary_report(struct notary *n, struct notary_notes *notes,
                   const char **why);
/* The same, and ends the notary. */
bool notary_stop(struct notary *n, struct notary_notes *notes,
                 const char **why);

#endif
