/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_report.h - compares the report in a bundle with what the judge finds
 * now.
 */
#ifndef FSDP_CTS_BUNDLE_REPORT_H
#define FSDP_CTS_BUNDLE_REPORT_H

#include "judge/judge.h"

/* Whether two reports, both whole texts, say the same, except for facts about
 * the run of the judge: program, commit, compiler, folder, times, the command
 * of a rerun. FORMAT: the first line that differs, or that is no line of a
 * report. */
int bundle_report_same(const char *text, size_t bytes, const char *found,
                       size_t found_bytes, struct fsdp_error *error);

#endif
