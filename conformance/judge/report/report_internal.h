/* SPDX-License-Identifier: Apache-2.0 */
/* report_internal.h - shared by report*.c, and by nobody else. */
#ifndef FSDP_CTS_REPORT_INTERNAL_H
#define FSDP_CTS_REPORT_INTERNAL_H

#include "judge/report/report.h"
#include "judge/report/report_file.h"

enum {
    REPORT_LINE_BYTES = 1280
};

/* Whatever a record says may end up on a terminal or in a file for programs:
 * control characters and bytes beyond ASCII become '?'. */
const char *report_printable(const char *in, char out[REPORT_LINE_BYTES]);

/* "0x3f800000 (1)", "17", "4096 bytes" */
enum {
    REPORT_VALUE_BYTES = 48
};
const char *report_value(uint32_t form, uint64_t value,
                         char out[REPORT_VALUE_BYTES]);
const char *report_form_name(uint32_t form); /* NULL: there is none */
bool report_has_values(const struct finding *f);

/* Whether the item is worth a line: reported, and applicable. */
bool report_shows(const struct judge_result *r, uint32_t c, uint32_t q);

/* Why an item is not a pass, in one line; "" if it is one. */
const char *report_why(const struct judge_result *r, uint32_t c, uint32_t q,
                       char out[REPORT_LINE_BYTES]);

/* The command that runs case c again; "" if nobody knows one. */
const char *report_rerun(const struct report_meta *meta,
                         const struct judge_case *c,
                         char out[REPORT_LINE_BYTES]);

/* How long case c was played; 0: nobody knows. */
uint64_t report_milliseconds(const struct judge_case *c);

/* What ranks have to say of case c (struct judge_case), where requirement q is
 * what to look at first of it; else NULL. */
const char *report_told(const struct judge_result *r, uint32_t c, uint32_t q);
/* A line of it, printable; *at moves behind it. False: there is none left. */
bool report_told_line(const char **at, char out[REPORT_LINE_BYTES]);

/* What came of drawn scripts, as an outcome; why that is no pass, or ""; the
 * command that plays the first again, or "". A finding: one of them fails. */
#define REPORT_DRAWN_ID   "scripts.drawn"
#define REPORT_DRAWN_TEXT "Scripts that a seed draws have no failure."
uint32_t report_drawn_outcome(const struct judge_drawn *d);
bool report_drawn_is_finding(const struct judge_result *r);
const char *report_drawn_why(const struct judge_drawn *d,
                             char out[REPORT_LINE_BYTES]);
const char *report_drawn_rerun(const struct report_meta *meta,
                               const struct judge_drawn *d,
                               char out[REPORT_LINE_BYTES]);

/* The failure to look at first, alone, if there is any; and all others, causes
 * first (NOMEM). */
void report_first_cause(FILE *f, const struct judge_result *r,
                        const struct report_meta *meta);
int report_failures(FILE *f, const struct judge_result *r,
                    const struct report_meta *meta);

/* "step 2, unit 3 (fc3), rank 1, fc3.weight[17] = flat 17, shard 0 [17]" */
const char *report_place(const struct judge_detail *d,
                         char out[REPORT_LINE_BYTES]);

#endif
