/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_marks.h - the part of a trace that no stream has: where the run stood,
 * and what was live. Internal to trace*.c.
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
    uint64_t missing; /* for which there was no memory */
};

/* Takes the time. */
void trace_marks_add(struct trace_marks *m, struct trace_mark_made mark);
/* Slices of steps and passes, each kind on a track of its own; counters of
 * memory. Each event has a comma before it. */
void trace_marks_write(const struct trace_marks *m, FILE *f, uint32_t rank);

/* A track has this name, of which `what` is the suite's and goes as it is; a
 * slice of it, or a counter's value. */
void trace_put_track(FILE *f, uint32_t rank, uint32_t track, const char *what,
                     const char *name);
void trace_put_slice(FILE *f, uint32_t rank, uint32_t track, const char *what,
                     const char *name, uint64_t begin, uint64_t end);
void trace_put_counter(FILE *f, uint32_t rank, uint64_t ns, const char *name,
                       uint64_t bytes);

/* Names come from engines: nothing in them may end a string. */
void trace_put_text(FILE *f, const char *text);
/* ,"name":microseconds, with what is left of them. */
void trace_put_time(FILE *f, const char *name, uint64_t ns);

#endif
