/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_parse.h - shared by the reader of a log and the tables of its lines.
 * Private to probe_parse.c, probe_lines.c, and the test of schemas.
 */
#ifndef FSDP_CTS_PROBE_PARSE_H
#define FSDP_CTS_PROBE_PARSE_H

#include "record/record_internal.h"
#include "tools/probes/probe.h"

/* Lines whose fields are not stored in the log as they stand. */
struct probe_peak {
    uint64_t peak;
};
struct probe_last {
    struct probe_end end;
    uint64_t peak; /* of the heap */
};
struct probe_failed {
    uint64_t seq, code;
};
struct probe_launch {
    uint64_t of, comm, n;
    uint32_t kind;
    int8_t in_place;
    char algo[PROBE_TEXT_BYTES], proto[PROBE_TEXT_BYTES];
};

struct probe_parse {
    struct record_json j;
    struct probe_log_file *log;
    size_t room_comms, room_calls, room_marks;
    bool begun;
    union {
        struct probe_peak peak;
        struct probe_last last;
        struct probe_failed failed;
        struct probe_launch launch;
    } line;
};

/* Zeroed room for one element behind n, in an array that doubles; NULL:
 * refused, out of memory. `array` is the address of a pointer. */
void *probe_parse_room(struct probe_parse *p, void *array, uint64_t n,
                       size_t *room, size_t bytes);

/* A type of lines, and the sources (bits) whose logs have it. The check of its
 * table has a struct probe_parse as context, and stores the line in the log. */
struct probe_line {
    const char *type;
    unsigned sources;
    const struct record_table *table;
    /* Returns where its fields go; NULL: refused. */
    void *(*begin)(struct probe_parse *p);
};
extern const struct probe_line probe_lines[]; /* up to a type NULL */
extern const struct record_table probe_header;

#endif
