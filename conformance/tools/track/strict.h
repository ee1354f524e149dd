/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strict.h - a strict look at JSON from outside: a value is of the type and
 * in the range that is asked for, or there is one sentence that says which
 * file, where, and what would be right. Nothing is converted silently.
 */
#ifndef FSDP_CTS_STRICT_H
#define FSDP_CTS_STRICT_H

#include <fsdp/status.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct strict {
    const char *file;
    unsigned line; /* of JSON Lines; 0: the file is one value */
    struct fsdp_error *error;
};

/* Fills the error unless somebody was first; returns status. */
__attribute__((format(printf, 3, 4))) int
track_fail(struct fsdp_error *error, int status, const char *format, ...);

/* All return FSDP_OK, FORMAT, or NOMEM. `name` says where a value stands. */
__attribute__((format(printf, 3, 4))) int strict_refuse(const struct strict *s,
                                                        const char *name,
                                                        const char *format,
                                                        ...);
int strict_load(const struct strict *s, const char *text, size_t bytes,
                json_t **out);
/*
 * v is an object with all of the keys, of which those that begin with '?' may
 * be missing (their value is then NULL), and no others. NULL-ended.
 */
int strict_object(const struct strict *s, const char *name, json_t *v,
                  const char *const *keys, json_t **value);
int strict_array(const struct strict *s, const char *name, const json_t *v,
                 size_t least, size_t most);
/* Printable UTF-8, fewer than `room` bytes. */
int strict_text(const struct strict *s, const char *name, const json_t *v,
                char *out, size_t room);
/* From 0 to `most`; above 2^53 a string of decimal digits. */
int strict_count(const struct strict *s, const char *name, const json_t *v,
                 uint64_t most, uint64_t *out);
int strict_number(const struct strict *s, const char *name, const json_t *v,
                  double *out); /* finite */

/* All of a file, with a 0 behind it; malloc'ed, the caller's. IO: why. FORMAT:
 * it is larger than `most`. */
int track_read_file(const char *path, size_t most, char **out, size_t *bytes,
                    struct fsdp_error *error);

#endif
