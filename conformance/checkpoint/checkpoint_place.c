/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_place.c - the directory in which a checkpoint is written before it
 * gets its name.
 */
#include "checkpoint_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint64_t checkpoint_place_number(const char *name, const char *prefix)
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

int checkpoint_open_directory(int parent, const char *name, char *why)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0) {
        (void)checkpoint_refuse(why, FSDP_ERR_IO,
                                "%.90s: %s, a directory was expected", name,
                                strerror(errno));
    }
    return fd;
}

int checkpoint_remove_directory(int parent, const char *name)
{
    int fd =
        openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    int error = d ? 0 : errno;
    const struct dirent *e;

    while (d && (e = readdir(d))) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            unlinkat(dirfd(d), e->d_name, 0) != 0 && error == 0) {
            error = errno;
        }
    }
    if (d) {
        (void)closedir(d);
    } else if (fd >= 0) {
        (void)close(fd);
    }
    if (unlinkat(parent, name, AT_REMOVEDIR) == 0) {
        return 0;
    }
    errno = error != 0 ? error : errno;
    return -1;
}

/* The highest number of any checkpoint or unfinished one. Removes unfinished
 * ones of earlier runs, as no run will finish writing or erasing them. */
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
        uint64_t whole = checkpoint_place_number(e->d_name, CHECKPOINT_PREFIX);
        uint64_t half = checkpoint_place_number(e->d_name, CHECKPOINT_PARTIAL);
        *last = whole > *last ? whole : *last;
        *last = half > *last ? half : *last;
        if (half) {
            (void)checkpoint_remove_directory(parent, e->d_name);
        }
    }
    (void)closedir(d);
    return FSDP_OK;
}

/* As mkdir -p. */
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

void checkpoint_place_name(struct checkpoint_place *p, uint64_t number)
{
    p->number = number;
    snprintf(p->partial, sizeof(p->partial), CHECKPOINT_PARTIAL "%06llu",
             (unsigned long long)number);
    snprintf(p->final, sizeof(p->final), CHECKPOINT_PREFIX "%06llu",
             (unsigned long long)number);
}

static int open_parent(struct checkpoint_place *p, const char *directory,
                       char *why)
{
    *p = (struct checkpoint_place){.parent = -1, .directory = -1};
    p->parent = checkpoint_open_directory(AT_FDCWD, directory, why);
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
    checkpoint_place_name(p, last + 1);
    if (mkdirat(p->parent, p->partial, 0777) != 0) {
        return checkpoint_refuse_system(why, p->partial, "cannot make");
    }
    p->directory = checkpoint_open_directory(p->parent, p->partial, why);
    return p->directory < 0 ? FSDP_ERR_IO : FSDP_OK;
}

int checkpoint_place_join(struct checkpoint_place *p, const char *directory,
                          uint64_t number, char *why)
{
    FSDP_TRY(open_parent(p, directory, why));
    checkpoint_place_name(p, number);
    p->directory = checkpoint_open_directory(p->parent, p->partial, why);
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
        (void)checkpoint_remove_directory(p->parent, p->partial);
    }
    checkpoint_place_close(p);
}
