/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_marks.h - the part of a trace that no stream has: where the run stood,
 * and what was live. Internal to trace*.c.
 */
#ifndef FSDP_CTS_TRACE_MARKS_H
#define FSDP_CTS_TRACE_MARKS_H

#include "judge/oracle/expect.h"

#include <stdio.h>

struct trace_mark_made {
    uint64_t ns; /* of the host's monotonic clock */
    bool is_live;
    uint8_t point; /* enum fsdp_point or enum race_point */
    uint32_t step, module;
    uint64_t live[FSDP_N_KINDS]; /* bytes */
};

struct trace_marks {
    struct trace_mark_made *mark;
    uint32_t n, room;
    uint64_t missing; /* for which there was no memory */
};

/* Takes the time. */
void trace_marks_add(struct trace_marks *m, struct trace_mark_made mark);
/* Slices of steps, passes and modules, each kind on a track of its own;
 * counters of memory; and, with e, the expected window of each unit on its
 * track, and the bound. Each event has a comma before it. */
void trace_marks_write(const struct trace_marks *m, const struct expect *e,
                       FILE *f, uint32_t rank);

/* Names come from engines: nothing in them may end a string. */
void trace_put_text(FILE *f, const char *text);
/* ,"name":microseconds, with what is left of them. */
void trace_put_time(FILE *f, const char *name, uint64_t ns);

#endif
