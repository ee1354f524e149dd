/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_load.h - reads a report from its file.
 */
#ifndef FSDP_CTS_REPORT_LOAD_H
#define FSDP_CTS_REPORT_LOAD_H

#include "judge/report/report_read.h"

/* Returns 0, and the caller releases the report; or EXIT_BAD_DATA after a line
 * on stderr, which begins with the name of this command. */
int report_load(const char *command, const char *path, struct report_kept *out);

#endif
