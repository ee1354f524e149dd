/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_summary.h - what a run changed, for programs and for the summary of a
 * pipeline's job.
 */
#ifndef FSDP_CTS_TRACK_SUMMARY_H
#define FSDP_CTS_TRACK_SUMMARY_H

#include "tools/track/track_judge.h"

#include <stdio.h>

/* One JSON object (docs/tracking.md). NOMEM. */
int track_summary_json(const struct track_verdict *v, FILE *out);
/* A headline, and a table with a row for each cause. */
void track_summary_markdown(const struct track_verdict *v, FILE *out);

#endif
