/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_read.h - a report (JSON Lines) back as what was judged, to be shown
 * again, in whole or in part, without the records it speaks of.
 */
#ifndef FSDP_CTS_REPORT_READ_H
#define FSDP_CTS_REPORT_READ_H

#include "judge/report/report.h"

enum {
    REPORT_MAX_BYTES = 1 << 28, /* of the whole file */
    REPORT_RERUN_BYTES = 1280,
    REPORT_MAX_STAGES = 64
};

/* What one engine's part of a report says. */
struct report_part_kept {
    /* As judged, but for what no report has: how many records were spoiled (0
     * or 1); how long a case took. */
    struct judge_result result;
    /* Of whoever judged. Strings are this part's, `report` is NULL. */
    struct report_meta meta;
    char suite[32], rerun[REPORT_RERUN_BYTES];
    char (*stage)[48]; /* of findings, which point here */
    uint32_t n_stages;
};

struct report_kept {
    uint32_t n; /* one at least */
    struct report_part_kept *part;
};

/* Reads a whole report, whose requirements are among those of `table` (checked,
 * NULL-ended; it outlives the result). `file` is for messages. FORMAT: it is
 * none, is cut off, has items of unknown requirements or totals that are not
 * the number of its items; says which line. NOMEM. After a failure there is
 * nothing to release. */
int report_read(const char *text, size_t bytes, const char *file,
                const struct requirement *const *table, struct report_kept *out,
                struct fsdp_error *error);
/* The next line of *at, which moves behind it; without its end. NULL: there is
 * none. */
const char *report_line(const char **at, const char *end, size_t *n);
void report_kept_release(struct report_kept *r); /* any state */

/* Leaves only these requirements (NULL-ended) in the result, and concludes
 * from them alone: counts, levels, and a verdict that is no whole one. */
void report_select(struct judge_result *r, const char *const *only);

#endif
