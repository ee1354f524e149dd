/* SPDX-License-Identifier: Apache-2.0 */
/* report_file.c - see report_file.h. */
#include "judge/report/report_file.h"
#include "judge/report/special_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int fail(struct report_file *file, const char *what)
{
    if (file->error->status == FSDP_OK) {
        file->error->status = FSDP_ERR_IO;
        file->error->native = errno;
        snprintf(file->error->where, sizeof(file->error->where), "report");
        snprintf(file->error->message, sizeof(file->error->message),
                 "cannot %s %.140s: %s", what, file->partial, strerror(errno));
    }
    return FSDP_ERR_IO;
}

int report_file_open(struct report_file *file, const char *path,
                     struct fsdp_error *error)
{
    memset(file, 0, sizeof(*file));
    file->error = error;
    if (strlen(path) >= sizeof(file->path)) {
        errno = ENAMETOOLONG;
        return fail(file, "open");
    }
    snprintf(file->path, sizeof(file->path), "%s", path);
    file->in_place = special_file(path);
    snprintf(file->partial, sizeof(file->partial), "%s%s", file->path,
             file->in_place ? "" : ".partial");
    file->f = fopen(file->partial, "we");
    return file->f ? FSDP_OK : fail(file, "open");
}

int report_file_close(struct report_file *file, int status)
{
    /* why something failed before this call, if `status` is IO */
    const int why = errno;

    if (!file->f) {
        return status;
    }
    if (status == FSDP_OK && (fflush(file->f) != 0 || ferror(file->f) != 0)) {
        status = fail(file, "write");
    }
    if (fclose(file->f) != 0 && status == FSDP_OK) {
        status = fail(file, "close");
    }
    file->f = NULL;
    if (status == FSDP_OK && !file->in_place &&
        rename(file->partial, file->path) != 0) {
        status = fail(file, "rename");
    }
    if (status != FSDP_OK) {
        if (!file->in_place) {
            (void)unlink(file->partial);
        }
        if (file->error->status == FSDP_OK) {
            file->error->status = status;
            snprintf(file->error->message, sizeof(file->error->message),
                     "cannot write %.140s: %s", file->partial,
                     status == FSDP_ERR_IO ? strerror(why)
                                           : fsdp_status_text(status));
        }
    }
    return status;
}
