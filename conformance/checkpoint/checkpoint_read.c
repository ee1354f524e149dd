/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_read.c - an opened checkpoint: which run of which tensor lies
 * where in which file. All headers are read when it is opened; data are read
 * where they are asked for.
 */
#include "checkpoint_opened.h"

#include <fcntl.h>
#include <fsdp/arith/cast.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads the length of an open file's header; the header's text follows it. */
static int read_length(const struct checkpoint_file *f, int fd, uint64_t *out,
                       char *why)
{
    unsigned char bytes[SAFETENSORS_LENGTH_BYTES];
    uint64_t length = 0;

    if (f->bytes < SAFETENSORS_LENGTH_BYTES) {
        return checkpoint_refuse(why, FSDP_ERR_FORMAT,
                                 "%s: too short for a header", f->name);
    }
    FSDP_TRY(checkpoint_pread(fd, f->name, 0, bytes, sizeof(bytes), why));
    for (uint32_t k = SAFETENSORS_LENGTH_BYTES; k-- > 0;) {
        length = length << 8 | bytes[k];
    }
    if (length < SAFETENSORS_HEADER_MIN || length > SAFETENSORS_HEADER_MAX ||
        length > f->bytes - SAFETENSORS_LENGTH_BYTES) {
        return checkpoint_refuse(why, FSDP_ERR_FORMAT,
                                 "%s: a header of %llu bytes does not fit",
                                 f->name, (unsigned long long)length);
    }
    *out = length;
    return FSDP_OK;
}

static int read_header(struct checkpoint *c, int fd, uint32_t i, char *why)
{
    const struct checkpoint_file *f = &c->manifest.file[i];
    uint64_t length = 0;
    char *text;
    int status;

    FSDP_TRY(read_length(f, fd, &length, why));
    text = malloc(length + 1);
    status = text ? checkpoint_pread(fd, f->name, SAFETENSORS_LENGTH_BYTES,
                                     text, length, why)
                  : checkpoint_no_memory(why);
    if (status == FSDP_OK && text) {
        status = checkpoint_take_header(c, i, fd, text, length,
                                        SAFETENSORS_LENGTH_BYTES + length, why);
    }
    free(text);
    return status;
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name);

    return n >= strlen(end) && strcmp(name + n - strlen(end), end) == 0;
}

static struct checkpoint_identity identity_of(const struct stat *about)
{
    struct checkpoint_identity x;

    memset(&x, 0, sizeof(x)); /* its padding too: it is compared as bytes */
    x.device = about->st_dev;
    x.inode = about->st_ino;
    x.bytes = (uint64_t)about->st_size;
    x.changed = about->st_ctim; /* no program can set this time back */
    return x;
}

/* Checks that this is the file that was there when the checkpoint was
 * opened. */
static int check_identity(const struct checkpoint *c, uint32_t i,
                          const struct stat *about, char *why)
{
    struct checkpoint_identity x = identity_of(about);

    return memcmp(&x, &c->identity[i], sizeof(x)) == 0
               ? FSDP_OK
               : checkpoint_refuse(why, FSDP_ERR_FORMAT,
                                   "%s: it was written to, or is another file, "
                                   "since it was verified",
                                   c->manifest.file[i].name);
}

int checkpoint_unchanged(const struct checkpoint *c, char *why)
{
    for (uint32_t i = 0; i < c->manifest.n_files; i++) {
        const char *name = c->manifest.file[i].name;
        struct stat about;

        if (fstatat(c->directory, name, &about, AT_SYMLINK_NOFOLLOW) != 0) {
            return checkpoint_refuse_system(why, name, "cannot look at");
        }
        FSDP_TRY(check_identity(c, i, &about, why));
    }
    return FSDP_OK;
}

static int read_file(struct checkpoint *c, uint32_t i, char *why)
{
    struct stat about;
    int status = FSDP_OK;
    int fd = checkpoint_open_file(c->directory, c->manifest.file[i].name,
                                  &about, &status, why);

    if (fd < 0) {
        return status;
    }
    c->identity[i] = identity_of(&about);
    if (ends_with(c->manifest.file[i].name, ".safetensors")) {
        status = read_header(c, fd, i, why);
    } /* other files are indexes, for other readers */
    (void)close(fd);
    return status;
}

static int read_all(struct checkpoint *c, char *why)
{
    c->identity = calloc(c->manifest.n_files + (size_t)1, sizeof(*c->identity));
    if (!c->identity) {
        return checkpoint_no_memory(why);
    }
    checkpoint_sort_entries(&c->manifest.table);
    for (uint32_t i = 0; i < c->manifest.n_files; i++) {
        FSDP_TRY(read_file(c, i, why));
    }
    return checkpoint_take_all(c, why);
}

static int open_once(const char *directory, struct checkpoint **out, char *why)
{
    struct checkpoint *c = calloc(1, sizeof(*c));
    int status;

    *out = NULL;
    if (!c) {
        return checkpoint_no_memory(why);
    }
    c->fd = -1;
    status = checkpoint_choose(directory, &c->directory, &c->manifest, c->path,
                               c->reason, why);
    if (status == FSDP_OK) {
        status = read_all(c, why);
    }
    if (status != FSDP_OK) {
        checkpoint_close(c);
        return status;
    }
    *out = c;
    return FSDP_OK;
}

