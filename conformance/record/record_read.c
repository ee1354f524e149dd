/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_read.c - reads a case's folder. The folder may come from a stranger:
 * only regular files of a bounded size are read, no pipe can make the reader
 * wait, memory is taken in proportion to the files' sizes, and every number is
 * checked before it is used.
 */
#include "checkpoint/safetensors.h"
#include "record/record_internal.h"
#include "record/record_spill.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fsdp/arith/cast.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- A file -------------------------------------------------------------- */

const char *record_path_tail(const char *path)
{
    const size_t length = strlen(path);

    return length > 80 ? path + length - 80 : path;
}

/* Reads all bytes. Returns 0, or the errno of what failed. */
static int read_all(int fd, char *text, size_t bytes, size_t *got)
{
    *got = 0;
    while (*got < bytes) {
        const ssize_t n = read(fd, text + *got, bytes - *got);

        if (n < 0 && errno != EINTR) {
            return errno;
        }
        if (n == 0) {
            break;
        }
        *got += n > 0 ? (size_t)n : 0;
    }
    text[*got] = '\0';
    return 0;
}

static int read_open(int fd, const char *path, const struct record_source *from,
                     char **out, size_t *bytes, struct fsdp_error *error)
{
    struct stat s;
    int why;

    if (fstat(fd, &s) != 0) {
        return record_fail(error, FSDP_ERR_IO, from->where, "%s: %s",
                           record_path_tail(path), strerror(errno));
    }
    if (!S_ISREG(s.st_mode) || s.st_size < 0 ||
        (uint64_t)s.st_size > from->most) {
        return record_fail(error, FSDP_ERR_FORMAT, from->where,
                           "%s: a regular file of at most %zu bytes was "
                           "expected",
                           record_path_tail(path), from->most);
    }
    *out = malloc((size_t)s.st_size + 1);
    if (!*out) {
        return record_fail(error, FSDP_ERR_NOMEM, from->where,
                           "%s: out of memory", record_path_tail(path));
    }
    why = read_all(fd, *out, (size_t)s.st_size, bytes);
    if (why != 0) {
        free(*out);
        *out = NULL;
        return record_fail(error, FSDP_ERR_IO, from->where, "%s: %s",
                           record_path_tail(path), strerror(why));
    }
    return FSDP_OK;
}

int record_read_file(const char *path, const struct record_source *from,
                     char **out, size_t *bytes, struct fsdp_error *error)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK |
                                  (from->no_link ? O_NOFOLLOW : 0));
    int status;

    *out = NULL;
    *bytes = 0;
    if (fd < 0) {
        return from->may_lack && errno == ENOENT
                   ? FSDP_OK
                   : record_fail(error, FSDP_ERR_IO, from->where, "%s: %s",
                                 record_path_tail(path), strerror(errno));
    }
    status = read_open(fd, path, from, out, bytes, error);
    (void)close(fd);
    return status;
}

/* ---- A case -------------------------------------------------------------- */

static const char where[] = "record_read";

static const struct record_source texts = {
    .where = where, .most = RECORD_MAX_JSON_BYTES, .may_lack = true};

static int fail_with_errno(struct fsdp_error *error, const char *path)
{
    return record_fail(error, FSDP_ERR_IO, where, "%s: %s",
                       record_path_tail(path), strerror(errno));
}

static int refuse_tensor(const char *path, const struct safetensors_tensor *t,
                         const char *what, struct fsdp_error *error)
{
    return record_fail(error, FSDP_ERR_FORMAT, where, "%s: \"%.40s\": %s",
                       record_path_tail(path), t->name, what);
}

/* The dtype of a tensor; NONE: it is one that tensors of records cannot
 * have. */
static uint32_t dtype_of(const struct safetensors_tensor *t)
{
    static const struct {
        const char *name;
        uint32_t dtype;
    } known[] = {{"F32", FSDP_DTYPE_F32}, {"BF16", FSDP_DTYPE_BF16},
                 {"F16", FSDP_DTYPE_F16}, {"I32", FSDP_DTYPE_I32},
                 {"I64", FSDP_DTYPE_I64}, {"U8", FSDP_DTYPE_U8}};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(t->dtype, known[i].name) == 0) {
            return known[i].dtype;
        }
    }
    return FSDP_DTYPE_NONE;
}

static bool is_of_buffer(uint32_t stage)
{
    return stage >= RECORD_BUFFER && stage <= RECORD_BUFFER_LOADED;
}

/* Element i as a float. Values in a file need not be aligned. Integers are read
 * 16 bits at a time. */
