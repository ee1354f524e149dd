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
    /* Bounds of what a reader takes. */
    RECORD_MAX_CLAIMS = 256,
    RECORD_MAX_PARAMETERS = 1 << 20,
    RECORD_MAX_JSON_BYTES = 1 << 28,
    RECORD_MAX_MOMENTS = 1 << 16,
};

#define RECORD_MAX_TENSORS_BYTES ((uint64_t)1 << 33) /* of one rank */

/* Above it a reader of JSON that has no integers may round: such numbers are
 * written as strings. */
#define RECORD_MAX_EXACT ((uint64_t)1 << 53)

/* Fills *error unless somebody was first (or it is NULL); returns status. */
__attribute__((format(printf, 4, 5))) int record_fail(struct fsdp_error *error,
                                                      int status,
                                                      const char *where,
                                                      const char *format, ...);

/* Makes it unless it is there. IO. */
int record_make_directory(const char *directory, struct fsdp_error *error);
/* directory/name, directory/rank-R<suffix>. INVALID: too long. */
int record_path(char path[RECORD_PATH_BYTES], const char *directory,
                const char *name, struct fsdp_error *error);
int record_rank_path(char path[RECORD_PATH_BYTES], const char *directory,
                     uint32_t rank, const char *suffix,
                     struct fsdp_error *error);

/* The end of a long path, which says more. */
const char *record_path_tail(const char *path);
struct record_source {
    const char *where; /* of errors */
    size_t most;       /* bytes */
    bool no_link;      /* a symbolic link is refused */
    bool may_lack;     /* if there is no such file the text is NULL */
};
/* The whole of a regular file, to be freed, with a 0 behind it. IO; FORMAT: it
 * is no regular file, or larger; NOMEM. */
int record_read_file(const char *path, const struct record_source *from,
                     char **out, size_t *bytes, struct fsdp_error *error);

/* record_hash.c: SHA-256 of bytes, and of an open file from where it stands to
 * its end, as 64 hexadecimal digits; how many bytes it had. IO, NOMEM. */
int record_hash(const void *p, size_t bytes, char hex[65]);
int record_hash_file(int fd, char hex[65], uint64_t *bytes);

/* "reduced.1.0.7#128", and back: only what is spelled exactly so. */
void record_tensor_name(const struct record_tensor *t,
                        char name[RECORD_TENSOR_NAME_BYTES]);
bool record_tensor_parse(const char *name, struct record_tensor *t);

/* The order of record_find: (stage, step, microbatch, parameter, first). */
int record_tensor_order(const void *a, const void *b);

/* record_write.c: a text that grows. After NOMEM all calls do nothing. */
struct record_text {
    char *text;
    size_t length, room;
    bool failed;
};
__attribute__((format(printf, 2, 3))) void
record_text_add(struct record_text *t, const char *format, ...);
/* With quotes and escapes; at most `most` bytes of s are looked at. */
void record_text_string(struct record_text *t, const char *s, size_t most);
/* "name", or the number where the value has none. */
void record_text_name(struct record_text *t, const char *name, uint32_t value);
/* Writes to path.partial and renames; frees the text either way. */
int record_text_save(struct record_text *t, const char *path,
                     struct fsdp_error *error);

/* "none" for FSDP_NO_UNIT alone: for rows and record_text_name. */
const char *record_unit_name(uint32_t unit);

/* record_case.c: the field "case"; the file, and its text. `error` gets
 * sentences that begin with `file`. */
extern const struct record_table record_run_case, record_case_table;
int record_parse_case(const char *text, size_t bytes, const char *file,
                      struct record *out, struct fsdp_error *error);

/* record_rank.c: a rank's file, and its text. *n_tensors: how many the other
 * file has to have. */
extern const struct record_table record_rank_table;
int record_parse_rank(const char *text, size_t bytes, const char *file,
                      const struct run_case *c, uint32_t rank,
                      struct record_rank *out, uint32_t *n_tensors,
                      struct fsdp_error *error);
int record_write_rank_text(const char *path, uint32_t rank,
                           const struct record_rank *r,
                           struct fsdp_error *error);

/* record_agree.c: whether a sampled record, of which tensors have been read or
 * not, has those ranks and those values that it should have. */
int record_sample_agrees(const char *directory, const struct record *r,
                         struct fsdp_error *error);
/* record_agree.c: checks of tables: a rank's memory, how it ended; of the rest
 * of a rank's file; and of that file with how it ended. FORMAT. */
bool record_memory_agrees(struct record_json *j, void *base);
bool record_end_agrees(struct record_json *j, void *base);
bool record_rank_agrees(struct record_json *j, const struct record_rank *r);
int record_ending_agrees(const char *file, const struct record *all,
                         const struct record_rank *r, struct fsdp_error *error);

/* record_read.c: a rank's tensors, which have to be so many, from its other
 * file. What is in *r is the caller's to release in any case. */
struct safetensors_file;
int record_take_tensors(const char *path, const struct safetensors_file *file,
                        const struct run_case *c, uint32_t n_tensors,
                        struct record_rank *r, struct fsdp_error *error);

#endif
