/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supervise_worker.h - one worker after the other over a list of cases: each
 * starts behind the case that took the last one down.
 *
 * A worker says where it stands on a descriptor of its own (worker.h), which
 * ranks do not have. The output of engines comes by others, one for each rank,
 * and is shown, escaped, with the case and the rank that printed it. A worker
 * is over when its process has ended, even if other processes still hold the
 * descriptors. (mpirun hands on no descriptor: under MPI the first process says
 * where it stands on standard output.)
 */
#ifndef FSDP_CTS_SUPERVISE_WORKER_H
#define FSDP_CTS_SUPERVISE_WORKER_H

#include "run/supervise.h"
#include "run/worker/case_record.h"
#include "run/worker/told.h"

#include <sys/types.h>
#include <time.h>

enum {
    SUPERVISED_OUTPUTS = WORLD_MAX_RANKS + 1,
    SUPERVISED_PIECE = 4096 /* bytes that are read at a time */
};

/* The output of the worker itself, or of rank i - 1. */
struct supervised_output {
    int fd; /* -1: closed */
    char text[256];
    size_t n;
};

struct supervised {
    const struct supervise_job *job;
    struct run_case *cases;
    uint32_t n, next; /* cases[next..n) are to be run */
    uint32_t started; /* where the running worker's batch began */
    bool in_case;     /* cases[next] has begun */
    pid_t pid;        /* 0: no worker */
    int words, exit;  /* descriptor of what it says; its pidfd. -1: closed */
    char line[2048];  /* the unfinished line of what it says */
    size_t line_n;
    struct supervised_output output[SUPERVISED_OUTPUTS];
    uint32_t n_outputs;
    char held[SUPERVISED_PIECE]; /* bytes that were read from an output and not
                                    taken up yet: */
    size_t n_held;
    struct supervised_output *held_of; /* the output that they are from */
    uint32_t shown;                    /* lines of this case that were shown */
    struct told told;                  /* text beside the record of this case */
    struct timespec last;    /* when it started, or got on with its cases */
    struct timespec stopped; /* since when it has been stopped; 0: it runs */
    char folder[CASE_FOLDER_BYTES];    /* the worker's own folder
                                          (case_record.h) */
    char batch[CASE_FOLDER_BYTES + 8]; /* file */
    bool isolated;                     /* in a namespace of its own */
    uint32_t named;            /* the rank that was ended, as the launcher
                                  says */
    int named_signal;          /* the signal that ended it; 0: the launcher says
                                  nothing */
    bool killed;               /* by the supervisor, since it made no
                                  progress */
    int wait_status;           /* once it has ended */
    struct fsdp_error refused; /* why the worker cannot go on, in its own
                                  words */
    uint32_t n_ended, n_lost;  /* cases that ended; cases that were lost with
                                  their worker or a rank */
};

/* supervise_start.c: starts a worker on what is left. IO. */
int supervised_start(struct supervised *w, uint32_t index,
                     struct fsdp_error *error);
/* supervise_words.c: reads what the worker has said and printed. Returns
 * whether there was anything. */
bool supervised_read(struct supervised *w, struct supervise_engine *engine);
/* Tells the worker one of WORKER_HEARD and its neighbours (worker.h). Not under
 * MPI. */
void supervised_tell(const struct supervised *w, char what);
/* The case that the worker is in has ended: moves its record, if there is one,
 * to where it stays. */
void supervised_settle(struct supervised *w,
                       const struct supervise_engine *engine);
/* Closes the supervisor's descriptors for this worker. */
void supervised_close(struct supervised *w);
/* Whether the worker's process has ended; if so, sets wait_status. */
bool supervised_has_ended(struct supervised *w);
/* After the worker has ended: accounts for the case that it was in. FSDP_OK if
 * it is worth going on; INVALID if it ended before its first case. */
int supervised_end(struct supervised *w, const struct supervise_engine *engine,
                   struct fsdp_error *error);
/* Kills the worker if its case takes too long, whatever the worker says
 * meanwhile, or if it was stopped for as long as a rank may be without
 * progress. */
void supervised_watch(struct supervised *w);
/* Asks the worker to end. */
void supervised_stop(struct supervised *w);
/* After supervised_stop: ends the worker and everything it started, by force if
 * it takes long. */
void supervised_kill(struct supervised *w);

#endif
