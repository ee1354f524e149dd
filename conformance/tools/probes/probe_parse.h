/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_parse.h - what the parsers of a log's lines share. Private to
 * probe_parse*.c.
 */
#ifndef FSDP_CTS_PROBE_PARSE_H
#define FSDP_CTS_PROBE_PARSE_H

#include "record/record_internal.h"
#include "tools/probes/probe.h"

struct probe_parse {
    struct record_json j;
    struct probe_log_file *log;
    size_t room_comms, room_calls, room_marks;
    bool begun;
};

/* Each is false after a refusal. */
bool probe_parse_number(struct probe_parse *p, const char *name,
                        const json_t *v, uint64_t *out);
/* Null is PROBE_UNKNOWN. */
bool probe_parse_known(struct probe_parse *p, const char *name, const json_t *v,
                       uint64_t *out);
bool probe_parse_word(struct probe_parse *p, const char *name, const json_t *v,
                      const char *(*names)(uint32_t), uint32_t *out);
bool probe_parse_text(struct probe_parse *p, const char *name, const json_t *v,
                      char *out, size_t room);
/* Null is -1. */
bool probe_parse_flag(struct probe_parse *p, const char *name, const json_t *v,
                      int8_t *out);
/* Zeroed room for one element behind n, in an array that doubles; NULL:
 * refused, out of memory. `array` is the address of a pointer. */
void *probe_parse_room(struct probe_parse *p, void *array, uint64_t n,
                       size_t *room, size_t bytes);

/* probe_parse_calls.c */
bool probe_parse_communicator(struct probe_parse *p, json_t *line);
bool probe_parse_collective(struct probe_parse *p, json_t *line);
bool probe_parse_failed(struct probe_parse *p, json_t *line);
bool probe_parse_launch(struct probe_parse *p, json_t *line);

#endif
