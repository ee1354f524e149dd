/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_load.c - reads the file of a report, or what a pipe gives.
 */
#include "cli/verdict/report_load.h"
#include "cli/line/arguments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The whole file, or what a pipe gives, up to the most that a report has. NULL:
 * errno says why. */
static char *read_all(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "re");
    bool large = false;
    bool failed = false;
    struct stat about;
    char *text = NULL;

    *bytes = 0;
    if (f && fstat(fileno(f), &about) == 0) {
        large = S_ISREG(about.st_mode) && about.st_size > REPORT_MAX_BYTES;
    }
    for (size_t room = 1 << 16; f && !large && !failed && !feof(f); room *= 2) {
        char *grown = realloc(text, room);

        failed = !grown;
        text = grown ? grown : text;
        if (!failed) {
            *bytes += fread(text + *bytes, 1, room - *bytes, f);
            failed = ferror(f) != 0;
        }
        large = *bytes > REPORT_MAX_BYTES;
    }
    if (f) {
        fclose(f);
    }
    if (failed || large) {
        free(text);
        text = NULL;
        errno = large ? EFBIG : errno;
    }
    return text;
}

int report_load(const char *command, const char *path, struct report_kept *out)
{
    struct fsdp_error error = {0};
    size_t bytes = 0;
    char *text = read_all(path, &bytes);
    const int why = errno;
    int status;

    if (!text) {
        fprintf(stderr, "fsdp-cts %s: %s: %s\n", command, path,
                why == EFBIG ? "over 256 MiB, which no report has"
                             : strerror(why));
        return EXIT_BAD_DATA;
    }
    status = report_read(text, bytes, path, requirement_table(), out, &error);
    free(text);
    if (status != FSDP_OK) {
        fprintf(stderr, "fsdp-cts %s: %s\n", command, error.message);
        return EXIT_BAD_DATA;
    }
    return 0;
}
