/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_write.c - writes a record. It makes and clears the folder of a case,
 * writes JSON by hand, since people read records too and want one entry a line,
 * and writes what one rank showed: rank-R.json and rank-R.safetensors.
 */
#include "checkpoint/safetensors.h"
#include "record/record_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fsdp/arith/cast.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char where[] = RECORD_WRITE_WHERE;

/* ---- A case's folder ----------------------------------------------------- */

int record_make_directory(const char *directory, struct fsdp_error *error)
{
    if (mkdir(directory, 0777) != 0 && errno != EEXIST) {
        return record_fail(error, FSDP_ERR_IO, where, "%.150s: %s", directory,
                           strerror(errno));
    }
    return FSDP_OK;
}

int record_path(char path[RECORD_PATH_BYTES], const char *directory,
                const char *name, struct fsdp_error *error)
{
    const int n = snprintf(path, RECORD_PATH_BYTES, "%s/%s", directory, name);

    if (n < 0 || n >= RECORD_PATH_BYTES) {
        return record_fail(error, FSDP_ERR_INVALID, where,
                           "the path of the directory is too long: %.80s...",
                           directory);
    }
    return FSDP_OK;
}

int record_rank_path(char path[RECORD_PATH_BYTES], const char *directory,
                     uint32_t rank, const char *suffix,
                     struct fsdp_error *error)
{
    char name[48];

    snprintf(name, sizeof(name), "rank-%u%s", rank, suffix);
    return record_path(path, directory, name, error);
}

/* Whether it is a file of a rank, "rank-7.json" and the like, in any world. */
static bool is_of_rank(const char *name)
{
    static const char *const suffix[] = {".json", ".safetensors",
                                         ".json.partial",
                                         ".safetensors.partial", ".stack"};
    const char *rest = name + strlen("rank-");
    size_t digits;

    if (strncmp(name, "rank-", strlen("rank-")) != 0) {
        return false;
    }
    digits = strspn(rest, "0123456789");
    for (size_t i = 0; i < sizeof(suffix) / sizeof(suffix[0]); i++) {
        if (digits > 0 && strcmp(rest + digits, suffix[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_of_record(const char *name)
{
    return strcmp(name, "case.json") == 0 ||
           strcmp(name, "case.json.partial") == 0 ||
           strcmp(name, RECORD_TOLD) == 0 || is_of_rank(name);
}

static int remove_record(DIR *of, const char *directory,
                         struct fsdp_error *error)
{
    char path[RECORD_PATH_BYTES];
    const struct dirent *entry;

    while ((entry = readdir(of))) {
        if (!is_of_record(entry->d_name)) {
            continue;
        }
        FSDP_TRY(record_path(path, directory, entry->d_name, error));
        if (unlink(path) != 0 && errno != ENOENT) {
            return record_fail(error, FSDP_ERR_IO, where, "%.150s: %s", path,
                               strerror(errno));
        }
    }
    return FSDP_OK;
}

int record_clear(const char *directory, struct fsdp_error *error)
{
    DIR *of;
    int status;

    if (mkdir(directory, 0777) == 0) {
        return FSDP_OK; /* it is new, so there is nothing in it */
    }
    FSDP_TRY(record_make_directory(directory, error));
    of = opendir(directory);
    if (!of) {
        return record_fail(error, FSDP_ERR_IO, where, "%.150s: %s", directory,
                           strerror(errno));
    }
    status = remove_record(of, directory, error);
    (void)closedir(of);
    return status;
}

/* ---- A text -------------------------------------------------------------- */

static bool make_room(struct record_text *t, size_t more)
{
    size_t room = t->room != 0 ? t->room : 4096;
    char *text;

    if (t->failed) {
        return false;
    }
    while (room - t->length < more) {
        room *= 2;
    }
    if (room != t->room) {
        text = realloc(t->text, room);
        if (!text) {
            t->failed = true;
            return false;
        }
        t->text = text;
        t->room = room;
    }
    return true;
}

void record_text_add(struct record_text *t, const char *format, ...)
{
    va_list arguments;
    int n;

    for (size_t guess = 128; make_room(t, guess); guess = (size_t)n + 1) {
        va_start(arguments, format);
        n = vsnprintf(t->text + t->length, guess, format, arguments);
        va_end(arguments);
        if (n < 0) {
            t->failed = true;
            return;
        }
        if ((size_t)n < guess) {
            t->length += (size_t)n;
            return;
        }
    }
}

/* Bytes of the UTF-8 sequence at s, of which `left` may be looked at; 0: it is
 * none. (Table 3-7 of the Unicode standard.) */
static size_t utf8_bytes(const unsigned char *s, size_t left)
{
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

    if (n == 1) {
        return 1;
    }
    if (s[0] < 0xc2 || s[0] > 0xf4 || n > left) {
        return 0;
    }
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f)) {
        return 0;
    }
    return n;
}

/* The bytes of the character at s; 0: it is no character, or cannot be
 * printed. */
static size_t printable_bytes(const unsigned char *s, size_t left)
{
    return s[0] < 0x20 || s[0] == 0x7f ? 0 : utf8_bytes(s, left);
}

bool record_is_text(const char *s, size_t most)
{
    const unsigned char *const p = (const unsigned char *)s;
    const size_t length = strnlen(s, most);
    size_t n = 1;

    for (size_t i = 0; i < length && n > 0; i += n) {
        n = printable_bytes(p + i, length - i);
    }
    return length > 0 && length < most && n > 0;
}

void record_text_string(struct record_text *t, const char *s, size_t most)
{
    const unsigned char *const p = (const unsigned char *)s;
    const size_t length = strnlen(s, most);
    size_t n;

    record_text_add(t, "\"");
    for (size_t i = 0; i < length; i += n) {
        n = printable_bytes(p + i, length - i);
        if (n == 0) {
            n = 1;
            record_text_add(t, "?");
        } else if (p[i] == '"' || p[i] == '\\') {
            record_text_add(t, "\\%c", p[i]);
        } else {
            record_text_add(t, "%.*s", (int)n, s + i);
        }
    }
    record_text_add(t, "\"");
}

void record_text_name(struct record_text *t, const char *name, uint32_t value)
{
    if (name) {
        record_text_add(t, "\"%s\"", name);
    } else {
        record_text_add(t, "%u", value);
    }
}

static int write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        const ssize_t done = write(fd, p, n);

        if (done < 0 && errno != EINTR) {
            return -1;
        }
        if (done > 0) {
            p += done;
            n -= (size_t)done;
        }
    }
    return 0;
}

/* Not synchronised: after a power cut a suite is run again. */
static int save(const struct record_text *t, const char *path)
{
    char partial[RECORD_PATH_BYTES + sizeof(".partial")];
    int fd;
    int status;

    snprintf(partial, sizeof(partial), "%s.partial", path);
    fd = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        return -1;
    }
    status = write_all(fd, t->text, t->length);
    if (close(fd) != 0) {
        status = -1;
    }
    if (status == 0) {
        status = rename(partial, path);
    }
    if (status != 0) {
        const int why = errno;

        (void)unlink(partial);
        errno = why;
    }
    return status;
}

