/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supervise_worker.h - one worker after the other over a list of cases: each
 * starts behind the case that took the last one down.
 */
#ifndef FSDP_CTS_SUPERVISE_WORKER_H
#define FSDP_CTS_SUPERVISE_WORKER_H

#include "run/supervise.h"

#include <sys/types.h>
#include <time.h>

struct supervised {
    const struct supervise_job *job;
    struct run_case *cases;
    uint32_t n, next; /* cases[next..n) are to be run */
    uint32_t started; /* where the running worker's batch began */
    bool in_case;     /* cases[next] has begun */
    pid_t pid;        /* 0: no worker */
    int fd;           /* its standard output */
    char line[2048];
    size_t line_n;
    struct timespec last;      /* sign of life */
    char batch[4200];          /* file */
    bool killed;               /* by us: it made no progress */
    struct fsdp_error refused; /* why it cannot go on, in its own words */
    uint32_t n_ended;
};

/* Starts a worker on what is left. IO. */
int supervised_start(struct supervised *w, uint32_t index,
                     struct fsdp_error *error);
/* Reads what the worker has printed. False: it has closed its output. */
bool supervised_read(struct supervised *w, struct supervise_engine *engine);
/* The worker has ended: accounts for the case it was in. FSDP_OK if it is
 * worth going on; INVALID if it ended before its first case. */
int supervised_end(struct supervised *w, const struct supervise_engine *engine,
                   struct fsdp_error *error);
/* Kills the worker if it gave no sign of life for too long. */
void supervised_watch(struct supervised *w);
/* Asks the worker to end. */
void supervised_stop(struct supervised *w);
/* After supervised_stop: ends the worker and everything it started, by force if
 * it takes long. */
void supervised_kill(struct supervised *w);

#endif
