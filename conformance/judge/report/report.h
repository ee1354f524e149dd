/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - what was judged, for programs and for people. The JSON Lines
 * report is the product (docs/interpreting.md says how to read it); JUnit and
 * the text have the same items in other forms.
 */
#ifndef FSDP_CTS_REPORT_H
#define FSDP_CTS_REPORT_H

#include "judge/judge.h"
#include <stdio.h>

enum {
    REPORT_VERSION = 2
};

/* What is known of the run beside its result. NULL or 0: not known. */
struct report_meta {
    const char *suite_version, *commit;
    bool dirty;
    const char *compiler;
    const char *records;    /* the folder that was judged */
    const char *rerun;      /* a command to which a case's id is appended */
    int64_t started, ended; /* seconds since 1970 */
    const char *report;     /* path of the JSON Lines report, for the text */
    bool verbose; /* the text tells every case, requirement and failure */
    bool brief;   /* the text tells findings, requirements and verdict */
};

/* What was judged of one engine. */
struct report_part {
    const struct judge_result *result;
    const struct report_meta *meta;
};

/* Writes one report of several engines, in this order. In JSON Lines the
 * engines' reports follow each other, each with its header and footer. In
 * JUnit the engine's name stands before the name of each suite, if there are
 * several. */
int report_jsonl_all(const struct report_part *part, uint32_t n,
                     const char *path, struct fsdp_error *error);
int report_junit_all(const struct report_part *part, uint32_t n,
                     const char *path, struct fsdp_error *error);

/* Both write PATH.partial and rename it: a report that is there is whole. IO:
 * says which file and why. NOMEM. */
int report_jsonl(const struct judge_result *r, const struct report_meta *meta,
                 const char *path, struct fsdp_error *error);
int report_junit(const struct judge_result *r, const struct report_meta *meta,
                 const char *path, struct fsdp_error *error);

/* Writes how requirement q failed in case c, in which it did fail. */
void report_failure(const struct judge_result *r, uint32_t c, uint32_t q,
                    const struct report_meta *meta, FILE *out);

/* Writes cases, requirements, the first failures of each kind in full, levels
 * and the verdict. IO: a write failed. NOMEM. */
int report_text(const struct judge_result *r, const struct report_meta *meta,
                FILE *out);

#endif