int checkpoint_open(const char *directory, struct checkpoint **out, char *why)
{
    uint64_t newest = checkpoint_newest(directory);
    uint64_t before;
    int status;

    do {
        before = newest;
        status = open_once(directory, out, why);
        newest = status == FSDP_OK ? before : checkpoint_newest(directory);
    } while (newest > before);
    return status;
}

void checkpoint_close(struct checkpoint *c)
{
    if (!c) {
        return;
    }
    if (c->fd >= 0) {
        (void)close(c->fd);
    }
    if (c->directory >= 0) {
        (void)close(c->directory);
    }
    checkpoint_forget(c);
    free(c->identity);
    free(c);
}

const char *checkpoint_path(const struct checkpoint *c)
{
    return c->path;
}

const char *checkpoint_reason(const struct checkpoint *c)
{
    return c->reason;
}

const struct checkpoint_manifest *
checkpoint_manifest_of(const struct checkpoint *c)
{
    return &c->manifest;
}

bool checkpoint_is_local(const struct checkpoint *c)
{
    return strcmp(c->manifest.form, "local") == 0;
}

struct checkpoint_state checkpoint_state_of(const struct checkpoint *c)
{
    return c->state;
}

const struct checkpoint_own_steps *
checkpoint_own_steps(const struct checkpoint *c, uint32_t *n)
{
    *n = c->n_steps;
    return c->steps;
}

bool checkpoint_steps_of(const struct checkpoint *c, const char *parameter,
                         uint64_t *step)
{
    for (uint32_t i = 0; i < c->n_steps; i++) {
        if (strcmp(c->steps[i].parameter, parameter) == 0) {
            *step = c->steps[i].step;
            return true;
        }
    }
    return false;
}

/* Opens a file and keeps its descriptor; only one is kept, as files are read
 * one after the other. */
static int open_run_file(struct checkpoint *c, uint32_t file, char *why)
{
    struct stat about;
    int status = FSDP_OK;

    if (c->fd >= 0 && c->file == file) {
        return FSDP_OK;
    }
    if (c->fd >= 0) {
        (void)close(c->fd);
    }
    c->file = file;
    c->fd = checkpoint_open_file(c->directory, c->manifest.file[file].name,
                                 &about, &status, why);
    return status;
}

int checkpoint_read(struct checkpoint *c, const char *name, uint64_t first,
                    uint64_t n, void *to, char *why)
{
    int i = checkpoint_entry_of(&c->manifest.table, name);
    uint64_t end = first + n;
    uint32_t low = 0;
    uint32_t high = c->n_runs;
    unsigned char *p = to;
    uint64_t bytes;

    if (i < 0 || end < first || end > c->manifest.table.entry[i].numel) {
        return checkpoint_refuse(why, FSDP_ERR_INVALID,
                                 "%.80s has no elements up to %llu", name,
                                 (unsigned long long)end);
    }
    bytes = checkpoint_element_bytes(&c->manifest.table.entry[i]);
    while (low < high) { /* the first run that ends behind `first` */
        uint32_t k = low + (high - low) / 2;
        if (c->run[k].entry < (uint32_t)i ||
            (c->run[k].entry == (uint32_t)i &&
             c->run[k].first + c->run[k].n <= first)) {
            low = k + 1;
        } else {
            high = k;
        }
    }
    for (uint32_t k = low; first < end; k++) {
        const struct checkpoint_run *x = &c->run[k];
        uint64_t from = first - x->first;
        uint64_t m = x->n - from < end - first ? x->n - from : end - first;
        FSDP_TRY(open_run_file(c, x->file, why));
        FSDP_TRY(checkpoint_pread(c->fd, c->manifest.file[x->file].name,
                                  x->at + from * bytes, p, m * bytes, why));
        p += m * bytes;
        first += m;
    }
    return FSDP_OK;
}

int checkpoint_read_f32(struct checkpoint *c, const char *name, uint64_t first,
                        uint64_t n, float *to, char *why)
{
    const int i = checkpoint_entry_of(&c->manifest.table, name);
    const uint32_t dtype =
        i < 0 ? FSDP_DTYPE_NONE : c->manifest.table.entry[i].dtype;
    unsigned char *half = (unsigned char *)to + n * sizeof(uint16_t);

    if (dtype != FSDP_DTYPE_BF16 && dtype != FSDP_DTYPE_F16) {
        return checkpoint_read(c, name, first, n, to, why);
    }
    /* Reads 16 bit values into the second half of the place, from which they
     * are widened before they are overwritten. */
    FSDP_TRY(checkpoint_read(c, name, first, n, half, why));
    for (uint64_t k = 0; k < n; k++) {
        uint16_t x;

        memcpy(&x, half + k * sizeof(x), sizeof(x));
        to[k] = fsdp_load(dtype, &x, 0);
    }
    return FSDP_OK;
}

bool checkpoint_extra_at(const struct checkpoint *c, uint32_t i,
                         struct checkpoint_extra *out)
{
    if (i >= c->n_owns) {
        return false;
    }
    *out = (struct checkpoint_extra){c->own[i].rank, c->own[i].name,
                                     c->own[i].bytes};
    return true;
}

int checkpoint_extra_read(struct checkpoint *c, uint32_t i, void *to, char *why)
{
    const struct checkpoint_own *x = &c->own[i];

    FSDP_TRY(open_run_file(c, x->file, why));
    return checkpoint_pread(c->fd, c->manifest.file[x->file].name, x->at, to,
                            x->bytes, why);
}
