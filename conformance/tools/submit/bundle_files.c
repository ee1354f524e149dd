/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_files.c - walks a bundle's folder, by descriptors and without going
 * through a link, and compares it with its manifest.
 */
#include "tools/submit/bundle_files.h"

#include "judge/report/report_read.h"
#include "record/record_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char where[] = "bundle";

enum {
    DEPTH = 2 /* records/<id>/ */
};

/* The end of a path says more than its beginning. */
static int fail_on(struct fsdp_error *error, int status, const char *path,
                   const char *what)
{
    const size_t n = strlen(path);

    return record_fail(error, status, where, "%s: %s",
                       n > 120 ? path + n - 120 : path, what);
}

/* The files in the folder, and those that its manifest lists; NULL: there is no
 * manifest yet. */
struct listing {
    struct bundle_files *out;
    const struct bundle_files *listed;
};

static bool ends_with(const char *path, const char *end)
{
    const size_t n = strlen(path);

    return n >= strlen(end) && strcmp(path + n - strlen(end), end) == 0;
}

/* How large a file of a bundle may be at all. */
static uint64_t most_bytes(const char *path)
{
    if (ends_with(path, ".safetensors")) {
        return RECORD_MAX_TENSORS_BYTES;
    }
    if (strcmp(path, BUNDLE_REPORT) == 0) {
        return REPORT_MAX_BYTES;
    }
    return strchr(path, '/') ? (uint64_t)RECORD_MAX_JSON_BYTES
                             : (uint64_t)BUNDLE_MAX_JSON_BYTES;
}

static int size_differs(struct fsdp_error *error, const char *path, uint64_t is,
                        uint64_t listed)
{
    return record_fail(error, FSDP_ERR_FORMAT, where,
                       "%.100s: %llu bytes, where the manifest says %llu", path,
                       (unsigned long long)is, (unsigned long long)listed);
}

/* Checked before a byte is read: a file that is not listed, of another size, or
 * larger than any may be costs nothing. */
static int check_size(int fd, const char *path,
                      const struct bundle_files *listed,
                      struct fsdp_error *error)
{
    const struct bundle_file *want;
    struct stat s;

    if (fstat(fd, &s) != 0) {
        return fail_on(error, FSDP_ERR_IO, path, strerror(errno));
    }
    if ((uint64_t)s.st_size > most_bytes(path)) {
        return record_fail(error, FSDP_ERR_FORMAT, where,
                           "%.100s: %llu bytes; such a file has at most %llu",
                           path, (unsigned long long)s.st_size,
                           (unsigned long long)most_bytes(path));
    }
    if (!listed) {
        return FSDP_OK;
    }
    want = bundle_files_find(listed, path);
    if (!want) {
        return fail_on(error, FSDP_ERR_FORMAT, path, "is not in the manifest");
    }
    return want->bytes == (uint64_t)s.st_size
               ? FSDP_OK
               : size_differs(error, path, (uint64_t)s.st_size, want->bytes);
}

static int add_file(int folder, const char *name, const char *path,
                    struct listing *to, struct fsdp_error *error)
{
    struct bundle_file *more;
    int fd;
    int status;

    if (!bundle_path_is_known(path)) {
        return fail_on(error, FSDP_ERR_FORMAT, path,
                       "no bundle has such a "
                       "file");
    }
    if ((to->out->n & (to->out->n - 1)) == 0) { /* full at every power of two */
        const size_t room = to->out->n == 0 ? 1 : (size_t)to->out->n * 2;

        more = realloc(to->out->file, room * sizeof(*more));
        if (!more) {
            return FSDP_ERR_NOMEM;
        }
        to->out->file = more;
    }
    if (to->out->n == BUNDLE_MAX_FILES) {
        return fail_on(error, FSDP_ERR_FORMAT, path, "too many files");
    }
    memset(&to->out->file[to->out->n], 0, sizeof(*to->out->file));
    memcpy(to->out->file[to->out->n].path, path,
           strlen(path)); /* visit looked */
    fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return fail_on(error, FSDP_ERR_IO, path, strerror(errno));
    }
    status = check_size(fd, path, to->listed, error);
    if (status == FSDP_OK) {
        status = record_hash_file(fd, to->out->file[to->out->n].sha256,
                                  &to->out->file[to->out->n].bytes);
        status = status == FSDP_OK
                     ? FSDP_OK
                     : fail_on(error, status, path, "cannot be read");
    }
    (void)close(fd);
    to->out->n += status == FSDP_OK;
    return status;
}

static int walk(int folder, const char *below, int depth, struct listing *to,
                struct fsdp_error *error);

static int enter(int folder, const char *name, const char *path, int depth,
                 struct listing *to, struct fsdp_error *error)
{
    int fd;

    if (depth == DEPTH) {
        return fail_on(error, FSDP_ERR_FORMAT, path,
                       "no bundle has such a folder");
    }
    fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_DIRECTORY);
    if (fd < 0) {
        return fail_on(error, FSDP_ERR_IO, path, strerror(errno));
    }
    return walk(fd, path, depth + 1, to, error);
}

