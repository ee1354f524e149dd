/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_report.h - the report in a bundle: whether it says what the judge
 * finds now; and, where there are no records, whether it fits to itself.
 */
#ifndef FSDP_CTS_BUNDLE_REPORT_H
#define FSDP_CTS_BUNDLE_REPORT_H

#include "judge/judge.h"

/* Whether two reports, both whole texts, say the same but for what is of a
 * run of the judge: program, commit, compiler, folder, times, the command of
 * a rerun. FORMAT: the first line that differs, or that is no line of a
 * report. */
int bundle_report_same(const char *text, size_t bytes, const char *found,
                       size_t found_bytes, struct fsdp_error *error);

/* What can be seen of a report alone. */
struct bundle_report {
    char engine[64], engine_version[32], verdict[32];
    uint32_t n_cases, count[JUDGE_N_OUTCOMES];
    /* Cases, in order of the report; NULL where there are none. */
    char (*id)[CASE_ID_BYTES];
};
/* FORMAT: it is none: no header or footer, a line that is none, a total that
 * is not the number of its items. */
int bundle_report_parse(const char *text, size_t bytes, const char *file,
                        struct bundle_report *out, struct fsdp_error *error);
void bundle_report_release(struct bundle_report *r); /* any state */

#endif
