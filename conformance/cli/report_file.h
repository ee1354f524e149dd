/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_file.h - a report's text, from its file.
 */
#ifndef FSDP_CTS_REPORT_FILE_H
#define FSDP_CTS_REPORT_FILE_H

#include <stddef.h>

/* The whole file, or what a pipe gives, up to the most that a report has; the
 * caller frees it. NULL: errno says why, EFBIG of what no report is as large
 * as. */
char *report_file_text(const char *path, size_t *bytes);

#endif
