/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_choose.c - which checkpoint of a directory is read, and which ones
 * are erased.
 */
#include "checkpoint_internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int read_manifest(int directory, struct checkpoint_manifest *m,
                         char *why)
{
    struct stat about;
    char *text = NULL;
    int status = FSDP_OK;
    int fd = checkpoint_open_file(directory, CHECKPOINT_MANIFEST, &about,
                                  &status, why);

    if (fd < 0) {
        return status;
    }
    if (about.st_size > 1 << 28) {
        status = checkpoint_refuse(why, FSDP_ERR_FORMAT,
                                   CHECKPOINT_MANIFEST
                                   ": %lld bytes, at most 2^28 expected",
                                   (long long)about.st_size);
    } else {
        text = malloc((size_t)about.st_size + 1);
        status = text ? checkpoint_pread(fd, CHECKPOINT_MANIFEST, 0, text,
                                         (uint64_t)about.st_size, why)
                      : checkpoint_no_memory(why);
    }
    (void)close(fd);
    if (status == FSDP_OK) {
        status = checkpoint_manifest_parse(text, (size_t)about.st_size, m, why);
    }
    free(text);
    return status;
}

/* Checks that all files are there, with the sizes that the manifest says. */
static int check_sizes(int directory, const struct checkpoint_manifest *m,
                       char *why)
{
    for (uint32_t i = 0; i < m->n_files; i++) {
        struct stat about;
        int status = FSDP_OK;
        int fd = checkpoint_open_file(directory, m->file[i].name, &about,
                                      &status, why);

        if (fd < 0) {
            return status;
        }
        (void)close(fd);
        if ((uint64_t)about.st_size != m->file[i].bytes) {
            return checkpoint_refuse(why, FSDP_ERR_FORMAT,
                                     "%s: %lld bytes, the manifest says %llu",
                                     m->file[i].name, (long long)about.st_size,
                                     (unsigned long long)m->file[i].bytes);
        }
    }
    return FSDP_OK;
}

/* On success *fd is the caller's and m filled. */
static int try_one(int parent, const char *name, int *fd,
                   struct checkpoint_manifest *m, char *why)
{
    int status;

    memset(m, 0, sizeof(*m));
    *fd = checkpoint_open_directory(parent, name, why);
    if (*fd < 0) {
        return FSDP_ERR_IO;
    }
    status = read_manifest(*fd, m, why);
    if (status == FSDP_OK) {
        status = check_sizes(*fd, m, why);
    }
    if (status != FSDP_OK) {
        checkpoint_manifest_release(m);
        (void)close(*fd);
        *fd = -1;
    }
    return status;
}

/* The highest number below *number; 0: there is none. */
static int next_newest(int parent, uint64_t *number, char *why)
{
    int fd = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    uint64_t below = *number;
    const struct dirent *e;

    *number = 0;
    if (!d) {
        int status = checkpoint_refuse_system(why, ".", "cannot list");

        if (fd >= 0) {
            (void)close(fd);
        }
        return status;
    }
    while ((e = readdir(d))) {
        uint64_t n = checkpoint_place_number(e->d_name, CHECKPOINT_PREFIX);
        *number = n < below && n > *number ? n : *number;
    }
    (void)closedir(d);
    return FSDP_OK;
}

