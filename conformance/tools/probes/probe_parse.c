/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_parse.c - parses the text of a log, a line at a time. A line must be
 * possible where it stands. Calls are numbered without a gap, so that a log
 * from which one was removed is refused. A last line that was cut off is
 * ignored, as nothing follows it.
 */
#include "tools/probes/probe_parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *probe_parse_room(struct probe_parse *p, void *array, uint64_t n,
                       size_t *room, size_t bytes)
{
    void *base;

    memcpy(&base, array, sizeof(base));
    if (n == *room) {
        size_t more = *room == 0 ? 16 : 2 * *room;
        void *grown = realloc(base, more * bytes);
        if (!grown) {
            p->j.status = record_fail(p->j.error, FSDP_ERR_NOMEM, "probe",
                                      "%.150s: %s", p->j.file, "out of memory");
            return NULL;
        }
        base = grown;
        memcpy(array, &base, sizeof(base));
        *room = more;
    }
    return memset((char *)base + n * bytes, 0, bytes);
}

/* The fields but for the type, which is known. */
static bool read_beside_type(struct probe_parse *p, const char *type,
                             json_t *line, const struct record_table *table,
                             void *to)
{
    (void)json_object_del(line, "type");
    return to && record_read_fields(&p->j, record_field(type), line, table, to);
}

static bool parse_header(struct probe_parse *p, json_t *line)
{
    const struct record_row *const version = &probe_header.row[0];
    json_t *const v = json_object_get(line, version->key);

    /* Before all other fields, which may be others in another version. */
    return (!v || version->type->read(&p->j, record_field(version->key), v,
                                      version, p->log)) &&
           read_beside_type(p, "header", line, &probe_header, p->log);
}

static bool parse_line(struct probe_parse *p, json_t *line)
{
    const char *type = json_string_value(json_object_get(line, "type"));

    if (!type) {
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
    for (const struct probe_line *l = probe_lines; l->type; l++) {
        if (strcmp(l->type, type) == 0 &&
            (l->sources >> p->log->source & 1) != 0) {
            return read_beside_type(p, l->type, line, l->table, l->begin(p));
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
    struct probe_parse p = {.j = {.file = place, .error = error, .context = &p},
                            .log = out};
    const size_t length = strlen(path);
    const char *at = text;
    const char *end = text + bytes;

    memset(out, 0, sizeof(*out));
    snprintf(out->path, sizeof(out->path), "%s", path);
    for (uint64_t number = 1; p.j.status == FSDP_OK; number++) {
        const char *stop =
            at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
        snprintf(place, sizeof(place), "%s:%" PRIu64,
                 length > 60 ? path + length - 60 : path, number);
        if (!stop) {
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
        if (line) {
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
    memset(log, 0, sizeof(*log));
}
