/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_pipeline.h - what was judged, for the pages that pipelines show.
 */
#ifndef FSDP_CTS_REPORT_PIPELINE_H
#define FSDP_CTS_REPORT_PIPELINE_H

#include "judge/report/report.h"

/* Writes Markdown for the summary of a job: the verdict, the failure to look
 * at first, and a row for each requirement that failed and for each level.
 * NOMEM. */
int report_markdown(FILE *f, const struct judge_result *r,
                    const struct report_meta *meta);

/* Writes a workflow command of GitHub Actions for each requirement that failed,
 * which GitHub shows as an annotation: causes first, and ten at most, because
 * it keeps no more of one step. One more command if drawn scripts fail, and a
 * notice if the verdict has a reason. NOMEM. */
int report_annotations(FILE *f, const struct judge_result *r,
                       const struct report_meta *meta);

/* Writes objects of GitLab's code quality report: one for each requirement that
 * failed, and one if drawn scripts fail. Commas stand before all but the first;
 * the array's brackets are the caller's. `path` is the file at which GitLab
 * shows them. *first: nothing stands before; it becomes false if something was
 * written. NOMEM. */
int report_code_quality(FILE *f, const struct judge_result *r, const char *path,
                        bool *first);

#endif
