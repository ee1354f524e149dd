/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - shows on standard error how far long work has come: on a
 * terminal with one line that rewrites itself, with a bar, the number of
 * failures, the time passed and the time left; elsewhere a line every ten
 * seconds and one at the end.
 */
#ifndef FSDP_CTS_PROGRESS_H
#define FSDP_CTS_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct progress {
    char phase[96];   /* "ref", "judge" */
    const char *unit; /* "cases" */
    uint32_t total;   /* 0: not known */
    bool silent, terminal, colour;
    char what[96]; /* what is being done now, or "" */
    uint32_t done, failed;
    double began, shown; /* seconds, of the monotonic clock */
    pthread_mutex_t lock;
    bool ticks, over; /* progress_tick */
    pthread_cond_t ends;
    pthread_t thread;
};

/* All strings are copied, but for `unit`, which must stay. */
void progress_begin(struct progress *p, const char *phase, const char *unit,
                    uint32_t total, bool silent);
/* From here on a thread shows the progress by itself, even while one thing
 * takes long. The process must start no other one until progress_clear or
 * progress_end. */
void progress_tick(struct progress *p);
/* Counts so many more as done, of which so many failed; from any thread. p may
 * be NULL. */
void progress_add(struct progress *p, uint32_t done, uint32_t failed);
/* Names what is being done now; the name stands behind the counts. */
void progress_name(struct progress *p, const char *what);
/* To be called before anything else is printed: removes the line from a
 * terminal, and ends progress_tick. */
void progress_clear(struct progress *p);
/* Shows the last line, if anything was done. */
void progress_end(struct progress *p);

/* Whether this stream may have colours: it is a terminal, NO_COLOR is not set,
 * and TERM is not dumb. */
bool progress_has_colour(FILE *f);

#endif
