/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors_read.c - the dtypes of the format, the size of a tensor, and the
 * wording of a refusal, on which reader and writer must agree; and how a file
 * is opened, from a path or from memory, and tensors are found in it.  What the
 * header may say is safetensors_header.c's.
 */
#include "safetensors_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <fsdp/status.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- What reader and writer agree on ------------------------------------- */

/*
 * The order is part of the format's reference: it is how a writer sorts.  It
 * grows with the alignment, so sorting downwards leaves no gap.
 */
static const struct {
    char name[12];
    unsigned bits;
} dtypes[] = {
    {"BOOL", 8},    {"F4", 4},          {"F6_E2M3", 6},     {"F6_E3M2", 6},
    {"U8", 8},      {"I8", 8},          {"F8_E5M2", 8},     {"F8_E4M3", 8},
    {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
    {"U16", 16},    {"F16", 16},        {"BF16", 16},       {"I32", 32},
    {"U32", 32},    {"F32", 32},        {"C64", 64},        {"F64", 64},
    {"I64", 64},    {"U64", 64},
};

int safetensors_dtype_rank(const char *dtype)
{
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        if (strcmp(dtypes[i].name, dtype) == 0) {
            return (int)i;
        }
    }
    return -1;
}

const char *safetensors_dtype_name(int rank)
{
    return dtypes[rank].name;
}

unsigned safetensors_dtype_bits(const char *dtype)
{
    const int rank = safetensors_dtype_rank(dtype);

    return rank < 0 ? 0 : dtypes[rank].bits;
}

const char *safetensors_size(int rank, uint32_t n_dims, const uint64_t *shape,
                             uint64_t *bytes)
{
    uint64_t elements = 1;
    uint64_t bits;
    bool empty = false;

    /*
     * A zero must not hide an overflow in the other extents: a consumer may
     * well multiply them, say for strides.
     */
    for (uint32_t i = 0; i < n_dims; i++) {
        if (shape[i] == 0) {
            empty = true;
        } else if (__builtin_mul_overflow(elements, shape[i], &elements)) {
            return "the product of the shape overflows 64 bits";
        }
    }
    if (__builtin_mul_overflow(elements, dtypes[rank].bits, &bits)) {
        return "the bits of the shape overflow 64 bits";
    }
    if (empty) {
        bits = 0;
    }
    if (bits % 8 != 0) {
        return "the elements do not fill whole bytes";
    }
    *bytes = bits / 8;
    return NULL;
}

int safetensors_refuse(const struct safetensors_report *report, int status,
                       const char *format, ...)
{
    char *const why = report->why;
    const size_t room = report->why_bytes;
    va_list arguments;
    int used;

    if (room == 0) {
        return status;
    }
    used = snprintf(why, room, "%s: ", report->path);
    if (used >= 0 && (size_t)used < room) {
        va_start(arguments, format);
        vsnprintf(why + used, room - (size_t)used, format, arguments);
        va_end(arguments);
    }
    /*
     * Names come from the file.  A line break or an escape sequence in one
     * would forge lines in a log, and a UTF-8 sequence may have been cut.
     */
    for (char *c = why; *c != '\0'; c++) {
        if (*c < ' ' || *c > '~') {
            *c = '?';
        }
    }
    return status;
}

/* ---- A reader ------------------------------------------------------------ */

/* Where the data begins in memory; a cache line, and enough for any SIMD. */
#define DATA_ALIGNMENT 64

/* The header's length, checked against the size of the file. */
static int read_length(const struct safetensors_report *report,
                       const unsigned char *p, uint64_t file_bytes,
                       size_t *length)
{
    uint64_t value = 0;

    for (int i = SAFETENSORS_LENGTH_BYTES - 1; i >= 0; i--) {
        value = value << 8 | p[i];
    }
    if (value < SAFETENSORS_HEADER_MIN || value > SAFETENSORS_HEADER_MAX) {
        return safetensors_refuse(
            report, FSDP_ERR_FORMAT,
            "a header of %" PRIu64 " bytes, %d to %d expected", value,
            SAFETENSORS_HEADER_MIN, SAFETENSORS_HEADER_MAX);
    }
    if (value > file_bytes - SAFETENSORS_LENGTH_BYTES) {
        return safetensors_refuse(report, FSDP_ERR_FORMAT,
                                  "a header of %" PRIu64
                                  " bytes, past the end: %" PRIu64
                                  " bytes follow its length",
                                  value, file_bytes - SAFETENSORS_LENGTH_BYTES);
    }
    *length = (size_t)value;
    return FSDP_OK;
}

