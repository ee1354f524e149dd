/* SPDX-License-Identifier: Apache-2.0 */
/* report_internal.h - what the files report*.c share. */
#ifndef FSDP_CTS_REPORT_INTERNAL_H
#define FSDP_CTS_REPORT_INTERNAL_H

#include "judge/report/report.h"
#include "judge/report/report_file.h"

enum {
    REPORT_LINE_BYTES = 1280
};

/* `in` as it may be shown on a terminal or written for programs, whatever a
 * record says: control characters and bytes beyond ASCII become '?'. */
const char *report_printable(const char *in, char out[REPORT_LINE_BYTES]);

/* A value as a finding's form has it: "0x3f800000 (1)", "17", "4096 bytes". */
enum {
    REPORT_VALUE_BYTES = 48
};
const char *report_value(uint32_t form, uint64_t value,
                         char out[REPORT_VALUE_BYTES]);
const char *report_form_name(uint32_t form); /* NULL: there is no such form */
bool report_has_values(const struct finding *f);

/* Whether the item is worth a line: its requirement is reported, and
 * applies. */
bool report_shows(const struct judge_result *r, uint32_t c, uint32_t q);

/* Why an item did not pass, in one line; "" if it passed. */
const char *report_why(const struct judge_result *r, uint32_t c, uint32_t q,
                       char out[REPORT_LINE_BYTES]);

/* The command that runs case c again; "": not known. */
const char *report_rerun(const struct report_meta *meta,
                         const struct judge_case *c,
                         char out[REPORT_LINE_BYTES]);

/* How long case c was played; 0: not known. */
uint64_t report_milliseconds(const struct judge_case *c);

/* The text of the ranks of case c (judge_case.told), if requirement q is the
 * failure to look at first in it; else NULL. */
const char *report_told(const struct judge_result *r, uint32_t c, uint32_t q);
/* The next line of that text, printable; *at moves behind it. False: there is
 * no more. */
bool report_told_line(const char **at, char out[REPORT_LINE_BYTES]);

/* The outcome of all drawn scripts; whether one of them fails; why that is
 * no pass, or ""; and the command that plays the first failing one again, or
 * "". */
#define REPORT_DRAWN_ID   "scripts.drawn"
#define REPORT_DRAWN_TEXT "Scripts that a seed draws have no failure."
uint32_t report_drawn_outcome(const struct judge_drawn *d);
bool report_drawn_is_finding(const struct judge_result *r);
const char *report_drawn_why(const struct judge_drawn *d,
                             char out[REPORT_LINE_BYTES]);
const char *report_drawn_rerun(const struct report_meta *meta,
                               const struct judge_drawn *d,
                               char out[REPORT_LINE_BYTES]);

/* Writes only the failure to look at first, if there is one. report_failures
 * writes all others, causes first. NOMEM. */
void report_first_cause(FILE *f, const struct judge_result *r,
                        const struct report_meta *meta);
int report_failures(FILE *f, const struct judge_result *r,
                    const struct report_meta *meta);

/* The place of a finding: "step 2, unit 3 (fc3), rank 1, fc3.weight[17] = flat
 * 17, shard 0 [17]". */
const char *report_place(const struct judge_detail *d,
                         char out[REPORT_LINE_BYTES]);

#endif
