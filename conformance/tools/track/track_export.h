/* SPDX-License-Identifier: Apache-2.0 */
/* track_export.h - a history in the formats of other programs. */
#ifndef FSDP_CTS_TRACK_EXPORT_H
#define FSDP_CTS_TRACK_EXPORT_H

#include "tools/track/history.h"

#include <stdio.h>

enum track_format {
    TRACK_CUSTOM_SMALLER = 0, /* github-action-benchmark's */
    TRACK_CUSTOM_BIGGER = 1,
    TRACK_BENCHER = 2, /* Bencher Metric Format */
    TRACK_CSV = 3,     /* all runs; the others have one */
    TRACK_N_FORMATS = 4,
};
const char *track_format_name(uint32_t format); /* "gab-smaller" */

/* run: a number, or 0: the newest. CSV takes all runs. IO, NOMEM; FORMAT:
 * there is nothing to export. */
int track_export(struct history *h, enum track_format format, int64_t run,
                 FILE *out, struct fsdp_error *error);

#endif