static int refuse_short(const struct safetensors_report *report, uint64_t bytes)
{
    return safetensors_refuse(report, FSDP_ERR_FORMAT,
                              "%" PRIu64 " bytes, too few for the header's "
                              "length of %d bytes",
                              bytes, SAFETENSORS_LENGTH_BYTES);
}

/* The places were checked to be contiguous, so a running sum finds them. */
static void place_tensors(struct safetensors_file *file, const void *data)
{
    const unsigned char *at = data;

    for (size_t i = 0; i < file->n; i++) {
        file->tensors[i].data = at;
        at += file->tensors[i].bytes;
    }
}

int safetensors_open_memory(const void *p, size_t bytes,
                            struct safetensors_file **out, char *why,
                            size_t why_bytes)
{
    const struct safetensors_report report = {"(memory)", why, why_bytes};
    const char *header;
    struct safetensors_file *file;
    size_t length = 0;
    int status;

    *out = NULL;
    if (bytes < SAFETENSORS_LENGTH_BYTES) {
        return refuse_short(&report, bytes);
    }
    status = read_length(&report, p, bytes, &length);
    if (status != FSDP_OK) {
        return status;
    }
    file = calloc(1, sizeof(*file));
    if (!file) {
        return safetensors_refuse(&report, FSDP_ERR_NOMEM, "out of memory");
    }
    header = (const char *)p + SAFETENSORS_LENGTH_BYTES;
    status = safetensors_read_header(&report, header, length,
                                     bytes - SAFETENSORS_LENGTH_BYTES - length,
                                     file);
    if (status != FSDP_OK) {
        safetensors_close(file);
        return status;
    }
    place_tensors(file, header + length);
    *out = file;
    return FSDP_OK;
}

static int open_regular(const struct safetensors_report *report, int *fd,
                        uint64_t *bytes)
{
    struct stat about;

    /* Not to wait for the other end of a FIFO; no matter to a file. */
    *fd = open(report->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0 || fstat(*fd, &about) != 0) {
        return safetensors_refuse(report, FSDP_ERR_IO, "cannot open: %s",
                                  strerror(errno));
    }
    if (!S_ISREG(about.st_mode)) {
        return safetensors_refuse(report, FSDP_ERR_IO, "not a regular file");
    }
    *bytes = (uint64_t)about.st_size;
    if (*bytes > SAFETENSORS_MAX_BYTES) {
        return safetensors_refuse(report, FSDP_ERR_FORMAT,
                                  "%" PRIu64 " bytes, at most 2^36 expected",
                                  *bytes);
    }
    return FSDP_OK;
}

static int read_bytes(const struct safetensors_report *report, int fd, void *p,
                      size_t bytes)
{
    size_t done = 0;

    while (done < bytes) {
        const ssize_t got = read(fd, (char *)p + done, bytes - done);

        if (got > 0) {
            done += (size_t)got;
        } else if (got == 0) {
            return safetensors_refuse(report, FSDP_ERR_IO,
                                      "became shorter while it was read");
        } else if (errno != EINTR) {
            return safetensors_refuse(report, FSDP_ERR_IO, "cannot read: %s",
                                      strerror(errno));
        }
    }
    return FSDP_OK;
}

