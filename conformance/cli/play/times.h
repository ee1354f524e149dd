/* SPDX-License-Identifier: Apache-2.0 */
/*
 * times.h - says where the time of a run went, for `run --times`.
 */
#ifndef FSDP_CTS_TIMES_H
#define FSDP_CTS_TIMES_H

#include "cli/verdict/evaluate.h"

/* Seconds on the clock; and of all processors, of this process and of those
 * that it has waited for. */
struct times_span {
    double wall, processor;
};

struct times_row {
    char what[80];
    struct times_span took;
};

struct times {
    struct times_span began; /* when the run began */
    struct times_row row[2 * ARGUMENTS_MAX + 3];
    uint32_t n;
};

struct times_span times_now(void);
/* Notes the time that has passed since: "record impl". */
void times_note(struct times *t, const char *what, const char *engine,
                struct times_span since);
/* Notes what all workers together took from their start to their first case. */
void times_note_launch(struct times *t, const char *engine, double seconds);
/* Prints a table of what was noted, of the rest, and of the judge's time by
 * family of requirements: "reduce" is all that begins with "reduce.". */
void times_print(const struct times *t, const struct evaluate_result *results,
                 uint32_t n);

#endif
