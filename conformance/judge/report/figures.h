/* SPDX-License-Identifier: Apache-2.0 */
/*
 * figures.h - the exact figures of one case of one run: names and numbers, the
 * bound, and the timeline of a step. A report and a history (tools/track) have
 * the same text for it, and it is read equally strictly from both.
 */
#ifndef FSDP_CTS_FIGURES_H
#define FSDP_CTS_FIGURES_H

#include "judge/judge.h"
#include "record/record_internal.h"

enum {
    FIGURES_MOST = 64,
    FIGURE_NAME_BYTES = 48,
    FIGURES_MOMENTS_MOST = 1 << 16,
    FIGURES_UNITS_MOST = 1 << 16,
};

struct figures {
    uint32_t n;
    char name[FIGURES_MOST][FIGURE_NAME_BYTES];
    uint64_t value[FIGURES_MOST];
    uint64_t steps; /* 0: not known */
    bool has_bound;
    uint64_t bound, step;
    uint32_t n_moments, n_units;
    struct judge_moment *moment;
    char (*unit)[64];
};

/* Reads {"steps", "figures", "bound"?, "timeline"?}. FORMAT, NOMEM. *out is to
 * be released whatever is returned. */
int figures_read(struct record_json *j, json_t *o, struct figures *out);
/* Whether the figures are exactly those that a report has, with a bound; if
 * not, refuses and returns false. */
bool figures_are_judged(struct record_json *j, const struct figures *f);
void figures_release(struct figures *f);
/* The figure with this name; NULL: there is none. */
const uint64_t *figures_find(const struct figures *f, const char *name);
/* The unit of a figure: "bytes", or "" for a count. */
const char *figure_unit(const char *name);

#endif
