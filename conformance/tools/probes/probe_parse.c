/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_parse.c - the text of a log, a line at a time. What a line says must
 * be possible where it stands: calls are numbered without a gap, so that a log
 * from which one was taken is refused; a last line that was torn off is not
 * looked at, as nothing comes behind it.
 */
#include "tools/probes/probe_parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool probe_parse_number(struct probe_parse *p, const char *name,
                        const json_t *v, uint64_t *out)
{
    return record_json_u64(&p->j, record_field(name), v, out);
}

bool probe_parse_known(struct probe_parse *p, const char *name, const json_t *v,
                       uint64_t *out)
{
    *out = PROBE_UNKNOWN;
    return json_is_null(v) ||
           (probe_parse_number(p, name, v, out) &&
            (*out <= INT64_MAX ||
             record_refuse(&p->j, record_field(name), "too large")));
}

bool probe_parse_word(struct probe_parse *p, const char *name, const json_t *v,
                      const char *(*names)(uint32_t), uint32_t *out)
{
    return record_json_name(&p->j, record_field(name), v, names, false, out);
}

bool probe_parse_text(struct probe_parse *p, const char *name, const json_t *v,
                      char *out, size_t room)
{
    return record_json_text(&p->j, record_field(name), v, out, room);
}

bool probe_parse_flag(struct probe_parse *p, const char *name, const json_t *v,
                      int8_t *out)
{
    uint32_t flag = 0;
    if (json_is_null(v)) {
        *out = -1;
        return true;
    }
    if (!record_json_flag(&p->j, record_field(name), v, &flag)) {
        return false;
    }
    *out = (int8_t)flag;
    return true;
}

void *probe_parse_room(struct probe_parse *p, void *array, uint64_t n,
                       size_t *room, size_t bytes)
{
    void *base;

    memcpy(&base, array, sizeof base);
    if (n == *room) {
        size_t more = *room == 0 ? 16 : 2 * *room;
        void *grown = realloc(base, more * bytes);
        if (grown == NULL) {
            p->j.status = record_fail(p->j.error, FSDP_ERR_NOMEM, "probe",
                                      "%.150s: %s", p->j.file, "out of memory");
            return NULL;
        }
        base = grown;
        memcpy(array, &base, sizeof base);
        *room = more;
    }
    return memset((char *)base + n * bytes, 0, bytes);
}

/* ---- Lines of all sources ---- */

static bool parse_header(struct probe_parse *p, json_t *line)
{
    enum {
        TYPE,
        LOG,
        SOURCE,
        LIBRARY,
        PROGRAM,
        PID,
        PARENT,
        RANK,
        WORLD,
        STARTED,
        N
    };
    static const char *const key[N] = {
        "type", "probe_log", "source", "library", "program",
        "pid",  "parent",    "rank",   "world",   "started"};
    struct probe_log_file *log = p->log;
    const json_t *version = json_object_get(line, key[LOG]);
    json_t *v[N];
    uint64_t started = 0;

    if (json_is_integer(version) &&
        json_integer_value(version) != PROBE_VERSION) {
        return record_refuse(&p->j, record_field(key[LOG]),
                             "%" JSON_INTEGER_FORMAT "; this reader knows %d",
                             json_integer_value(version), PROBE_VERSION);
    }
    return record_json_object(&p->j, record_field("header"), line, key, N, v) &&
           (json_is_integer(v[LOG]) ||
            record_refuse(&p->j, record_field(key[LOG]),
                          "a number was expected")) &&
           probe_parse_word(p, key[SOURCE], v[SOURCE], probe_source_name,
                            &log->source) &&
           probe_parse_text(p, key[LIBRARY], v[LIBRARY], log->library,
                            sizeof log->library) &&
           probe_parse_text(p, key[PROGRAM], v[PROGRAM], log->program,
                            sizeof log->program) &&
           probe_parse_number(p, key[PID], v[PID], &log->pid) &&
           probe_parse_known(p, key[PARENT], v[PARENT], &log->parent) &&
           probe_parse_known(p, key[RANK], v[RANK], &log->rank) &&
           probe_parse_known(p, key[WORLD], v[WORLD], &log->world) &&
           probe_parse_number(p, key[STARTED], v[STARTED], &started);
}

