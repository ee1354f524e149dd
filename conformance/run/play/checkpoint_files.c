/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_files.c - compares, damages and removes folders of checkpoints.
 */
#include "run/play/checkpoint_files.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MAX_FILES = 4096,
    PATH_BYTES = 8400
};

struct listing {
    char *path[MAX_FILES]; /* relative */
    uint64_t bytes[MAX_FILES];
    uint32_t n;
    int status;
};

/* nftw gives its visitor no context. */
static _Thread_local struct listing *into;
static _Thread_local size_t skip;

static int note_size(const char *path, const struct stat *s, int type,
                     struct FTW *ftw)
{
    (void)ftw;
    if (type == FTW_DNR || type == FTW_NS || into->n == MAX_FILES) {
        into->status = FSDP_ERR_IO;
    } else if (type == FTW_F) {
        into->bytes[into->n] = (uint64_t)s->st_size;
        into->path[into->n] = strdup(path + skip);
        into->status = into->path[into->n] ? into->status : FSDP_ERR_NOMEM;
        into->n += into->path[into->n] != NULL;
    }
    return into->status != FSDP_OK;
}

static int compare_text(const void *a, const void *b)
{
    const char *const *x = a;
    const char *const *y = b;

    return strcmp(*x, *y);
}

static struct listing *list(const char *folder)
{
    struct listing *l = calloc(1, sizeof(*l));

    if (l) {
        into = l;
        skip = strlen(folder);
        if (nftw(folder, note_size, 16, FTW_PHYS) != 0 &&
            l->status == FSDP_OK) {
            l->status = FSDP_ERR_IO;
        }
    }
    return l;
}

static void release(struct listing *l)
{
    for (uint32_t i = 0; l && i < l->n; i++) {
        free(l->path[i]);
    }
    free(l);
}

static int files_equal(const char *a, const char *b)
{
    FILE *x = fopen(a, "rbe");
    FILE *y = fopen(b, "rbe");
    int status = x && y ? FSDP_OK : FSDP_ERR_IO;
    int c = 0;

    while (status == FSDP_OK && c != EOF) {
        c = getc(x);
        status = c == getc(y) ? FSDP_OK : FSDP_ERR_MISMATCH;
    }
    if (x) {
        (void)fclose(x);
    }
    if (y) {
        (void)fclose(y);
    }
    return status;
}

static int listings_equal(const char *a, const char *b, struct listing *x,
                          struct listing *y)
{
    if (x->status != FSDP_OK || y->status != FSDP_OK) {
        return FSDP_ERR_IO;
    }
    if (x->n != y->n || x->n == 0) {
        return FSDP_ERR_MISMATCH;
    }
    qsort(x->path, x->n, sizeof(*x->path), compare_text);
    qsort(y->path, y->n, sizeof(*y->path), compare_text);
    for (uint32_t i = 0; i < x->n; i++) {
        char left[PATH_BYTES];
        char right[PATH_BYTES];
        if (strcmp(x->path[i], y->path[i]) != 0) {
            return FSDP_ERR_MISMATCH;
        }
        snprintf(left, sizeof(left), "%s%s", a, x->path[i]);
        snprintf(right, sizeof(right), "%s%s", b, y->path[i]);
        FSDP_TRY(files_equal(left, right));
    }
    return FSDP_OK;
}

int checkpoint_files_equal(const char *a, const char *b)
{
    struct listing *x = list(a);
    struct listing *y = list(b);
    int status = x && y ? listings_equal(a, b, x, y) : FSDP_ERR_NOMEM;

    release(x);
    release(y);
    return status;
}

/* Reads all of a file; the caller frees it. */
static int read_all(const char *path, uint64_t bytes, char **out)
{
    FILE *f = fopen(path, "rbe");
    int status = FSDP_ERR_IO;

    *out = malloc(bytes + 1);
    if (f && *out && fread(*out, 1, bytes, f) == bytes) {
        status = FSDP_OK;
    }
    if (f) {
        (void)fclose(f);
    }
    return status;
}

int checkpoint_files_have(const char *folder, const char *text, bool *found)
{
    struct listing *l = list(folder);
    int status = l ? l->status : FSDP_ERR_NOMEM;

    *found = false;
    for (uint32_t i = 0; l && i < l->n && status == FSDP_OK; i++) {
        char path[PATH_BYTES];
        char *data = NULL;

        snprintf(path, sizeof(path), "%s%s", folder, l->path[i]);
        status = read_all(path, l->bytes[i], &data);
        *found = *found || (status == FSDP_OK &&
                            memmem(data, l->bytes[i], text, strlen(text)));
        free(data);
    }
    release(l);
    return status;
}

static int turn_bit(const char *path, uint64_t at)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    unsigned char byte;
    int status = FSDP_ERR_IO;

    if (fd >= 0 && pread(fd, &byte, 1, (off_t)at) == 1) {
        byte ^= 1;
        status = pwrite(fd, &byte, 1, (off_t)at) == 1 ? FSDP_OK : FSDP_ERR_IO;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return status;
}

static bool same_folder(const char *a, const char *b)
{
    const size_t n = (size_t)(strrchr(a, '/') - a);

    return (size_t)(strrchr(b, '/') - b) == n && strncmp(a, b, n) == 0;
}

static uint32_t depth_of(const char *path)
{
    uint32_t depth = 0;

    while ((path = strchr(path, '/'))) {
        depth++;
        path++;
    }
    return depth;
}

/* The first of the largest files in the folder, or, with `beside`, in the
 * folder of that file. */
static uint32_t largest_of(const struct listing *l, const char *beside)
{
    uint32_t largest = l->n;

    for (uint32_t i = 0; i < l->n; i++) {
        if ((!beside || same_folder(l->path[i], beside)) &&
            (largest == l->n || l->bytes[i] > l->bytes[largest])) {
            largest = i;
        }
    }
    return largest;
}

/* Whether a file is to be damaged: the largest in each folder, since a folder
 * may have several checkpoints side by side, and an earlier one would be as
 * good. */
static bool is_damaged(const struct listing *l, uint32_t i)
{
    const char *largest = l->path[largest_of(l, NULL)];

    return l->bytes[i] > 0 && depth_of(l->path[i]) == depth_of(largest) &&
           largest_of(l, l->path[i]) == i;
}

int checkpoint_files_damage(const char *folder)
{
    struct listing *l = list(folder);
    int status = l && l->n > 0 ? l->status : FSDP_ERR_IO;

    for (uint32_t i = 0; status == FSDP_OK && i < l->n; i++) {
        if (is_damaged(l, i)) {
            char path[PATH_BYTES];
            snprintf(path, sizeof(path), "%s%s", folder, l->path[i]);
            status = turn_bit(path, l->bytes[i] / 2);
        }
    }
    release(l);
    return status;
}