int record_text_save(struct record_text *t, const char *path,
                     struct fsdp_error *error)
{
    int status = FSDP_OK;

    if (t->failed) {
        status = record_fail(error, FSDP_ERR_NOMEM, RECORD_WRITE_WHERE,
                             "%.150s: out of memory", path);
    } else if (save(t, path) != 0) {
        status = record_fail(error, FSDP_ERR_IO, RECORD_WRITE_WHERE,
                             "%.150s: %s", path, strerror(errno));
    }
    free(t->text);
    memset(t, 0, sizeof(*t));
    return status;
}

/* ---- A rank's files ------------------------------------------------------ */

static bool lacks_array(const struct record_rank *r)
{
    const struct record_memory *const m = &r->memory;

    return (r->n_losses != 0 && !r->loss) ||
           (r->n_other_losses != 0 && !r->other_loss) ||
           (r->n_sequences != 0 && !r->sequence) ||
           (r->n_answers != 0 && !r->answer) ||
           (r->flights.n != 0 && !r->flights.flight) ||
           (r->n_tensors != 0 && !r->tensor) ||
           (r->n_steps != 0 && (!r->step_sequence || !m->after_step ||
                                !m->allocations || !m->launches)) ||
           (m->n_moments != 0 && !m->moment);
}

/* NULL, or what is wrong with arrays of r. */
static const char *check_rank(const struct record_rank *r)
{
    /* A rank that communicated nothing has the empty sequence alone. */
    const uint32_t n_sequences = r->n_sequences != 0 ? r->n_sequences : 1;

    if (lacks_array(r)) {
        return "an array that has elements is NULL";
    }
    if (r->shard_sequence >= n_sequences || r->end_sequence >= n_sequences) {
        return "shard_sequence or end_sequence is no sequence";
    }
    for (uint32_t i = 0; i < r->n_steps; i++) {
        if (r->step_sequence[i] >= n_sequences) {
            return "a step_sequence is no sequence";
        }
    }
    for (uint32_t s = 0; s < r->n_sequences; s++) {
        if (r->sequence[s].n != 0 && !r->sequence[s].c) {
            return "a sequence that has collectives is NULL";
        }
    }
    for (uint32_t i = 0; i < r->n_tensors; i++) {
        if (!record_stage_name(r->tensor[i].stage) ||
            r->tensor[i].dtype > FSDP_DTYPE_U8 ||
            (r->tensor[i].n != 0 && !r->tensor[i].data)) {
            return "a tensor of no stage or dtype, or without data";
        }
    }
    return NULL;
}

