/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_fields.h - a format of JSON as a table: a row for each field says
 * what it is called, where it lies in a struct, its type and its bounds. One
 * reader and one writer go through the table, so that a field is one row.
 *
 * The reader is strict: every value must have the type and the range that its
 * row asks for, and no field may be missing, unknown or there twice; else the
 * file is refused with a sentence that says where. Nothing is converted
 * silently.
 */
#ifndef FSDP_CTS_RECORD_FIELDS_H
#define FSDP_CTS_RECORD_FIELDS_H

#include <fsdp/status.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct record_text;

/* Where a value stands, as "memory.after_step[3]". index -1: no index. */
struct record_field {
    const char *name;
    int64_t index;
    const char *prefix; /* "memory."; NULL: none */
};
struct record_field record_field(const char *name);
struct record_field record_element(const char *name, size_t index);

/* A file that is being read. Functions return false after the first refusal. */
struct record_json {
    const char *file;
    struct fsdp_error *error;
    int status; /* FSDP_OK until something is refused */
    /* where the object stands that a table's check looks at */
    struct record_field at;
    /* What bounds and checks need to know that is not in the value. */
    void *context;
};

__attribute__((format(printf, 3, 4))) bool record_refuse(struct record_json *j,
                                                         struct record_field at,
                                                         const char *format,
                                                         ...);

struct record_row;

/* How values of a type are read and written. A type that only one format has
 * stands beside that format's table. `base` is the struct that has the
 * value. */
struct record_type {
    bool (*read)(struct record_json *j, struct record_field at, json_t *v,
                 const struct record_row *row, void *base);
    void (*write)(struct record_text *t, const struct record_row *row,
                  const void *base);
};

/* The version of the file, which stands before all other fields and must be
 * `most`. */
extern const struct record_type record_version;
/* A uint32_t from `least` to `most`. */
extern const struct record_type record_u32;
extern const struct record_type record_seconds; /* a double, not below 0 */
/* A uint64_t of at most `most`, if that is not 0. Above 2^53, where other
 * readers round, it is a string of digits. */
extern const struct record_type record_u64;
extern const struct record_type record_i32;
/* True or false, in a uint32_t. */
extern const struct record_type record_flag;
/* The same in a bool. */
extern const struct record_type record_bool;
/* A text shorter than `room`, without control characters; not empty if `least`
 * is 1. */
extern const struct record_type record_string;
/* A hash, as 64 hexadecimal digits. */
extern const struct record_type record_sha256;
/* A uint32_t, written as one of its names. */
extern const struct record_type record_name;
/* The same, but a value without a name is written as the number. */
extern const struct record_type record_name_or_number;
/* A number that a float32 can hold. */
extern const struct record_type record_real;
/* A finite number, which is read and never written. */
extern const struct record_type record_double;
/* A float32 as [decimal, "0xbits"]. */
extern const struct record_type record_float;
/* Any value: other code reads it. It is never written. */
extern const struct record_type record_ignored;
/* An object with the fields of `table`. */
extern const struct record_type record_object;
/* A list: the struct has a pointer to as many elements as `count` says. */
extern const struct record_type record_list;
/* The same, but the elements lie in the struct itself. */
extern const struct record_type record_short_list;
/* An array of `most` elements, all of them in the struct. If `least` is not 0,
 * the elements behind the first `least` may be missing; one of these is not
 * written if it and all behind it are 0. */
extern const struct record_type record_array;

/* A field. Members that its type does not need are left out. */
struct record_row {
    const char *key;
    const struct record_type *type;
    size_t offset, room;  /* where the value lies, and its bytes: RECORD_AT */
    uint64_t least, most; /* of a number or a length; most 0: UINT32_MAX */
    const char *(*name)(uint32_t); /* NULL: the number has no name */
    /* the fields of an object, or of a list's objects */
    const struct record_table *table;
    /* else what an element is; its room: bytes of one */
    const struct record_row *each;
    size_t count;     /* offset of a list's uint32_t length */
    const char *line; /* of a list: what stands before each element; NULL: all
                         on one line */
    bool hangs;       /* but nothing before the first element */
    bool null;        /* may be null, which leaves the value as it is */
    bool optional;    /* may be missing, which leaves it as it is, too */
    /* Of an optional field: true if it is not written. NULL: it always is. */
    bool (*absent)(const void *base);
    /* Changes the bounds, if they depend on what was read before. */
    void (*bounds)(const struct record_json *j, uint64_t *least,
                   uint64_t *most);
    /* Used in place of the type's. */
    void (*write)(struct record_text *t, const struct record_row *row,
                  const void *base);
};
#define RECORD_AT(owner, member) \
    .offset = offsetof(owner, member), .room = sizeof(((owner *)0)->member)

/* The same for a list, whose length is the member n. */
#define RECORD_LIST(owner, member, n) \
    .offset = offsetof(owner, member), .count = offsetof(owner, n)

/* The elements of a list that are texts, in an array of arrays. */
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
    size_t size; /* of the struct, if objects of this table stand in lists */
    bool tuple;  /* it is written as an array of its fields, without keys */
    /* Stands before the key in refusals; NULL: they name only the object. */
    const char *prefix;
    /* what stands before each field; NULL: all are on one line */
    const char *line;
    /* Checks what no row can say, after all fields were read; j->at is where
     * the object stands. NULL: there is no such check. */
    bool (*check)(struct record_json *j, void *base);
};
/* The rows of an array. With more than RECORD_MAX_ROWS of them the program does
 * not compile. */
#define RECORD_ROWS(rows)                                                    \
    .row = (rows),                                                           \
    .n = sizeof(rows) / sizeof((rows)[0]) +                                  \
         0 * sizeof(char[sizeof(rows) <= RECORD_MAX_ROWS * sizeof((rows)[0]) \
                             ? 1                                             \
                             : -1])

/* Where the value of a row lies. */
static inline void *record_at(const struct record_row *row, const void *base)
{
    return (char *)base + row->offset;
}

/* Parses a text and returns its root; NULL: it was refused. */
json_t *record_json_load(struct record_json *j, const char *text, size_t bytes);
/* Zeroed room for n elements, and for at least one; NULL: refused, there is no
 * memory. */
void *record_json_room(struct record_json *j, size_t n, size_t bytes);

bool record_read_fields(struct record_json *j, struct record_field at,
                        json_t *v, const struct record_table *table,
                        void *base);
/* The same, for the root of a file. */
bool record_read_root(struct record_json *j, json_t *root,
                      const struct record_table *table, void *base);
/* Reads the text of a whole file into *out. FORMAT: the error's sentence begins
 * with `file`; NOMEM. */
int record_parse(const char *text, size_t bytes, const char *file,
                 const struct record_table *table, void *context, void *out,
                 struct fsdp_error *error);

/* Writes the members of a struct in braces; record_save writes a whole file. */
void record_write_fields(struct record_text *t,
                         const struct record_table *table, const void *base);
int record_save(const struct record_table *table, const void *base,
                const char *path, struct fsdp_error *error);

#endif
