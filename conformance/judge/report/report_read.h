/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_read.h - reads a report (JSON Lines) back as a result, to be shown
 * again, in whole or in part, without the records that were judged.
 */
#ifndef FSDP_CTS_REPORT_READ_H
#define FSDP_CTS_REPORT_READ_H

#include "judge/report/report.h"

enum {
    REPORT_MAX_BYTES = 1 << 28, /* the largest file that is read */
    REPORT_RERUN_BYTES = 1280,
    REPORT_MAX_STAGES = 64
};

/* What a report says of one engine. */
struct report_part_kept {
    /* The result as it was judged. A report does not say how many records were
     * spoiled (here 0 or 1 for each requirement) nor how long a case took. */
    struct judge_result result;
    /* The meta data of the program that judged. The strings are this part's;
     * `report` is NULL. */
    struct report_meta meta;
    char suite[32], rerun[REPORT_RERUN_BYTES];
    char (*stage)[48]; /* the texts to which findings' stages point */
    uint32_t n_stages;
};

struct report_kept {
    uint32_t n; /* at least one */
    struct report_part_kept *part;
};

/* Reads a whole report. Its requirements must be in `table`, which is checked,
 * NULL-ended and outlives the result. `file` is the name in messages. FORMAT:
 * the text is no report, is cut off, has items of unknown requirements, or
 * totals that are not the number of its items; error says which line. NOMEM.
 * After a failure there is nothing to release. */
int report_read(const char *text, size_t bytes, const char *file,
                const struct requirement *const *table, struct report_kept *out,
                struct fsdp_error *error);
/* The next line of *at, without its end; *at moves behind it. NULL: there is
 * none. */
const char *report_line(const char **at, const char *end, size_t *n);
void report_kept_release(struct report_kept *r); /* any state */

/* Leaves only these requirements (NULL-ended) in the result, and concludes
 * from them anew: counts, levels, and a verdict that says it is not the whole
 * one. */
void report_select(struct judge_result *r, const char *const *only);

#endif
