/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_fuzz.c - the entry of a fuzzer to bundles as folders: which files are
 * there, of which kind and size, and whether they are the manifest's. An input
 * is a list of files, each one byte that says what it is, its path up to a 0
 * and its content up to the byte 0x1e; then a manifest of what is right may be
 * written over the one that is there.
 */
#include "checkpoint/folder_erase.h"
#include "checkpoint/fuzzing.h"
#include "record/record_internal.h"
#include "tools/submit/bundle_files.h"
#include "tools/submit/submission.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    A_LINK = 1, /* what a path is; else a file */
    A_PIPE,
    A_FOLDER,
    A_HOLE,
    MOST_FILES = 12,
    PATH_BYTES = 400
};

static char folder[64];

static void empty_folder(void)
{
    folder_erase(folder);
    require(mkdir(folder, 0700) == 0);
}

static void leave(void)
{
    empty_folder();
    (void)rmdir(folder);
}

/* Nothing outside of the folder, and no deeper than a bundle is. */
static bool is_inside(const char *path)
{
    size_t depth = 0;

    for (const char *p = path; *p != '\0'; p++) {
        depth += *p == '/';
    }
    return path[0] != '\0' && path[0] != '/' && depth <= 3 &&
           !strstr(path, "..") && !strstr(path, "//") && strlen(path) < 256;
}

static void make(uint8_t kind, const char *name, const uint8_t *p, size_t n)
{
    char path[PATH_BYTES];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    for (char *slash = path + strlen(folder) + 1; (slash = strchr(slash, '/'));
         slash++) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    switch (kind % 8) {
    case A_LINK:
        (void)symlink("/etc/passwd", path);
        return;
    case A_PIPE:
        (void)mkfifo(path, 0600);
        return;
    case A_FOLDER:
        (void)mkdir(path, 0700);
        return;
    default:
        /* A link or a pipe that is there already is left alone. */
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    }
    if (fd >= 0) {
        (void)!write(fd, p, n);
        if (kind % 8 == A_HOLE) {
            (void)ftruncate(fd, (off_t)1 << (n % 44));
        }
        (void)close(fd);
    }
}

static void make_all(const uint8_t *data, size_t bytes)
{
    const uint8_t *const end = data + bytes;

    for (uint32_t i = 0; i < MOST_FILES && end - data > 2; i++) {
        const uint8_t *to = memchr(data, 0x1e, (size_t)(end - data));
        const uint8_t *name;

        to = to ? to : end;
        name = memchr(data, '\0', (size_t)(to - data));
        if (name && name > data && is_inside((const char *)data + 1)) {
            make(data[0], (const char *)data + 1, name + 1,
                 (size_t)(to - name - 1));
        }
        data = to < end ? to + 1 : end;
    }
}

/* A manifest of what there is: then sizes and hashes agree. */
static void list_all(void)
{
    struct fsdp_error error = {0};
    char path[PATH_BYTES];
    struct bundle_files f;

    snprintf(path, sizeof(path), "%s/%s", folder, BUNDLE_MANIFEST);
    (void)remove(path);
    if (bundle_files_list(folder, NULL, &f, &error) == FSDP_OK) {
        (void)bundle_manifest_write(&f, folder, &error);
    } else {
        require(error.message[0] != '\0');
    }
    bundle_files_release(&f);
}

static void read_all(const struct bundle_files *f)
{
    char path[PATH_BYTES];

    for (uint32_t i = 0; i < f->n; i++) {
        struct fsdp_error error = {0};
        const char *name = f->file[i].path;
        struct record r;
        char *slash;

        require(bundle_path_is_known(name) && f->file[i].seen);
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        slash = strrchr(path, '/');
        if (strcmp(slash, "/case.json") == 0) {
            *slash = '\0';
            require(record_read(path, &r, &error) == FSDP_OK ||
                    error.message[0] != '\0');
            record_release(&r);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fsdp_error error = {0};
    struct bundle_files f;

    if (folder[0] == '\0') {
        snprintf(folder, sizeof(folder), "/tmp/bundle-fuzz-XXXXXX");
        require(mkdtemp(folder) && atexit(leave) == 0);
    }
    if (bytes < 2) {
        return 0;
    }
    make_all(data + 1, bytes - 1);
    if ((data[0] & 1) != 0) {
        list_all();
    }
    if (bundle_files_check(folder, &f, &error) == FSDP_OK) {
        require(f.n > 0);
        read_all(&f);
        bundle_files_release(&f);
    } else {
        require(error.message[0] != '\0');
    }
    empty_folder();
    return 0;
}
