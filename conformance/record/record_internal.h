/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_internal.h - what the writer and the reader of records share with
 * those of other formats (record_fields.h): texts, paths, bounds.
 */
#ifndef FSDP_CTS_RECORD_INTERNAL_H
#define FSDP_CTS_RECORD_INTERNAL_H

#include "record/record.h"
#include "record/record_fields.h"

#include <stddef.h>

enum {
    RECORD_PATH_BYTES = 4096,
    RECORD_TENSOR_NAME_BYTES = 96,
    /* What a reader takes at most. */
    RECORD_MAX_CLAIMS = 256,
    RECORD_MAX_PARAMETERS = 1 << 20,
    RECORD_MAX_JSON_BYTES = 1 << 28,
    RECORD_MAX_MOMENTS = 1 << 16,
};

/* all tensors of one rank */
#define RECORD_MAX_TENSORS_BYTES ((uint64_t)1 << 33)

/* Above this a reader of JSON that has no integers may round, so larger numbers
 * are written as strings. */
#define RECORD_MAX_EXACT ((uint64_t)1 << 53)

/* Fills *error, unless it is NULL or filled already; returns status. */
__attribute__((format(printf, 4, 5))) int record_fail(struct fsdp_error *error,
                                                      int status,
                                                      const char *where,
                                                      const char *format, ...);

/* Makes the directory if it is missing. IO. */
int record_make_directory(const char *directory, struct fsdp_error *error);
/* directory/name, directory/rank-R<suffix>. INVALID: too long. */
int record_path(char path[RECORD_PATH_BYTES], const char *directory,
                const char *name, struct fsdp_error *error);
int record_rank_path(char path[RECORD_PATH_BYTES], const char *directory,
                     uint32_t rank, const char *suffix,
                     struct fsdp_error *error);

/* The end of a path that is long: the end says more than the beginning. */
const char *record_path_tail(const char *path);
struct record_source {
    const char *where; /* fsdp_error.where of errors */
    size_t most;       /* the largest file that is read */
    bool no_link;      /* a symbolic link is refused */
    bool may_lack;     /* a file may be missing: then the text is NULL */
};
/* Reads the whole of a regular file; a 0 stands behind it, and the caller frees
 * it. FORMAT: it is no regular file, or too large. IO, NOMEM. */
int record_read_file(const char *path, const struct record_source *from,
                     char **out, size_t *bytes, struct fsdp_error *error);

/* record_hash.c: the SHA-256, as 64 hexadecimal digits, of bytes, or of what an
 * open file has left to be read; *bytes is how much that was. IO, NOMEM. */
int record_hash(const void *p, size_t bytes, char hex[65]);
int record_hash_file(int fd, char hex[65], uint64_t *bytes);

/* A tensor's name in its file, as "reduced.1.0.7#128". It is read back only if
 * it is spelled exactly so. */
void record_tensor_name(const struct record_tensor *t,
                        char name[RECORD_TENSOR_NAME_BYTES]);
bool record_tensor_parse(const char *name, struct record_tensor *t);

/* The order of record_find: (stage, step, microbatch, parameter, first). */
int record_tensor_order(const void *a, const void *b);

/* record_write.c: a text that grows. Once memory is out, all calls do
 * nothing. */
struct record_text {
    char *text;
    size_t length, room;
    bool failed;
};
__attribute__((format(printf, 2, 3))) void
record_text_add(struct record_text *t, const char *format, ...);
/* Adds s with quotes and escapes; reads at most `most` bytes of it. */
void record_text_string(struct record_text *t, const char *s, size_t most);
/* Adds "name", or the number if `name` is NULL. */
void record_text_name(struct record_text *t, const char *name, uint32_t value);
/* Writes to path.partial and renames; frees the text either way. */
int record_text_save(struct record_text *t, const char *path,
                     struct fsdp_error *error);

/* "none" for FSDP_NO_UNIT, NULL for every other unit: for rows and
 * record_text_name. */
const char *record_unit_name(uint32_t unit);

/* record_case.c: the field "case", the whole of case.json, and its reader,
 * whose sentences in `error` begin with `file`. */
extern const struct record_table record_run_case, record_case_table;
int record_parse_case(const char *text, size_t bytes, const char *file,
                      struct record *out, struct fsdp_error *error);

/* record_rank.c: rank-R.json, its reader and its writer. *n_tensors: how many
 * tensors rank-R.safetensors must have. */
extern const struct record_table record_rank_table;
int record_parse_rank(const char *text, size_t bytes, const char *file,
                      const struct run_case *c, uint32_t rank,
                      struct record_rank *out, uint32_t *n_tensors,
                      struct fsdp_error *error);
int record_write_rank_text(const char *path, uint32_t rank,
                           const struct record_rank *r,
                           struct fsdp_error *error);

/* record_agree.c: whether the ranks that a sampled record leaves out are the
 * right ones, and left out the right values. Works before and after tensors
 * were read. */
int record_sample_agrees(const char *directory, const struct record *r,
                         struct fsdp_error *error);
/* record_agree.c: checks of tables: of a rank's memory; of how a rank ended; of
 * the rest of rank-R.json; and of that file against the ending. FORMAT. */
bool record_memory_agrees(struct record_json *j, void *base);
bool record_end_agrees(struct record_json *j, void *base);
bool record_rank_agrees(struct record_json *j, const struct record_rank *r);
int record_ending_agrees(const char *file, const struct record *all,
                         const struct record_rank *r, struct fsdp_error *error);

/* record_read.c: reads a rank's n_tensors tensors from rank-R.safetensors. The
 * caller releases what is in *r whatever is returned. */
struct safetensors_file;
int record_take_tensors(const char *path, const struct safetensors_file *file,
                        const struct run_case *c, uint32_t n_tensors,
                        struct record_rank *r, struct fsdp_error *error);

#endif
