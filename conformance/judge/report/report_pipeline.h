/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_pipeline.h - what was judged, for the pages that pipelines show.
 */
#ifndef FSDP_CTS_REPORT_PIPELINE_H
#define FSDP_CTS_REPORT_PIPELINE_H

#include "judge/report/report.h"

/* Markdown, as for a job's summary: the verdict, the failure to look at first,
 * a row for each requirement that failed and for each level. NOMEM. */
int report_markdown(FILE *f, const struct judge_result *r,
                    const struct report_meta *meta);

/* A workflow command of GitHub Actions for each requirement that failed, which
 * it shows as an annotation; causes first, and ten at most, which is what it
 * keeps of one step. One more for drawn scripts that fail, and a notice for a
 * verdict that has a reason. NOMEM. */
int report_annotations(FILE *f, const struct judge_result *r,
                       const struct report_meta *meta);

/* Objects of GitLab's code quality report, one for each requirement that
 * failed and one for drawn scripts that fail, with commas before all but the
 * first; the array's brackets are the caller's. `path` is the file that they
 * are shown at, `first` whether nothing stands before; it is left false if
 * something was written. NOMEM. */
int report_code_quality(FILE *f, const struct judge_result *r, const char *path,
                        bool *first);

#endif