static bool parse_mark(struct probe_parse *p, json_t *line)
{
    static const char *const heap[] = {"type", "name", "live", "peak_since"};
    static const char *const calls[] = {"type", "name", "at"};
    struct probe_log_file *log = p->log;
    bool is_heap = log->source == PROBE_HEAP;
    json_t *v[4];
    struct probe_mark *m = probe_parse_room(p, &log->mark, log->n_marks,
                                            &p->room_marks, sizeof *m);

    if (m == NULL ||
        !record_json_object(&p->j, record_field("mark"), line,
                            is_heap ? heap : calls, is_heap ? 4 : 3, v) ||
        !probe_parse_text(p, "name", v[1], m->name, sizeof m->name)) {
        return false;
    }
    log->n_marks++;
    if (is_heap) {
        return probe_parse_number(p, "live", v[2], &m->live) &&
               probe_parse_number(p, "peak_since", v[3], &m->peak_since);
    }
    return probe_parse_number(p, "at", v[2], &m->at) &&
           (m->at == log->n_calls ||
            record_refuse(&p->j, record_field("at"),
                          "%" PRIu64 " after %" PRIu64 " calls", m->at,
                          log->n_calls));
}

/* ---- The heap, and ends ---- */

static bool parse_peak(struct probe_parse *p, json_t *line)
{
    static const char *const key[] = {"type", "peak"};
    json_t *v[2];
    uint64_t peak = 0;

    if (!record_json_object(&p->j, record_field("peak"), line, key, 2, v) ||
        !probe_parse_number(p, "peak", v[1], &peak)) {
        return false;
    }
    if (peak <= p->log->peak) {
        return record_refuse(&p->j, record_field("peak"), "it does not grow");
    }
    p->log->peak = peak;
    return true;
}

static bool parse_heap_end(struct probe_parse *p, json_t *line)
{
    enum {
        TYPE,
        HOW,
        PEAK,
        LIVE,
        MAPPED,
        BLOCKS,
        ALLOCATIONS,
        UNTRACKED,
        N
    };
    static const char *const key[N] = {"type",        "how",      "peak",
                                       "live",        "mapped",   "blocks",
                                       "allocations", "untracked"};
    struct probe_end *e = &p->log->end;
    json_t *v[N];
    uint64_t peak = 0;

    if (!record_json_object(&p->j, record_field("end"), line, key, N, v) ||
        !probe_parse_word(p, key[HOW], v[HOW], probe_how_name, &e->how) ||
        !probe_parse_number(p, key[PEAK], v[PEAK], &peak) ||
        !probe_parse_number(p, key[LIVE], v[LIVE], &e->live) ||
        !probe_parse_number(p, key[MAPPED], v[MAPPED], &e->mapped) ||
        !probe_parse_number(p, key[BLOCKS], v[BLOCKS], &e->blocks) ||
        !probe_parse_number(p, key[ALLOCATIONS], v[ALLOCATIONS],
                            &e->allocations) ||
        !probe_parse_number(p, key[UNTRACKED], v[UNTRACKED], &e->untracked)) {
        return false;
    }
    if (peak < p->log->peak || peak < e->live) {
        return record_refuse(&p->j, record_field(key[PEAK]),
                             "it is less than there was before");
    }
    p->log->peak = peak;
    return true;
}

