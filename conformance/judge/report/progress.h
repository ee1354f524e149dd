/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - how far long work is, on standard error: on a terminal a line
 * that rewrites itself, with a bar, what failed, what has passed and what is
 * left of the time; elsewhere a line every ten seconds and one at the end.
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
    char what[96]; /* is done now, or "" */
    uint32_t done, failed;
    double began, shown; /* seconds, of the monotonic clock */
    pthread_mutex_t lock;
    bool ticks, over; /* progress_tick */
    pthread_cond_t ends;
    pthread_t thread;
};

/* The strings are read once, but for `unit`. */
void progress_begin(struct progress *p, const char *phase, const char *unit,
                    uint32_t total, bool silent);
/* From here on it is shown by itself, while one thing takes long; by a thread,
 * so of a process that starts no other one until progress_clear or _end. */
void progress_tick(struct progress *p);
/* So many more are done, and of these so many failed; from any thread. NULL:
 * nothing. */
void progress_add(struct progress *p, uint32_t done, uint32_t failed);
/* What is done now: it stands behind the counts. */
void progress_name(struct progress *p, const char *what);
/* Before something else is printed: the line of a terminal goes, and is not
 * shown by itself any more. */
void progress_clear(struct progress *p);
/* The last line, if anything was done. */
void progress_end(struct progress *p);

/* Whether this stream may have colours: a terminal's, unless NO_COLOR is set or
 * TERM is dumb. */
bool progress_has_colour(FILE *f);

#endif
