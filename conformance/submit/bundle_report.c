/* SPDX-License-Identifier: Apache-2.0 */
/* bundle_report.c - see bundle_report.h. */
#include "submit/bundle_report.h"

#include "judge/report.h"
#include "record/record_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "report";

/* The next line, without its end; NULL: there is none. */
static const char *next_line(const char **at, const char *end, size_t *n)
{
    const char *begin = *at;
    const char *stop;

    if (begin >= end) {
        return NULL;
    }
    stop = memchr(begin, '\n', (size_t)(end - begin));
    *n = (size_t)((stop != NULL ? stop : end) - begin);
    *at = stop != NULL ? stop + 1 : end;
    return begin;
}

static json_t *load_line(const char *line, size_t bytes)
{
    json_t *v = json_loadb(line, bytes, JSON_REJECT_DUPLICATES, NULL);

    if (v != NULL && !json_is_object(v)) {
        json_decref(v);
        return NULL;
    }
    return v;
}

/* Drops what another run of the same judge says otherwise. */
static void settle(json_t *line)
{
    static const char *const loose[] = {"suite",    "commit",  "dirty",
                                        "compiler", "records", "started",
                                        "ended",    "rerun"};

    for (size_t i = 0; line != NULL && i < sizeof(loose) / sizeof(loose[0]);
         i++) {
        (void)json_object_del(line, loose[i]);
    }
}

static int differs(struct fsdp_error *error, uint64_t at, const char *line,
                   size_t n, const char *found, size_t found_n)
{
    return record_fail(error, FSDP_ERR_FORMAT, where,
                       "report.jsonl, line %llu: %.*s; the judge finds %.*s",
                       (unsigned long long)at, (int)(n < 80 ? n : 80), line,
                       (int)(found_n < 80 ? found_n : 80), found);
}

int bundle_report_same(const char *text, size_t bytes, const char *found,
                       size_t found_bytes, struct fsdp_error *error)
{
    const char *const end[2] = {text + bytes, found + found_bytes};
    const char *at[2] = {text, found};
    const char *line[2];
    size_t n[2] = {0, 0};
    bool same = true;

    for (uint64_t i = 1; same; i++) {
        json_t *v[2] = {NULL, NULL};

        for (int k = 0; k < 2; k++) {
            line[k] = next_line(&at[k], end[k], &n[k]);
            v[k] = line[k] != NULL ? load_line(line[k], n[k]) : NULL;
            settle(v[k]);
        }
        if (line[0] == NULL && line[1] == NULL) {
            return FSDP_OK;
        }
        same = v[0] != NULL && v[1] != NULL && json_equal(v[0], v[1]) == 1;
        json_decref(v[0]);
        json_decref(v[1]);
        if (!same) {
            return differs(error, i, line[0] != NULL ? line[0] : "nothing",
                           line[0] != NULL ? n[0] : 7,
                           line[1] != NULL ? line[1] : "nothing",
                           line[1] != NULL ? n[1] : 7);
        }
    }
    return FSDP_OK;
}

void bundle_report_release(struct bundle_report *r)
{
    free(r->id);
    r->id = NULL;
    r->n_cases = 0;
}

struct parser {
    struct record_json j;
    struct bundle_report *out;
    uint64_t line;
    bool has_header, has_footer;
};

static bool refuse(struct parser *p, const char *what)
{
    char name[32];

    (void)snprintf(name, sizeof(name), "line %llu",
                   (unsigned long long)p->line);
    return record_refuse(&p->j, record_field(name), "%s", what);
}

static bool text_of(struct parser *p, const json_t *line, const char *key,
                    char *out, size_t room)
{
    return record_json_text(&p->j, record_field(key),
                            json_object_get(line, key), out, room);
}

