/* SPDX-License-Identifier: Apache-2.0 */
/*
 * times.h - where the time of a run went, for `run --times`.
 */
#ifndef FSDP_CTS_TIMES_H
#define FSDP_CTS_TIMES_H

#include "cli/verdict/evaluate.h"

/* On the clock, and of all processors: ours and those of processes that have
 * been collected. */
struct times_span {
    double wall, processor;
};

struct times_row {
    char what[80];
    struct times_span took;
};

struct times {
    struct times_span began; /* the run */
    struct times_row row[2 * ARGUMENTS_MAX + 3];
    uint32_t n;
};

struct times_span times_now(void);
/* Notes what has passed since: "record impl". */
void times_note(struct times *t, const char *what, const char *engine,
                struct times_span since);
/* What workers took from their start to their first case, all together. */
void times_note_launch(struct times *t, const char *engine, double seconds);
/* A table of what was noted, of what is left, and of the judge's time by
 * family of requirements: "reduce" is all that begins with "reduce.". */
void times_print(const struct times *t, const struct evaluate_result *results,
                 uint32_t n);

#endif