static float element(uint32_t dtype, const void *data, uint64_t i)
{
    const uint64_t bytes = fsdp_is_float(dtype)     ? fsdp_dtype_bytes(dtype)
                           : dtype == FSDP_DTYPE_U8 ? 1
                                                    : sizeof(uint16_t);
    union {
        float wide;
        uint16_t narrow;
    } x = {0.0f};

    memcpy(&x, (const char *)data + i * bytes, bytes);
    return fsdp_is_float(dtype) ? fsdp_load(dtype, &x, 0) : x.narrow;
}

static int take_tensor(const char *path, const struct safetensors_tensor *t,
                       const struct run_case *c, struct record_tensor *out,
                       struct fsdp_error *error)
{
    struct record_tensor got;

    if (!record_tensor_parse(t->name, &got)) {
        return refuse_tensor(path, t,
                             "stage.step.microbatch.parameter#first was "
                             "expected",
                             error);
    }
    got.dtype = dtype_of(t);
    if (got.dtype == FSDP_DTYPE_NONE || t->n_dims != 1 ||
        (!fsdp_is_float(got.dtype) && !is_of_buffer(got.stage))) {
        return refuse_tensor(path, t,
                             "F32, or BF16 or F16 of what is lent in a pass, "
                             "or an integer of a buffer, of one dimension "
                             "was expected",
                             error);
    }
    if (got.step > c->steps || got.microbatch >= c->microbatches ||
        got.parameter >= RECORD_MAX_PARAMETERS) {
        return refuse_tensor(path, t,
                             "step, microbatch or parameter is out "
                             "of range",
                             error);
    }
    got.n = t->shape[0] * record_digits(got.dtype);
    got.data = malloc(got.n * sizeof(*got.data) + 1);
    if (!got.data) {
        return record_fail(error, FSDP_ERR_NOMEM, where, "%s: out of memory",
                           record_path_tail(path));
    }
    for (uint64_t i = 0; i < got.n; i++) {
        got.data[i] = element(got.dtype, t->data, i);
    }
    *out = got;
    return FSDP_OK;
}

int record_take_tensors(const char *path, const struct safetensors_file *file,
                        const struct run_case *c, uint32_t n_tensors,
                        struct record_rank *r, struct fsdp_error *error)
{
    const char *const version = safetensors_meta(file, "record-version");

    if (!version || strcmp(version, "1") != 0 || safetensors_meta_at(file, 1)) {
        return record_fail(error, FSDP_ERR_FORMAT, where,
                           "%s: __metadata__: record-version \"1\" alone was "
                           "expected",
                           record_path_tail(path));
    }
    if (safetensors_count(file) != n_tensors) {
        return record_fail(error, FSDP_ERR_FORMAT, where,
                           "%s: %zu tensors, where the rank's JSON says %u",
                           record_path_tail(path), safetensors_count(file),
                           n_tensors);
    }
    r->tensor = calloc((size_t)n_tensors + 1, sizeof(*r->tensor));
    if (!r->tensor) {
        return record_fail(error, FSDP_ERR_NOMEM, where, "%s: out of memory",
                           record_path_tail(path));
    }
    for (uint32_t i = 0; i < n_tensors; i++) {
        FSDP_TRY(take_tensor(path, safetensors_at(file, i), c, &r->tensor[i],
                             error));
        r->n_tensors++;
    }
    record_sort(r);
    return FSDP_OK;
}

static int read_tensors(const char *path, const struct run_case *c,
                        uint32_t n_tensors, struct record_rank *r,
                        struct fsdp_error *error)
{
    struct safetensors_file *file;
    char why[200] = "";
    int status = safetensors_open(path, &file, why, sizeof(why));

    if (status != FSDP_OK) {
        return record_fail(error, status, where, "%s", why);
    }
    status = record_take_tensors(path, file, c, n_tensors, r, error);
    safetensors_close(file);
    return status;
}

/* Reads a rank's two files. A rank that lacks one keeps what case.json said of
 * it. */
static int read_rank(const char *directory, const struct record *all,
                     uint32_t rank, struct record_rank *r,
                     struct fsdp_error *error)
{
    const struct run_case *c = &all->c;
    char path[2][RECORD_PATH_BYTES];
    struct stat tensors;
    uint32_t n_tensors;
    size_t bytes = 0;
    char *text;
    int status;

