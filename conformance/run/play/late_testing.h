/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late_testing.h - streams that do everything as late as they may, but for one
 * that does everything as early as it may: the worst case for a missing wait,
 * without a clock and without threads.
 *
 * What a stream is given is put into its queue. It is done on the caller's
 * thread when the host, or a stream that is being waited for, cannot go on
 * without it. The eager stream does what it can at once, and again whenever
 * another one has got on.
 */
#ifndef FSDP_CTS_LATE_TESTING_H
#define FSDP_CTS_LATE_TESTING_H

#include <fsdp/engine.h>
#include <stdbool.h>

/* What all ranks of a run have in common. */
struct late_how {
    const char *eager;  /* name of a stream; NULL: none */
    const char *forget; /* waits with this name do nothing; NULL: all waits
                           work */
    /* The wait that follows a forgotten one is forgotten, too. */
    bool forget_next;
    bool no_streams;  /* the communicator knows no streams */
    bool bare_pieces; /* pieces does not sync */
};

/* Puts late streams around the env's device, whose own streams are then not
 * used. One at a time on each thread. */
int late_open(struct fsdp_env *env, const struct late_how *how);
void late_close(struct fsdp_env *env);
/* How many waits, or syncs, were forgotten by the run of this thread. */
uint64_t late_forgotten(void);
/* While it is on, a sync of all streams does nothing. */
void late_forget_syncs(bool on);

#endif