static int choose_newest(int parent, const char *directory, int *fd,
                         struct checkpoint_manifest *m,
                         char path[CHECKPOINT_PATH_BYTES],
                         char reason[CHECKPOINT_PATH_BYTES], char *why)
{
    uint64_t number = UINT64_MAX;
    size_t used = 0;
    int status = FSDP_ERR_IO;
    char own[CHECKPOINT_WHY_BYTES];
    struct checkpoint_place p;

    for (;;) {
        int s;
        FSDP_TRY(next_newest(parent, &number, why));
        if (number == 0) {
            break;
        }
        checkpoint_place_name(&p, number);
        s = try_one(parent, p.final, fd, m, own);
        if (s == FSDP_OK) {
            snprintf(path, CHECKPOINT_PATH_BYTES, "%.900s/%s", directory,
                     p.final);
            snprintf(reason + used, CHECKPOINT_PATH_BYTES - used,
                     "%s is the newest complete one", p.final);
            return FSDP_OK;
        }
        if (used == 0) { /* only the newest one's fault matters */
            status = s;
            (void)checkpoint_refuse(why, s, "%s/%s", p.final, own);
        }
        if (used < CHECKPOINT_PATH_BYTES / 2) {
            int n = snprintf(reason + used, CHECKPOINT_PATH_BYTES - used,
                             "%s is not complete (%s); ", p.final, own);
            used += n > 0 ? (size_t)n : 0;
        }
        if (s == FSDP_ERR_NOMEM) {
            break;
        }
    }
    if (used == 0) {
        (void)checkpoint_refuse(
            why, status,
            "%.100s: there is no checkpoint: neither " CHECKPOINT_MANIFEST
            " nor " CHECKPOINT_PREFIX "NNNNNN",
            directory);
    }
    return status;
}

int checkpoint_choose(const char *directory, int *fd,
                      struct checkpoint_manifest *m,
                      char path[CHECKPOINT_PATH_BYTES],
                      char reason[CHECKPOINT_PATH_BYTES], char *why)
{
    int parent = checkpoint_open_directory(AT_FDCWD, directory, why);
    int status;

    *fd = -1;
    memset(m, 0, sizeof(*m));
    if (parent < 0) {
        return FSDP_ERR_IO;
    }
    if (faccessat(parent, CHECKPOINT_MANIFEST, F_OK, AT_SYMLINK_NOFOLLOW) ==
        0) {
        status = try_one(parent, ".", fd, m, why);
        snprintf(path, CHECKPOINT_PATH_BYTES, "%.1000s", directory);
        snprintf(reason, CHECKPOINT_PATH_BYTES,
                 "the directory is a checkpoint itself");
    } else {
        status = choose_newest(parent, directory, fd, m, path, reason, why);
    }
    (void)close(parent);
    return status;
}

uint64_t checkpoint_newest(const char *directory)
{
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char why[CHECKPOINT_WHY_BYTES];
    uint64_t number = UINT64_MAX;

    if (fd < 0 || next_newest(fd, &number, why) != FSDP_OK) {
        number = 0;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return number;
}

/* ---- Which ones are erased ---------------------------------------------- */

/* First removes the name, for good, then the files: every directory with the
 * name of a checkpoint is whole. */
static int unpublish_and_remove(int parent, const struct checkpoint_place *p,
                                char *why)
{
    if (renameat(parent, p->final, parent, p->partial) != 0) {
        return checkpoint_refuse_system(why, p->final, "cannot rename");
    }
    if (fsync(parent) != 0) {
        return checkpoint_refuse_system(why, ".", "cannot flush");
    }
    return checkpoint_remove_directory(parent, p->partial) == 0
               ? FSDP_OK
               : checkpoint_refuse_system(why, p->partial, "cannot remove");
}

static int erase_behind(int parent, uint32_t keep, char *why)
{
    uint64_t number = UINT64_MAX;
    uint32_t complete = 0;

    for (;;) {
        struct checkpoint_manifest m;
        struct checkpoint_place p;
        int fd;

        FSDP_TRY(next_newest(parent, &number, why));
        if (number == 0) {
            return FSDP_OK;
        }
        checkpoint_place_name(&p, number);
        if (complete == keep) {
            FSDP_TRY(unpublish_and_remove(parent, &p, why));
        } else if (try_one(parent, p.final, &fd, &m, why) == FSDP_OK) {
            complete++;
            checkpoint_manifest_release(&m);
            (void)close(fd);
        }
    }
}

int checkpoint_erase(const char *directory, uint32_t keep, char *why)
{
    int parent;
    int status;

    if (keep == 0) {
        return checkpoint_refuse(why, FSDP_ERR_INVALID,
                                 "at least one checkpoint is kept");
    }
    parent = checkpoint_open_directory(AT_FDCWD, directory, why);
    if (parent < 0) {
        return FSDP_ERR_IO;
    }
    status = erase_behind(parent, keep, why);
    (void)close(parent);
    return status;
}
