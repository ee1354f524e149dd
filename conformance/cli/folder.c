/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder.c - makes, sweeps and removes the folder of records.
 */
#include "cli/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse(struct fsdp_error *error, const char *path)
{
    error->status = FSDP_ERR_IO;
    snprintf(error->message, sizeof error->message, "folder %.150s: %s", path,
             strerror(errno));
    return FSDP_ERR_IO;
}

/* Two runs in one folder would take each other's batches and records. Where a
 * file system has no locks there is none. */
static bool lock(struct folder *out)
{
    int fd = open(out->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0) {
        return true;
    }
    out->locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (!out->locked) {
        bool taken = errno == EWOULDBLOCK;

        close(fd);
        return !taken;
    }
    out->lock = fd;
    return true;
}

int folder_open(const char *wanted, struct folder *out,
                struct fsdp_error *error)
{
    const char *tmp = getenv("TMPDIR");
    char below[1100];

    *out = (struct folder){.temporary = !wanted};
    if (wanted) {
        if (strlen(wanted) >= sizeof out->path) {
            errno = ENAMETOOLONG;
            return refuse(error, wanted);
        }
        snprintf(out->path, sizeof out->path, "%s", wanted);
        if (mkdir(out->path, 0777) != 0 && errno != EEXIST) {
            return refuse(error, out->path);
        }
        if (!lock(out)) {
            error->status = FSDP_ERR_IO;
            snprintf(error->message, sizeof error->message,
                     "folder %.150s: another run writes to it", out->path);
            return FSDP_ERR_IO;
        }
    } else {
        snprintf(out->path, sizeof out->path, "%.900s/fsdp-cts.XXXXXX",
                 tmp && *tmp ? tmp : "/tmp");
        if (!mkdtemp(out->path)) {
            return refuse(error, out->path);
        }
    }
    snprintf(below, sizeof below, "%s/baseline", out->path);
    if (mkdir(below, 0777) != 0 && errno != EEXIST) {
        return refuse(error, below);
    }
    return FSDP_OK;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text);
    size_t k = strlen(end);

    return n >= k && strcmp(text + n - k, end) == 0;
}

static int sweep(const char *path, const struct stat *s, int type,
                 struct FTW *ftw)
{
    const char *name = path + ftw->base;

    (void)s;
    if (type == FTW_F &&
        (ends_with(name, ".partial") || strncmp(name, ".batch-", 7) == 0)) {
        unlink(path);
    }
    return 0;
}

static int erase(const char *path, const struct stat *s, int type,
                 struct FTW *ftw)
{
    (void)s;
    (void)type;
    (void)ftw;
    remove(path);
    return 0;
}

void folder_sweep(const struct folder *folder)
{
    nftw(folder->path, sweep, 16, FTW_PHYS);
}

void folder_close(struct folder *folder)
{
    if (folder->temporary && folder->path[0]) {
        nftw(folder->path, erase, 16, FTW_PHYS | FTW_DEPTH);
    }
    folder->path[0] = '\0';
    if (folder->locked) {
        close(folder->lock);
        folder->locked = false;
    }
}
