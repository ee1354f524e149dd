/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_place.c - where a checkpoint is written before it is one, and
 * which of those that are there is read.
 */
#include "checkpoint_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number behind a prefix; 0: none. */
static uint64_t number_of(const char *name, const char *prefix)
{
    size_t n = strlen(prefix);
    uint64_t number = 0;

    if (strncmp(name, prefix, n) != 0 || strlen(name + n) < 6 ||
        strlen(name + n) > 15) {
        return 0;
    }
    for (const char *p = name + n; *p; p++) {
        if (*p < '0' || *p > '9') {
            return 0;
        }
        number = 10 * number + (uint64_t)(*p - '0');
    }
    return number;
}

static int open_directory(int parent, const char *name, char *why)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0) {
        (void)checkpoint_refuse(why, FSDP_ERR_IO,
                                "%.90s: %s, a directory was expected", name,
                                strerror(errno));
    }
    return fd;
}

/* Its files, then itself; what is a directory in it stays, and keeps it. */
static void remove_directory(int parent, const char *name)
{
    int fd =
        openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;

    while (d && (e = readdir(d))) {
        (void)unlinkat(dirfd(d), e->d_name, 0);
    }
    if (d) {
        (void)closedir(d);
    } else if (fd >= 0) {
        (void)close(fd);
    }
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

/* The highest number that a checkpoint or a half one has; half ones of
 * earlier runs, which nobody will finish, are removed. */
static int last_number(int parent, uint64_t *last, char *why)
{
    int fd = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;

    *last = 0;
    if (!d) {
        return checkpoint_refuse_system(why, ".", "cannot list");
    }
    while ((e = readdir(d))) {
        uint64_t whole = number_of(e->d_name, CHECKPOINT_PREFIX);
        uint64_t half = number_of(e->d_name, CHECKPOINT_PARTIAL);
        *last = whole > *last ? whole : *last;
        *last = half > *last ? half : *last;
        if (half) {
            remove_directory(parent, e->d_name);
        }
    }
    (void)closedir(d);
    return FSDP_OK;
}

/* mkdir -p. */
static int make_directories(const char *directory, char *why)
{
    char path[CHECKPOINT_PATH_BYTES];
    size_t n = strlen(directory);

    if (n == 0 || n >= sizeof(path)) {
        return checkpoint_refuse(why, FSDP_ERR_INVALID,
                                 "a directory's path has 1 to %d bytes",
                                 CHECKPOINT_PATH_BYTES - 1);
    }
    memcpy(path, directory, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != '\0') {
            continue;
        }
        path[i] = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST) {
            return checkpoint_refuse_system(why, path, "cannot make");
        }
        path[i] = directory[i];
    }
    return FSDP_OK;
}

static void name_place(struct checkpoint_place *p, uint64_t number)
{
    p->number = number;
    (void)snprintf(p->partial, sizeof(p->partial), CHECKPOINT_PARTIAL "%06llu",
                   (unsigned long long)number);
    (void)snprintf(p->final, sizeof(p->final), CHECKPOINT_PREFIX "%06llu",
                   (unsigned long long)number);
}

static int open_parent(struct checkpoint_place *p, const char *directory,
                       char *why)
{
    *p = (struct checkpoint_place){.parent = -1, .directory = -1};
    p->parent = open_directory(AT_FDCWD, directory, why);
    return p->parent < 0 ? FSDP_ERR_IO : FSDP_OK;
}

int checkpoint_place_make(struct checkpoint_place *p, const char *directory,
                          char *why)
{
    uint64_t last;

    *p = (struct checkpoint_place){.parent = -1, .directory = -1};
    FSDP_TRY(make_directories(directory, why));
    FSDP_TRY(open_parent(p, directory, why));
    FSDP_TRY(last_number(p->parent, &last, why));
    name_place(p, last + 1);
    if (mkdirat(p->parent, p->partial, 0777) != 0) {
        return checkpoint_refuse_system(why, p->partial, "cannot make");
    }
    p->directory = open_directory(p->parent, p->partial, why);
    return p->directory < 0 ? FSDP_ERR_IO : FSDP_OK;
}

int checkpoint_place_join(struct checkpoint_place *p, const char *directory,
                          uint64_t number, char *why)
{
    FSDP_TRY(open_parent(p, directory, why));
    name_place(p, number);
    p->directory = open_directory(p->parent, p->partial, why);
    return p->directory < 0 ? FSDP_ERR_IO : FSDP_OK;
}

int checkpoint_place_publish(struct checkpoint_place *p, char *why)
{
    if (fsync(p->directory) != 0) {
        return checkpoint_refuse_system(why, p->partial, "cannot flush");
    }
    if (renameat(p->parent, p->partial, p->parent, p->final) != 0) {
        return checkpoint_refuse_system(why, p->final, "cannot rename to it");
    }
    return fsync(p->parent) != 0
               ? checkpoint_refuse_system(why, ".", "cannot flush")
               : FSDP_OK;
}

void checkpoint_place_close(struct checkpoint_place *p)
{
    if (p->directory >= 0) {
        (void)close(p->directory);
    }
    if (p->parent >= 0) {
        (void)close(p->parent);
    }
    p->directory = p->parent = -1;
}

void checkpoint_place_remove(struct checkpoint_place *p)
{
    if (p->parent >= 0 && p->partial[0]) {
        remove_directory(p->parent, p->partial);
    }
    checkpoint_place_close(p);
}

/* ---- Which one is read -------------------------------------------------- */

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

/* All files are there, with the sizes that the manifest says. */
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
    *fd = open_directory(parent, name, why);
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

/* The highest number below `below`; 0: there is none. */
static uint64_t next_newest(int parent, uint64_t below)
{
    int fd = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;
    uint64_t best = 0;

    while (d && (e = readdir(d))) {
        uint64_t number = number_of(e->d_name, CHECKPOINT_PREFIX);
        best = number < below && number > best ? number : best;
    }
    if (d) {
        (void)closedir(d);
    } else if (fd >= 0) {
        (void)close(fd);
    }
    return best;
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

    while ((number = next_newest(parent, number)) != 0) {
        int s;
        name_place(&p, number);
        s = try_one(parent, p.final, fd, m, own);
        if (s == FSDP_OK) {
            (void)snprintf(path, CHECKPOINT_PATH_BYTES, "%.900s/%s", directory,
                           p.final);
            (void)snprintf(reason + used, CHECKPOINT_PATH_BYTES - used,
                           "%s is the newest complete one", p.final);
            return FSDP_OK;
        }
        if (used == 0) { /* what is wrong with the newest is what matters */
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
    int parent = open_directory(AT_FDCWD, directory, why);
    int status;

    *fd = -1;
    memset(m, 0, sizeof(*m));
    if (parent < 0) {
        return FSDP_ERR_IO;
    }
    if (faccessat(parent, CHECKPOINT_MANIFEST, F_OK, AT_SYMLINK_NOFOLLOW) ==
        0) {
        status = try_one(parent, ".", fd, m, why);
        (void)snprintf(path, CHECKPOINT_PATH_BYTES, "%.1000s", directory);
        (void)snprintf(reason, CHECKPOINT_PATH_BYTES,
                       "the directory is a checkpoint itself");
    } else {
        status = choose_newest(parent, directory, fd, m, path, reason, why);
    }
    (void)close(parent);
    return status;
}
