/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_parse_calls.c - the lines of communicators and their collectives.
 */
#include "tools/probes/probe_parse.h"

#include <inttypes.h>
#include <string.h>

static bool parse_members(struct probe_parse *p, const json_t *v,
                          struct probe_comm *c)
{
    uint64_t size = 0;
    if (json_is_null(v)) {
        return true;
    }
    if (!record_json_array(&p->j, record_field("members"), v, 1,
                           PROBE_MAX_RUNS)) {
        return false;
    }
    c->run = record_json_room(&p->j, json_array_size(v), sizeof *c->run);
    if (c->run == NULL) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(v); i++) {
        const json_t *run = json_array_get(v, i);
        struct probe_run *r = &c->run[i];
        if (!record_json_array(&p->j, record_element("members", i), run, 3,
                               3) ||
            !probe_parse_number(p, "members", json_array_get(run, 0),
                                &r->first) ||
            !probe_parse_number(p, "members", json_array_get(run, 1),
                                &r->stride) ||
            !probe_parse_number(p, "members", json_array_get(run, 2), &r->n)) {
            return false;
        }
        if (r->n == 0 || r->n > c->size - size ||
            (r->n > 1) != (r->stride > 0) || r->first > INT32_MAX ||
            r->stride > INT32_MAX) {
            return record_refuse(&p->j, record_element("members", i),
                                 "no run of ranks, or more than the size");
        }
        size += r->n;
        c->n_runs++;
    }
    return size == c->size ||
           record_refuse(&p->j, record_field("members"),
                         "%" PRIu64 " ranks in a communicator of %" PRIu64,
                         size, c->size);
}

bool probe_parse_communicator(struct probe_parse *p, json_t *line)
{
    enum {
        TYPE,
        COMM,
        PARENT,
        SIZE,
        ME,
        MEMBERS,
        NAME,
        ID,
        N
    };
    static const char *const key[N] = {"type", "comm",    "parent", "size",
                                       "me",   "members", "name",   "id"};
    struct probe_log_file *log = p->log;
    json_t *v[N];
    uint64_t comm = 0;
    struct probe_comm *c = probe_parse_room(p, &log->comm, log->n_comms,
                                            &p->room_comms, sizeof *c);

    if (c == NULL) {
        return false;
    }
    log->n_comms++; /* so that it is released */
    if (!record_json_object(&p->j, record_field("communicator"), line, key, N,
                            v) ||
        !probe_parse_number(p, key[COMM], v[COMM], &comm) ||
        !probe_parse_known(p, key[PARENT], v[PARENT], &c->parent) ||
        !probe_parse_number(p, key[SIZE], v[SIZE], &c->size) ||
        !probe_parse_number(p, key[ME], v[ME], &c->me) ||
        !probe_parse_text(p, key[NAME], v[NAME], c->name, sizeof c->name) ||
        !(json_is_null(v[ID]) ||
          probe_parse_text(p, key[ID], v[ID], c->id, sizeof c->id))) {
        return false;
    }
    if (comm != log->n_comms - 1 ||
        (c->parent != PROBE_UNKNOWN && c->parent >= comm)) {
        return record_refuse(&p->j, record_field(key[COMM]),
                             "communicators are numbered from 0, after their "
                             "parents");
    }
    if (c->size > INT32_MAX || c->me >= c->size) {
        return record_refuse(&p->j, record_field(key[ME]),
                             "%" PRIu64 " in a communicator of %" PRIu64, c->me,
                             c->size);
    }
    return parse_members(p, v[MEMBERS], c);
}

static bool check_sizes(struct probe_parse *p, const struct probe_collective *c)
{
    uint64_t element = probe_dtype_bytes(c->dtype);
    if (c->n != PROBE_UNKNOWN && c->total != PROBE_UNKNOWN && c->total < c->n) {
        return record_refuse(&p->j, record_field("total"), "it is less than n");
    }
    if (element > 0 && c->n != PROBE_UNKNOWN &&
        (c->n > INT64_MAX / element || c->bytes != c->n * element)) {
        return record_refuse(&p->j, record_field("bytes"),
                             "they are not those of n elements of %s",
                             probe_dtype_name(c->dtype));
    }
    return true;
}