static int visit(int folder, const char *name, const char *below, int depth,
                 struct listing *to, struct fsdp_error *error)
{
    char path[RECORD_PATH_BYTES];
    struct stat s;

    if (snprintf(path, sizeof(path), "%s%s%s", below,
                 below[0] != '\0' ? "/" : "", name) >= BUNDLE_PATH_BYTES) {
        return fail_on(error, FSDP_ERR_FORMAT, path,
                       "no bundle has so long a path");
    }
    if (fstatat(folder, name, &s, AT_SYMLINK_NOFOLLOW) != 0) {
        return fail_on(error, FSDP_ERR_IO, path, strerror(errno));
    }
    if (S_ISDIR(s.st_mode)) {
        return enter(folder, name, path, depth, to, error);
    }
    if (!S_ISREG(s.st_mode)) {
        return fail_on(error, FSDP_ERR_FORMAT, path,
                       S_ISLNK(s.st_mode) ? "a link; a bundle has none"
                                          : "neither a file nor a folder");
    }
    return strcmp(path, BUNDLE_MANIFEST) == 0
               ? FSDP_OK
               : add_file(folder, name, path, to, error);
}

/* Takes the descriptor. A folder without a file is refused: nothing would be
 * lost without it, but no manifest lists it. */
static int walk(int folder, const char *below, int depth, struct listing *to,
                struct fsdp_error *error)
{
    const uint32_t before = to->out->n;
    DIR *d = fdopendir(folder);
    const struct dirent *entry;
    int status = FSDP_OK;

    if (!d) {
        (void)close(folder);
        return fail_on(error, FSDP_ERR_IO, below, strerror(errno));
    }
    while (status == FSDP_OK && (entry = readdir(d))) {
        if (strcmp(entry->d_name, ".") != 0 &&
            strcmp(entry->d_name, "..") != 0) {
            status = visit(dirfd(d), entry->d_name, below, depth, to, error);
        }
    }
    (void)closedir(d);
    if (status == FSDP_OK && to->out->n == before && depth > 0) {
        return fail_on(error, FSDP_ERR_FORMAT, below, "an empty folder");
    }
    return status;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct bundle_file *)a)->path,
                  ((const struct bundle_file *)b)->path);
}

int bundle_files_list(const char *folder, const struct bundle_files *listed,
                      struct bundle_files *out, struct fsdp_error *error)
{
    struct listing to = {out, listed};
    const int fd = open(folder, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    int status;

    memset(out, 0, sizeof(*out));
    if (fd < 0) {
        return fail_on(error, FSDP_ERR_IO, folder, strerror(errno));
    }
    status = walk(fd, "", 0, &to, error);
    if (status != FSDP_OK) {
        bundle_files_release(out);
    } else if (out->n > 0) {
        qsort(out->file, out->n, sizeof(*out->file), compare);
    }
    return status;
}

int bundle_read(const char *folder, const char *name, size_t most, char **out,
                size_t *bytes, struct fsdp_error *error)
{
    const struct record_source from = {
        .where = where, .most = most, .no_link = true};
    char path[RECORD_PATH_BYTES];

    *out = NULL;
    FSDP_TRY(record_path(path, folder, name, error));
    return record_read_file(path, &from, out, bytes, error);
}

/* Two ascending lists: the first path at which they differ. */
static int differ(const struct bundle_files *there,
                  const struct bundle_files *listed, struct fsdp_error *error)
{
    for (uint32_t i = 0; i < there->n; i++) {
        const struct bundle_file *is = &there->file[i];
        struct bundle_file *want = bundle_files_find(listed, is->path);

        want->seen = true;              /* check_size found it */
        if (want->bytes != is->bytes) { /* it grew while it was read */
            return size_differs(error, is->path, is->bytes, want->bytes);
        }
        if (strcmp(want->sha256, is->sha256) != 0) {
            return fail_on(error, FSDP_ERR_FORMAT, is->path,
                           "its SHA-256 is not the manifest's");
        }
    }
    for (uint32_t i = 0; i < listed->n; i++) {
        if (!listed->file[i].seen) {
            return fail_on(error, FSDP_ERR_FORMAT, listed->file[i].path,
                           "is in the manifest and missing");
        }
    }
    return FSDP_OK;
}

int bundle_files_check(const char *folder, struct bundle_files *out,
                       struct fsdp_error *error)
{
    struct bundle_files there = {0};
    size_t bytes = 0;
    char *text;
    int status;

    memset(out, 0, sizeof(*out));
    FSDP_TRY(bundle_read(folder, BUNDLE_MANIFEST, BUNDLE_MAX_JSON_BYTES, &text,
                         &bytes, error));
    status = bundle_manifest_parse(text, bytes, BUNDLE_MANIFEST, out, error);
    free(text);
    if (status == FSDP_OK) {
        status = bundle_files_list(folder, out, &there, error);
    }
    if (status == FSDP_OK) {
        status = differ(&there, out, error);
    }
    bundle_files_release(&there);
    if (status != FSDP_OK) {
        bundle_files_release(out);
    }
    return status;
}
