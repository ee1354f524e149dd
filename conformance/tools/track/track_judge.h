/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_judge.h - what changed in the newest run of a history. Exact figures
 * are compared with their level to the last byte; timed ones change where a
 * change point is, never because of one number.
 */
#ifndef FSDP_CTS_TRACK_JUDGE_H
#define FSDP_CTS_TRACK_JUDGE_H

#include "tools/track/edivisive.h"
#include "tools/track/history.h"

/* A figure that differs from its level. */
struct track_change {
    bool worse, exact;
    uint32_t series;                /* index */
    char figure[FIGURE_NAME_BYTES]; /* of exact figures; else the unit */
    double before, after;           /* exact: whole numbers; else medians */
    uint64_t exact_before, exact_after, steps;
    double chance;     /* of timed ones */
    bool large;        /* of timed ones: called without a test */
    int64_t good, bad; /* runs: the last before the change, the first
                          after it */
};

/* A series that a case of the engine had before this run, and has no more. */
struct track_gone {
    uint32_t series;
    int64_t last; /* run */
};

/* Change points of a timed series, for those who draw it as well. */
struct track_points {
    bool known;
    uint32_t n;
    struct edivisive_change *change;
};

struct track_verdict {
    struct history_run *run; /* all, oldest first */
    uint32_t n_runs;
    struct history_series *series;
    uint32_t n_series;
    struct track_points *points; /* [n_series], up to the judged run */
    struct history_accepted *accepted;
    uint32_t n_accepted;
    uint32_t newest; /* index of the run that is judged */
    /* Regressions first; then those together that are likely to have one
     * cause: of one engine, figure, and run. */
    struct track_change *change;
    uint32_t n_change, n_worse;
    struct track_gone *gone;
    uint32_t n_gone;
    uint32_t judged, began; /* series: compared with an earlier run; first */
    /* Of timed series: those whose level has too few runs for the test, and the
     * most that one of them has. */
    uint32_t n_young, young_runs;
};

/* Judges the newest run, or the run with this number (0: the newest). FORMAT:
 * there is none. *out is to be released whatever is returned. */
int track_judge(struct history *h, int64_t run,
                const struct edivisive_options *options,
                struct track_verdict *out, struct fsdp_error *error);
void track_verdict_release(struct track_verdict *v);

/* The index behind the changes that are likely to have the cause of number
 * i. */
uint32_t track_same_cause(const struct track_verdict *v, uint32_t i);

/* How many causes regressions, or improvements, are likely to have. */
uint32_t track_causes(const struct track_verdict *v, bool worse);

/* The run with this number; NULL: there is none. */
const struct history_run *track_run(const struct track_verdict *v, int64_t id);

/* Whether an acceptance speaks of a figure (or unit) of a series. */
bool track_accepts(const struct history_accepted *a,
                   const struct history_series *s, const char *figure);

#endif