static bool take_header(struct parser *p, const json_t *line)
{
    uint32_t version = 0;

    if (!record_json_u32(&p->j, record_field("report"),
                         json_object_get(line, "report"), UINT32_MAX,
                         &version)) {
        return false;
    }
    if (version != REPORT_VERSION) {
        return refuse(p, "a report of another version");
    }
    p->has_header = true;
    return text_of(p, line, "engine", p->out->engine, sizeof(p->out->engine)) &&
           text_of(p, line, "engine_version", p->out->engine_version,
                   sizeof(p->out->engine_version));
}

static bool take_case(struct parser *p, const json_t *line)
{
    struct bundle_report *r = p->out;

    if ((r->n_cases & (r->n_cases - 1)) == 0) {
        const size_t room = r->n_cases == 0 ? 1 : (size_t)r->n_cases * 2;
        char(*more)[CASE_ID_BYTES] = realloc(r->id, room * sizeof(*more));

        if (more == NULL) {
            return refuse(p, "out of memory");
        }
        r->id = more;
    }
    return text_of(p, line, "case", r->id[r->n_cases], sizeof(r->id[0])) &&
           ++r->n_cases > 0;
}

static bool take_item(struct parser *p, const json_t *line)
{
    const char *outcome = json_string_value(json_object_get(line, "outcome"));
    uint32_t i = 0;

    while (outcome != NULL && i < JUDGE_N_OUTCOMES &&
           strcmp(judge_outcome_name(i), outcome) != 0) {
        i++;
    }
    if (outcome == NULL || i == JUDGE_N_OUTCOMES) {
        return refuse(p, "an item without an outcome");
    }
    p->out->count[i]++;
    return true;
}

/* Outcomes that are not shown are counted, too: not-applicable. */
static bool take_footer(struct parser *p, const json_t *line)
{
    const json_t *totals = json_object_get(line, "totals");

    for (uint32_t i = 0; i < JUDGE_N_OUTCOMES; i++) {
        uint64_t n;

        if (i == JUDGE_NOT_APPLICABLE) {
            continue;
        }
        if (!record_json_u64(&p->j, record_field("totals"),
                             json_object_get(totals, judge_outcome_name(i)),
                             &n)) {
            return false;
        }
        if (n != p->out->count[i]) {
            return refuse(p, "a total that is not the number of its items");
        }
    }
    p->has_footer = true;
    return text_of(p, line, "verdict", p->out->verdict,
                   sizeof(p->out->verdict));
}

static bool take(struct parser *p, const json_t *line)
{
    const char *type = json_string_value(json_object_get(line, "type"));

    if (type == NULL || p->has_footer ||
        p->has_header == (strcmp(type, "header") == 0)) {
        return refuse(p, "not a line that may be here: a header, then cases "
                         "and items, then a footer");
    }
    if (strcmp(type, "header") == 0) {
        return take_header(p, line);
    }
    if (strcmp(type, "case") == 0) {
        return take_case(p, line);
    }
    if (strcmp(type, "item") == 0) {
        return take_item(p, line);
    }
    if (strcmp(type, "footer") == 0) {
        return take_footer(p, line);
    }
    return strcmp(type, "figures") == 0 || refuse(p, "an unknown type");
}

int bundle_report_parse(const char *text, size_t bytes, const char *file,
                        struct bundle_report *out, struct fsdp_error *error)
{
    struct parser p = {.j = {.file = file, .error = error}, .out = out};
    const char *const end = text + bytes;
    const char *line;
    size_t n = 0;
    bool good = true;

    memset(out, 0, sizeof(*out));
    while (good && (line = next_line(&text, end, &n)) != NULL) {
        json_t *v = load_line(line, n);

        p.line++;
        good = v != NULL ? take(&p, v) : refuse(&p, "no JSON object");
        json_decref(v);
    }
    if (good && !p.has_footer) {
        (void)refuse(&p, "the report has no footer");
    }
    if (p.j.status != FSDP_OK) {
        bundle_report_release(out);
    }
    return p.j.status;
}