static const char *const dtype_name[] = {
    [FSDP_DTYPE_NONE] = "F32",  [FSDP_DTYPE_F32] = "F32",
    [FSDP_DTYPE_BF16] = "BF16", [FSDP_DTYPE_F16] = "F16",
    [FSDP_DTYPE_I32] = "I32",   [FSDP_DTYPE_I64] = "I64",
    [FSDP_DTYPE_U8] = "U8"};

/* The values as they were seen, in 16 bits or as integers: every value fits. */
static void *narrowed(const struct record_tensor *t)
{
    uint16_t *const to = malloc(t->n * sizeof(*to) + 1);

    for (uint64_t i = 0; to && i < t->n; i++) {
        if (fsdp_is_float(t->dtype)) {
            fsdp_store(t->dtype, to, i, t->data[i]);
        } else if (t->dtype == FSDP_DTYPE_U8) {
            ((uint8_t *)to)[i] = (uint8_t)t->data[i];
        } else {
            to[i] = (uint16_t)t->data[i];
        }
    }
    return to;
}

/* How a tensor is written; false: out of memory. Where it is not float32,
 * *own is what has to be freed. */
static bool describe(const struct record_tensor *t, const char *name,
                     void **own, struct safetensors_tensor *out)
{
    const bool is_wide =
        t->dtype == FSDP_DTYPE_NONE || t->dtype == FSDP_DTYPE_F32;

    *out = (struct safetensors_tensor){.name = name,
                                       .dtype = "F32",
                                       .n_dims = 1,
                                       .shape = {t->n},
                                       .data = t->data,
                                       .bytes = t->n * sizeof(float)};
    if (!is_wide) {
        *own = narrowed(t);
        out->dtype = dtype_name[t->dtype];
        out->shape[0] = t->n / record_digits(t->dtype);
        out->data = *own;
        out->bytes = out->shape[0] * fsdp_dtype_bytes(t->dtype);
    }
    return is_wide || *own;
}

static int write_tensors(const char *directory, uint32_t rank,
                         const struct record_rank *r, struct fsdp_error *error)
{
    static const struct safetensors_meta meta = {"record-version", "1"};
    const size_t n = r->n_tensors;
    char path[RECORD_PATH_BYTES];
    char why[200] = "";
    char(*name)[RECORD_TENSOR_NAME_BYTES];
    struct safetensors_tensor *t;
    void **own;
    bool good = true;
    int status;

    FSDP_TRY(record_rank_path(path, directory, rank, ".safetensors", error));
    name = calloc(n + 1, sizeof(*name));
    t = calloc(n + 1, sizeof(*t));
    own = calloc(n + 1, sizeof(*own));
    for (size_t i = 0; name && t && own && i < n; i++) {
        record_tensor_name(&r->tensor[i], name[i]);
        good = good && describe(&r->tensor[i], name[i], &own[i], &t[i]);
    }
    if (!name || !t || !own || !good) {
        status = record_fail(error, FSDP_ERR_NOMEM, where,
                             "%.150s: out of memory", path);
    } else {
        status =
            safetensors_write(path, t, n, &meta, 1, false, why, sizeof(why));
        if (status != FSDP_OK) {
            (void)record_fail(error, status, where, "%s", why);
        }
    }
    for (size_t i = 0; own && i < n; i++) {
        free(own[i]);
    }
    free(own);
    free(name);
    free(t);
    return status;
}

int record_write_rank(const char *directory, uint32_t rank,
                      const struct record_rank *r, struct fsdp_error *error)
{
    const char *const wrong = check_rank(r);
    char path[RECORD_PATH_BYTES];

    if (wrong) {
        return record_fail(error, FSDP_ERR_INVALID, where, "rank %u: %s", rank,
                           wrong);
    }
    FSDP_TRY(record_make_directory(directory, error));
    FSDP_TRY(write_tensors(directory, rank, r, error));
    FSDP_TRY(record_rank_path(path, directory, rank, ".json", error));
    return record_write_rank_text(path, rank, r, error);
}