static int read_data(const struct safetensors_report *report, int fd,
                     uint64_t bytes, struct safetensors_file *file)
{
    const uint64_t room = (bytes / DATA_ALIGNMENT + 1) * DATA_ALIGNMENT;
    int status;
    char extra;

    file->data = room > SIZE_MAX ? NULL : aligned_alloc(DATA_ALIGNMENT, room);
    if (!file->data) {
        return safetensors_refuse(report, FSDP_ERR_NOMEM,
                                  "no memory for %" PRIu64 " bytes of data",
                                  bytes);
    }
    status = read_bytes(report, fd, file->data, bytes);
    if (status != FSDP_OK) {
        return status;
    }
    if (read(fd, &extra, 1) != 0) {
        return safetensors_refuse(report, FSDP_ERR_IO,
                                  "became longer while it was read");
    }
    place_tensors(file, file->data);
    return FSDP_OK;
}

/* All of the file, given its size: length, header, data. */
static int read_file(const struct safetensors_report *report, int fd,
                     uint64_t bytes, struct safetensors_file *file)
{
    unsigned char length_bytes[SAFETENSORS_LENGTH_BYTES];
    size_t length = 0;
    uint64_t data_bytes;
    char *header;
    int status;

    if (bytes < SAFETENSORS_LENGTH_BYTES) {
        return refuse_short(report, bytes);
    }
    status = read_bytes(report, fd, length_bytes, sizeof(length_bytes));
    if (status == FSDP_OK) {
        status = read_length(report, length_bytes, bytes, &length);
    }
    if (status != FSDP_OK) {
        return status;
    }
    data_bytes = bytes - SAFETENSORS_LENGTH_BYTES - length;
    header = malloc(length);
    if (!header) {
        return safetensors_refuse(report, FSDP_ERR_NOMEM, "out of memory");
    }
    status = read_bytes(report, fd, header, length);
    if (status == FSDP_OK) {
        status =
            safetensors_read_header(report, header, length, data_bytes, file);
    }
    free(header);
    if (status == FSDP_OK) {
        status = read_data(report, fd, data_bytes, file);
    }
    return status;
}

int safetensors_open(const char *path, struct safetensors_file **out, char *why,
                     size_t why_bytes)
{
    const struct safetensors_report report = {path, why, why_bytes};
    struct safetensors_file *const file = calloc(1, sizeof(*file));
    uint64_t bytes = 0;
    int fd = -1;
    int status;

    *out = NULL;
    if (!file) {
        return safetensors_refuse(&report, FSDP_ERR_NOMEM, "out of memory");
    }
    status = open_regular(&report, &fd, &bytes);
    if (status == FSDP_OK) {
        status = read_file(&report, fd, bytes, file);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    if (status != FSDP_OK) {
        safetensors_close(file);
        return status;
    }
    *out = file;
    return FSDP_OK;
}

void safetensors_close(struct safetensors_file *file)
{
    if (file) {
        json_decref(file->root);
        free(file->data);
        free(file->tensors);
        free(file->by_name);
        free(file->meta);
        free(file);
    }
}

size_t safetensors_count(const struct safetensors_file *file)
{
    return file->n;
}

const struct safetensors_tensor *
safetensors_at(const struct safetensors_file *file, size_t i)
{
    return i < file->n ? &file->tensors[i] : NULL;
}

static int compare_tensor(const void *name, const void *element)
{
    const struct safetensors_tensor *const *const tensor = element;

    return strcmp(name, (*tensor)->name);
}

const struct safetensors_tensor *
safetensors_find(const struct safetensors_file *file, const char *name)
{
    const struct safetensors_tensor **const found =
        file->n == 0
            ? NULL
            : bsearch(name, file->by_name, file->n,
                      sizeof(struct safetensors_tensor *), compare_tensor);

    return !found ? NULL : *found;
}

static int compare_key(const void *key, const void *element)
{
    const struct safetensors_meta *const meta = element;

    return strcmp(key, meta->key);
}

const char *safetensors_meta(const struct safetensors_file *file,
                             const char *key)
{
    const struct safetensors_meta *const found =
        file->n_meta == 0 ? NULL
                          : bsearch(key, file->meta, file->n_meta,
                                    sizeof(*file->meta), compare_key);

    return !found ? NULL : found->value;
}

const struct safetensors_meta *
safetensors_meta_at(const struct safetensors_file *file, size_t i)
{
    return i < file->n_meta ? &file->meta[i] : NULL;
}