bool probe_parse_collective(struct probe_parse *p, json_t *line)
{
    enum {
        TYPE,
        SEQ,
        KIND,
        COMM,
        DTYPE,
        NUMBER,
        TOTAL,
        BYTES,
        ROOT,
        OP,
        IN_PLACE,
        MODE,
        CALL,
        N
    };
    static const char *const key[N] = {
        "type",  "seq",  "kind", "comm",     "dtype", "n",   "total",
        "bytes", "root", "op",   "in_place", "mode",  "call"};
    struct probe_log_file *log = p->log;
    json_t *v[N];
    uint64_t seq = 0;
    struct probe_collective *c = probe_parse_room(p, &log->call, log->n_calls,
                                                  &p->room_calls, sizeof *c);

    if (c == NULL ||
        !record_json_object(&p->j, record_field("collective"), line, key, N,
                            v) ||
        !probe_parse_number(p, key[SEQ], v[SEQ], &seq) ||
        !probe_parse_word(p, key[KIND], v[KIND], probe_kind_name, &c->kind) ||
        !probe_parse_number(p, key[COMM], v[COMM], &c->comm) ||
        !probe_parse_word(p, key[DTYPE], v[DTYPE], probe_dtype_name,
                          &c->dtype) ||
        !probe_parse_known(p, key[NUMBER], v[NUMBER], &c->n) ||
        !probe_parse_known(p, key[TOTAL], v[TOTAL], &c->total) ||
        !probe_parse_known(p, key[BYTES], v[BYTES], &c->bytes) ||
        !probe_parse_known(p, key[ROOT], v[ROOT], &c->root) ||
        !(json_is_null(v[OP]) ||
          probe_parse_text(p, key[OP], v[OP], c->op, sizeof c->op)) ||
        !probe_parse_flag(p, key[IN_PLACE], v[IN_PLACE], &c->in_place) ||
        !probe_parse_word(p, key[MODE], v[MODE], probe_mode_name, &c->mode) ||
        !probe_parse_text(p, key[CALL], v[CALL], c->call, sizeof c->call)) {
        return false;
    }
    if (seq != log->n_calls) {
        return record_refuse(&p->j, record_field(key[SEQ]),
                             "%" PRIu64 "; the next call is %" PRIu64, seq,
                             log->n_calls);
    }
    if (c->comm >= log->n_comms) {
        return record_refuse(&p->j, record_field(key[COMM]),
                             "%" PRIu64 " was not told before", c->comm);
    }
    log->n_calls++;
    return check_sizes(p, c);
}

bool probe_parse_failed(struct probe_parse *p, json_t *line)
{
    static const char *const key[] = {"type", "seq", "code"};
    json_t *v[3];
    uint64_t seq = 0;
    uint64_t code = 0;

    if (!record_json_object(&p->j, record_field("failed"), line, key, 3, v) ||
        !probe_parse_number(p, "seq", v[1], &seq) ||
        !probe_parse_number(p, "code", v[2], &code)) {
        return false;
    }
    if (seq >= p->log->n_calls) {
        return record_refuse(&p->j, record_field("seq"),
                             "there is no such call yet");
    }
    p->log->call[seq].failed = true;
    return true;
}

bool probe_parse_launch(struct probe_parse *p, json_t *line)
{
    static const char *const key[] = {"type", "of",       "comm", "kind",
                                      "n",    "in_place", "algo", "proto"};
    char ignored[PROBE_TEXT_BYTES];
    json_t *v[8];
    uint64_t of = 0;
    uint64_t comm = 0;
    uint64_t n = 0;
    uint32_t kind = 0;
    int8_t in_place = -1;

    if (!record_json_object(&p->j, record_field("launch"), line, key, 8, v) ||
        !probe_parse_known(p, "of", v[1], &of) ||
        !probe_parse_number(p, "comm", v[2], &comm) ||
        !probe_parse_word(p, "kind", v[3], probe_kind_name, &kind) ||
        !probe_parse_number(p, "n", v[4], &n) ||
        !probe_parse_flag(p, "in_place", v[5], &in_place) ||
        !probe_parse_text(p, "algo", v[6], ignored, sizeof ignored) ||
        !probe_parse_text(p, "proto", v[7], ignored, sizeof ignored)) {
        return false;
    }
    if (of == PROBE_UNKNOWN) {
        return true;
    }
    if (of >= p->log->n_calls || p->log->call[of].kind != kind ||
        p->log->call[of].n != n || p->log->call[of].comm != comm) {
        return record_refuse(&p->j, record_field("of"),
                             "there is no such call");
    }
    p->log->call[of].launches++;
    p->log->call[of].in_place = in_place;
    return true;
}
