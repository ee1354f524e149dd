/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_marks.h - the part of a trace that belongs to no stream: where the run
 * stood, and how many bytes were live. Internal to trace*.c.
 */
#ifndef FSDP_CTS_TRACE_MARKS_H
#define FSDP_CTS_TRACE_MARKS_H

#include <fsdp/device.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Tracks that are no stream's; units follow the last one. */
enum {
    TRACK_STEPS = 1000,
    TRACK_PASSES,
    TRACK_MODULES,
    TRACK_UNITS
};

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
    uint64_t missing; /* marks for which there was no memory */
};

/* Adds a mark, with the time of the call. */
void trace_marks_add(struct trace_marks *m, struct trace_mark_made mark);
/* Writes slices of steps and passes, each kind on a track of its own, and
 * counters of memory. Each event has a comma before it. */
void trace_marks_write(const struct trace_marks *m, FILE *f, uint32_t rank);

/* Names a track; adds a slice to one; adds a counter's value. A name is `what`,
 * which is the suite's and is written as it is, and `name`, which is
 * escaped. */
void trace_put_track(FILE *f, uint32_t rank, uint32_t track, const char *what,
                     const char *name);
void trace_put_slice(FILE *f, uint32_t rank, uint32_t track, const char *what,
                     const char *name, uint64_t begin, uint64_t end);
void trace_put_counter(FILE *f, uint32_t rank, uint64_t ns, const char *name,
                       uint64_t bytes);

/* Escapes the text: names come from engines, and nothing in them may end a
 * string. */
void trace_put_text(FILE *f, const char *text);
/* ,"name":microseconds, with what is left of them. */
void trace_put_time(FILE *f, const char *name, uint64_t ns);

#endif