static bool parse_calls_end(struct probe_parse *p, json_t *line)
{
    enum {
        TYPE,
        HOW,
        CALLS,
        SENDS,
        SEND_BYTES,
        PUTS,
        PUT_BYTES,
        N
    };
    static const char *const key[N] = {"type",     "how",        "collectives",
                                       "sends",    "send_bytes", "puts",
                                       "put_bytes"};
    struct probe_end *e = &p->log->end;
    json_t *v[N];

    return record_json_object(&p->j, record_field("end"), line, key, N, v) &&
           probe_parse_word(p, key[HOW], v[HOW], probe_how_name, &e->how) &&
           probe_parse_number(p, key[CALLS], v[CALLS], &e->collectives) &&
           probe_parse_number(p, key[SENDS], v[SENDS], &e->sends) &&
           probe_parse_number(p, key[SEND_BYTES], v[SEND_BYTES],
                              &e->send_bytes) &&
           probe_parse_number(p, key[PUTS], v[PUTS], &e->puts) &&
           probe_parse_number(p, key[PUT_BYTES], v[PUT_BYTES], &e->put_bytes) &&
           (e->collectives == p->log->n_calls ||
            record_refuse(&p->j, record_field(key[CALLS]),
                          "%" PRIu64 ", but the log has %" PRIu64,
                          e->collectives, p->log->n_calls));
}

static bool parse_end(struct probe_parse *p, json_t *line)
{
    p->log->ended = p->log->source == PROBE_HEAP ? parse_heap_end(p, line)
                                                 : parse_calls_end(p, line);
    return p->log->ended;
}

/* ---- Any line ---- */

static const struct {
    const char *type;
    bool (*parse)(struct probe_parse *p, json_t *line);
    unsigned sources; /* bits */
} lines[] = {
    {"communicator", probe_parse_communicator, 3},
    {"collective", probe_parse_collective, 3},
    {"failed", probe_parse_failed, 1},
    {"launch", probe_parse_launch, 2},
    {"mark", parse_mark, 7},
    {"peak", parse_peak, 4},
    {"end", parse_end, 7},
};

static bool parse_line(struct probe_parse *p, json_t *line)
{
    const char *type = json_string_value(json_object_get(line, "type"));

    if (type == NULL) {
        return record_refuse(&p->j, record_field("type"),
                             "an object with this text was expected");
    }
    if (!p->begun) {
        p->begun = true;
        return strcmp(type, "header") == 0
                   ? parse_header(p, line)
                   : record_refuse(&p->j, record_field("type"),
                                   "a log begins with its header");
    }
    if (p->log->ended) {
        return record_refuse(&p->j, record_field("type"),
                             "nothing follows the end");
    }
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (strcmp(lines[i].type, type) == 0 &&
            (lines[i].sources >> p->log->source & 1) != 0) {
            return lines[i].parse(p, line);
        }
    }
    return record_refuse(&p->j, record_field("type"),
                         "a log of %s has no \"%.40s\"",
                         probe_source_name(p->log->source), type);
}

int probe_log_parse(const char *text, size_t bytes, const char *path,
                    struct probe_log_file *out, struct fsdp_error *error)
{
    char place[160];
    struct probe_parse p = {.j = {.file = place, .error = error}, .log = out};
    const size_t length = strlen(path);
    const char *at = text;
    const char *end = text + bytes;

    memset(out, 0, sizeof *out);
    (void)snprintf(out->path, sizeof out->path, "%s", path);
    for (uint64_t number = 1; p.j.status == FSDP_OK; number++) {
        const char *stop =
            at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
        (void)snprintf(place, sizeof place, "%s:%" PRIu64,
                       length > 60 ? path + length - 60 : path, number);
        if (stop == NULL) {
            if (!p.begun) {
                (void)record_refuse(&p.j, record_field("header"),
                                    "there is none: no log, or its disk was "
                                    "full");
            } else if (out->ended && at < end) {
                (void)record_refuse(&p.j, record_field("type"),
                                    "nothing follows the end");
            }
            break;
        }
        json_t *line = record_json_load(&p.j, at, (size_t)(stop - at));
        if (line != NULL) {
            (void)parse_line(&p, line);
            json_decref(line);
        }
        at = stop + 1;
    }
    return p.j.status;
}

void probe_log_release(struct probe_log_file *log)
{
    for (uint64_t i = 0; i < log->n_comms; i++) {
        free(log->comm[i].run);
    }
    free(log->comm);
    free(log->call);
    free(log->mark);
    memset(log, 0, sizeof *log);
}