    r->status = r->exit_status != FSDP_OK ? r->exit_status : FSDP_ERR_INTERNAL;
    FSDP_TRY(record_rank_path(path[0], directory, rank, ".json", error));
    FSDP_TRY(record_rank_path(path[1], directory, rank, ".safetensors", error));
    if (stat(path[1], &tensors) != 0) {
        return FSDP_OK;
    }
    if ((uint64_t)tensors.st_size > RECORD_MAX_TENSORS_BYTES) {
        return record_fail(
            error, FSDP_ERR_FORMAT, where,
            "%s: %lld bytes; tensors of a rank have at most %llu",
            record_path_tail(path[1]), (long long)tensors.st_size,
            (unsigned long long)RECORD_MAX_TENSORS_BYTES);
    }
    FSDP_TRY(record_read_file(path[0], &texts, &text, &bytes, error));
    if (!text) {
        return FSDP_OK;
    }
    status =
        record_parse_rank(text, bytes, path[0], c, rank, r, &n_tensors, error);
    free(text);
    if (status == FSDP_OK) {
        status = record_ending_agrees(path[0], all, r, error);
    }
    if (status == FSDP_OK) {
        status = read_tensors(path[1], c, n_tensors, r, error);
    }
    for (uint32_t i = 0; i < r->n_tensors && all->spill; i++) {
        record_spill_put(all->spill, &r->tensor[i]);
    }
    r->present = status == FSDP_OK;
    return status;
}

/* Makes a file for the values, if they are many. Values of 16 bits take 32 in
 * it. */
static struct record_spill *make_spill(const char *directory,
                                       const struct record *of)
{
    char path[RECORD_PATH_BYTES];
    uint64_t bytes = 0;

    for (uint32_t r = 0; r < of->n_ranks; r++) {
        struct stat file;

        if (record_rank_path(path, directory, r, ".safetensors", NULL) ==
                FSDP_OK &&
            stat(path, &file) == 0 &&
            (uint64_t)file.st_size <= RECORD_MAX_TENSORS_BYTES) {
            bytes += (uint64_t)file.st_size;
        }
    }
    return bytes > RECORD_SPILL_FROM ? record_spill_open(2 * bytes) : NULL;
}

/* Whether a name is that of a rank's file, and of which rank. */
static bool is_rank_file(const char *name, unsigned long *rank)
{
    char *end;

    if (strncmp(name, "rank-", 5) != 0 || name[5] < '0' || name[5] > '9') {
        return false;
    }
    *rank = strtoul(name + 5, &end, 10);
    return strcmp(end, ".json") == 0 || strcmp(end, ".safetensors") == 0;
}

/* Refuses files of a rank that this world does not have: another run left
 * them. */
static int check_names(const char *directory, uint32_t n_ranks,
                       struct fsdp_error *error)
{
    DIR *const folder = opendir(directory);
    const struct dirent *entry;
    int status = FSDP_OK;

    if (!folder) {
        return fail_with_errno(error, directory);
    }
    while (status == FSDP_OK && (entry = readdir(folder))) {
        unsigned long rank;

        if (is_rank_file(entry->d_name, &rank) && rank >= n_ranks) {
            status = record_fail(error, FSDP_ERR_FORMAT, where,
                                 "%s/%.40s: the case has %u ranks",
                                 record_path_tail(directory), entry->d_name,
                                 n_ranks);
        }
    }
    (void)closedir(folder);
    return status;
}

int record_read(const char *directory, struct record *out,
                struct fsdp_error *error)
{
    char path[RECORD_PATH_BYTES];
    size_t bytes = 0;
    char *text;
    int status;

    memset(out, 0, sizeof(*out));
    FSDP_TRY(record_path(path, directory, "case.json", error));
    FSDP_TRY(record_read_file(path, &texts, &text, &bytes, error));
    if (!text) {
        errno = ENOENT;
        return fail_with_errno(error, path);
    }
    status = record_parse_case(text, bytes, path, out, error);
    free(text);
    if (status == FSDP_OK) {
        status = check_names(directory, out->n_ranks, error);
    }
    if (status == FSDP_OK) {
        out->spill = make_spill(directory, out);
    }
    for (uint32_t r = 0; r < out->n_ranks && status == FSDP_OK; r++) {
        out->rank[r].spill = out->spill;
        status = read_rank(directory, out, r, &out->rank[r], error);
    }
    if (status == FSDP_OK) {
        status = record_sample_agrees(directory, out, error);
    }
    if (status == FSDP_OK && out->spill && record_spill_map(out) != FSDP_OK) {
        status = record_fail(error, FSDP_ERR_IO, where,
                             "%s: its values cannot be mapped: %s",
                             record_path_tail(directory), strerror(errno));
    }
    return status;
}
