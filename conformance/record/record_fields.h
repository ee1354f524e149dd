/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_fields.h - a format of JSON as a table: a row for each field says
 * what it is called, where it lies in a struct, its type and its bounds. One
 * reader and one writer go through the table, so that a field is one row.
 *
 * The reader is strict: a value is of the type and in the range that its row
 * asks for, no field is missing, unknown or there twice, or the file is
 * refused with a sentence that says where. Nothing is converted silently.
 */
#ifndef FSDP_CTS_RECORD_FIELDS_H
#define FSDP_CTS_RECORD_FIELDS_H

#include <fsdp/status.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct record_text;

/* Where a value stands: "memory.after_step[3]". index -1: no index. */
struct record_field {
    const char *name;
    int64_t index;
    const char *prefix; /* "memory."; NULL: none */
};
struct record_field record_field(const char *name);
struct record_field record_element(const char *name, size_t index);

/* A file that is read. Functions return false after the first refusal. */
struct record_json {
    const char *file;
    struct fsdp_error *error;
    int status;             /* FSDP_OK until something is refused */
    struct record_field at; /* of the object that a table's check is asked of */
    /* What bounds and checks of a format need to know besides a value. */
    void *context;
};

__attribute__((format(printf, 3, 4))) bool record_refuse(struct record_json *j,
                                                         struct record_field at,
                                                         const char *format,
                                                         ...);

struct record_row;

/* How values are read and written. A type that one format alone has stands
 * beside its table. `base` is the struct that the row's offset is in. */
struct record_type {
    bool (*read)(struct record_json *j, struct record_field at, json_t *v,
                 const struct record_row *row, void *base);
    void (*write)(struct record_text *t, const struct record_row *row,
                  const void *base);
};

/* The file's, before all other fields: `most`. */
extern const struct record_type record_version;
/* From `least` to `most`. */
extern const struct record_type record_u32;
extern const struct record_type record_seconds; /* a double, from 0 */
/* Up to `most` if that is not 0; above 2^53, where others round, a string of
 * digits. */
extern const struct record_type record_u64;
extern const struct record_type record_i32;
/* True or false, in a uint32_t. */
extern const struct record_type record_flag;
/* The same in a bool. */
extern const struct record_type record_bool;
/* Shorter than `room`, no control characters; not empty if `least` is 1. */
extern const struct record_type record_string;
/* As 64 hexadecimal digits. */
extern const struct record_type record_sha256;
/* A uint32_t, by one of its names. */
extern const struct record_type record_name;
/* Or the number, if it has none. */
extern const struct record_type record_name_or_number;
/* A number that a float32 can hold. */
extern const struct record_type record_real;
/* A finite number; it is not written. */
extern const struct record_type record_double;
/* [decimal, "0xbits"] */
extern const struct record_type record_float;
/* Anything: somebody else looks at it. It is not written. */
extern const struct record_type record_ignored;
/* The fields of `table`. */
extern const struct record_type record_object;
/* A pointer to as many elements as `count` says. */
extern const struct record_type record_list;
/* The same, but the elements lie in the struct. */
extern const struct record_type record_short_list;
/* `most` elements, all of them in the struct. Where `least` is not 0, those
 * behind so many may be missing, and are not written where all that follow are
 * 0. */
extern const struct record_type record_array;

/* A field. What a type does not need is left out. */
struct record_row {
    const char *key;
    const struct record_type *type;
    size_t offset, room;  /* where the value lies, its bytes: RECORD_AT */
    uint64_t least, most; /* of a number or a length; most 0: UINT32_MAX */
    const char *(*name)(uint32_t);    /* NULL: the number has no name */
    const struct record_table *table; /* of an object, or a list's objects */
    const struct record_row *each;    /* else an element; its room: its bytes */
    size_t count;                     /* offset of a list's uint32_t length */
    const char *line; /* of a list: before each element; NULL: on one line */
    bool hangs;       /* but not before the first one */
    bool null;        /* may be null, which leaves the value as it is */
    bool optional;    /* may be missing, which does the same */
    /* Of an optional one: true, where it is not written. NULL: it is. */
    bool (*absent)(const void *base);
    /* Bounds that depend on what was read before. */
    void (*bounds)(const struct record_json *j, uint64_t *least,
                   uint64_t *most);
    /* Instead of the type's. */
    void (*write)(struct record_text *t, const struct record_row *row,
                  const void *base);
};
#define RECORD_AT(owner, member) \
    .offset = offsetof(owner, member), .room = sizeof(((owner *)0)->member)

/* The same of a list, whose length is the member n. */
#define RECORD_LIST(owner, member, n) \
    .offset = offsetof(owner, member), .count = offsetof(owner, n)

/* Its elements are texts, as those of this array of arrays. */
#define RECORD_STRINGS(owner, member)                                   \
    .each = &(const struct record_row)                                  \
    {                                                                   \
        .type = &record_string, .room = sizeof(((owner *)0)->member[0]) \
    }

enum {
    RECORD_MAX_ROWS = 32
};

/* The fields of an object, in the order in which they are written and read. */
struct record_table {
    const struct record_row *row;
    size_t n;
    size_t size; /* of the struct, if lists have such objects */
    bool tuple;  /* an array of these fields, without their keys */
    /* Before the key in refusals; NULL: these name the object alone. */
    const char *prefix;
    const char *line; /* before each field; NULL: all are on one line */
    /* What no row can say, after all fields were read, at j->at; or NULL. */
    bool (*check)(struct record_json *j, void *base);
};
/* Of an array; more than RECORD_MAX_ROWS are no size of one, and an error. */
#define RECORD_ROWS(rows)                                                    \
    .row = (rows),                                                           \
    .n = sizeof(rows) / sizeof((rows)[0]) +                                  \
         0 * sizeof(char[sizeof(rows) <= RECORD_MAX_ROWS * sizeof((rows)[0]) \
                             ? 1                                             \
                             : -1])

/* The value of a row. */
static inline void *record_at(const struct record_row *row, const void *base)
{
    return (char *)base + row->offset;
}

/* The root of a text; NULL: refused. */
json_t *record_json_load(struct record_json *j, const char *text, size_t bytes);
/* Zeroed room for n elements, one at least; NULL: refused, out of memory. */
void *record_json_room(struct record_json *j, size_t n, size_t bytes);

bool record_read_fields(struct record_json *j, struct record_field at,
                        json_t *v, const struct record_table *table,
                        void *base);
/* The same of a file's root. */
bool record_read_root(struct record_json *j, json_t *root,
                      const struct record_table *table, void *base);
/* A whole file, into *out. FORMAT: the sentence begins with `file`; NOMEM. */
int record_parse(const char *text, size_t bytes, const char *file,
                 const struct record_table *table, void *context, void *out,
                 struct fsdp_error *error);

/* The members in their braces; and a whole file. */
void record_write_fields(struct record_text *t,
                         const struct record_table *table, const void *base);
int record_save(const struct record_table *table, const void *base,
                const char *path, struct fsdp_error *error);

#endif
