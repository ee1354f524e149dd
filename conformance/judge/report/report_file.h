/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_file.h - writes a file that is whole or not there: it is written under
 * another name beside its own, and renamed. A path that is no file
 * (special_file.h) is written to directly.
 */
#ifndef FSDP_CTS_REPORT_FILE_H
#define FSDP_CTS_REPORT_FILE_H

#include <fsdp/status.h>
#include <stdbool.h>
#include <stdio.h>

enum {
    REPORT_PATH_BYTES = 4096
};

struct report_file {
    FILE *f;
    char path[REPORT_PATH_BYTES], partial[REPORT_PATH_BYTES + 8];
    bool in_place; /* a device, pipe or socket: cannot be replaced */
    struct fsdp_error *error;
};
/* `error` must live as long as the file. IO. */
int report_file_open(struct report_file *file, const char *path,
                     struct fsdp_error *error);
/* Renames the file if `status` is OK and all of it was written; else removes
 * it. Returns the first failure. */
int report_file_close(struct report_file *file, int status);

#endif
