/* SPDX-License-Identifier: Apache-2.0 */
/* report_read.c - see report_read.h. */
#include "judge/report/report_read.h"

#include "judge/judge_internal.h"
#include "judge/report/report_read_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool report_reader_refuse(struct report_reader *p, const char *format, ...)
{
    char line[32];
    char what[120];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    snprintf(line, sizeof(line), "line %llu", (unsigned long long)p->line);
    return record_refuse(&p->j, record_field(line), "%s", what);
}

bool report_reader_outcome(struct report_reader *p, const json_t *line,
                           uint32_t *out)
{
    const char *name = json_string_value(json_object_get(line, "outcome"));

    for (*out = 0; name && *out < JUDGE_N_OUTCOMES; (*out)++) {
        if (strcmp(judge_outcome_name(*out), name) == 0) {
            return true;
        }
    }
    return report_reader_refuse(p, "no outcome, or none that is known");
}

uint32_t report_reader_requirement(struct report_reader *p, const json_t *id)
{
    const struct judge_result *r = &p->part->result;
    const char *name = json_string_value(id);
    const uint32_t q =
        name ? requirement_index(r->requirement, name) : r->n_requirements;

    if (q == r->n_requirements) {
        (void)report_reader_refuse(p,
                                   "%.60s is no requirement that this "
                                   "program knows",
                                   name ? name : "nothing");
    }
    return q;
}

bool report_reader_text(struct report_reader *p, const json_t *line,
                        const char *key, char *out, size_t room)
{
    const struct record_row row = {.key = key, .room = room};
    json_t *v = json_object_get(line, key);

    memset(out, 0, room);
    return !v || record_string.read(&p->j, record_field(key), v, &row, out);
}

bool report_reader_u64(struct report_reader *p, const json_t *line,
                       const char *key, uint64_t *out)
{
    const struct record_row row = {.key = key};

    return record_u64.read(&p->j, record_field(key), json_object_get(line, key),
                           &row, out);
}

bool report_reader_u32(struct report_reader *p, const json_t *line,
                       const char *key, uint32_t *out)
{
    const struct record_row row = {.key = key};

    return record_u32.read(&p->j, record_field(key), json_object_get(line, key),
                           &row, out);
}

static const struct record_row claims = {
    .key = "claims",
    RECORD_LIST(struct judge_result, claim, n_claims),
    RECORD_STRINGS(struct judge_result, claim),
    .most = RECORD_MAX_CLAIMS};

/* Takes the list of the requirements that were asked; no list: all were. */
static bool take_reported(struct report_reader *p, const json_t *v)
{
    struct judge_result *r = &p->part->result;

    for (uint32_t q = 0; q < r->n_requirements; q++) {
        r->reported[q] = !v;
    }
    for (size_t i = 0; i < json_array_size(v); i++) {
        const uint32_t q = report_reader_requirement(p, json_array_get(v, i));

        if (q == r->n_requirements) {
            return false;
        }
        r->reported[q] = true;
    }
    return !v || json_is_array(v) ||
           report_reader_refuse(p, "\"requirements\" is no list");
}

/* Takes what is said of sampled records, if there were any. */
static bool take_sampled(struct report_reader *p, const json_t *line,
                         struct judge_result *r)
{
    return !json_object_get(line, "sampled") ||
           (report_reader_u32(p, line, "sampled", &r->sampled.ranks) &&
            report_reader_u32(p, line, "sampled_of", &r->sampled.of) &&
            report_reader_text(p, line, "unasked", r->sampled.unasked,
                               sizeof(r->sampled.unasked)));
}

/* Takes what is said of cases with more collectives than records follow. */
static bool take_followed(struct report_reader *p, const json_t *line,
                          struct judge_result *r)
{
    return !json_object_get(line, "followed") ||
           (report_reader_u32(p, line, "followed", &r->followed.known) &&
            report_reader_u32(p, line, "followed_of", &r->followed.of) &&
            report_reader_u32(p, line, "followed_in", &r->followed.cases));
}

static bool take_header(struct report_reader *p, const json_t *line)
{
    struct report_part_kept *part = p->part;
    struct judge_result *r = &part->result;
    const size_t n = r->n_requirements;
    uint32_t version = 0;

    if (!report_reader_u32(p, line, "report", &version)) {
        return false;
    }
    if (version != REPORT_VERSION) {
        return report_reader_refuse(p,
                                    "a report of version %u; this reader "
                                    "knows %u",
                                    version, (unsigned int)REPORT_VERSION);
    }
    r->reported = record_json_room(&p->j, n, sizeof(*r->reported));
    r->n_proofs = record_json_room(&p->j, n, sizeof(*r->n_proofs));
    part->meta.started = json_integer_value(json_object_get(line, "started"));
    return r->reported && r->n_proofs && judge_place(r) == FSDP_OK &&
           take_reported(p, json_object_get(line, "requirements")) &&
           record_list.read(&p->j, record_field(claims.key),
                            json_object_get(line, claims.key), &claims, r) &&
           report_reader_text(p, line, "suite", part->suite,
                              sizeof(part->suite)) &&
           report_reader_text(p, line, "engine", r->engine,
                              sizeof(r->engine)) &&
           report_reader_text(p, line, "engine_version", r->engine_version,
                              sizeof(r->engine_version)) &&
           report_reader_text(p, line, "world", r->world, sizeof(r->world)) &&
           report_reader_text(p, line, "isolation", r->isolation,
                              sizeof(r->isolation)) &&
           take_sampled(p, line, r) && take_followed(p, line, r);
}

/* Makes room for one more case, which is empty. */
static bool grow(struct report_reader *p)
{
    struct judge_result *r = &p->part->result;
    const size_t n = r->n_requirements;
    const uint32_t room = p->room == 0 ? 64 : p->room * 2;
    struct judge_case *cases;
    struct judge_item *item;

    if (r->n_cases == p->room) {
        cases = realloc(r->cases, room * sizeof(*cases));
        r->cases = cases ? cases : r->cases;
        item = realloc(r->item, (room * n + 1) * sizeof(*item));
        r->item = item ? item : r->item;
        if (!cases || !item) {
            return report_reader_refuse(p, "out of memory");
        }
        p->room = room;
    }
    memset(&r->cases[r->n_cases], 0, sizeof(r->cases[0]));
    for (size_t q = 0; q < n; q++) {
        r->item[r->n_cases * n + q] =
            (struct judge_item){JUDGE_NOT_APPLICABLE, JUDGE_NONE, NULL};
    }
    return true;
}

/* "fsdp-cts run --case ID": what stands before the id. */
static bool take_rerun(struct report_reader *p, const json_t *line,
                       const char *id)
{
    struct report_part_kept *part = p->part;
    char rerun[REPORT_RERUN_BYTES];
    size_t n;

    if (!report_reader_text(p, line, "rerun", rerun, sizeof(rerun))) {
        return false;
    }
    n = strlen(rerun) < strlen(id) ? 0 : strlen(rerun) - strlen(id);
    if (strcmp(rerun + n, id) == 0) {
        memset(part->rerun, 0, sizeof(part->rerun));
        memcpy(part->rerun, rerun, n);
    }
    return true;
}

static bool take_losses(struct report_reader *p, const json_t *line,
                        struct judge_case *c)
{
    const char *hex = json_string_value(json_object_get(line, "final_loss"));
    uint32_t bits;

    if (!hex) {
        return true;
    }
    bits = (uint32_t)strtoul(hex, NULL, 16);
    memcpy(&c->final_loss, &bits, sizeof(bits));
    c->has_losses = true;
    return report_reader_u32(p, line, "losses", &c->n_losses) &&
           report_reader_u32(p, line, "losses_off", &c->losses_off);
}

static bool take_counts(struct report_reader *p, const json_t *line,
                        struct judge_case *c)
{
    const char *const peak = "peak_parameters";

    if (!json_object_get(line, peak)) {
        return true;
    }
    c->has_counts = true;
    return report_reader_u64(p, line, peak, &c->peak) &&
           report_reader_u64(p, line, "peak_parameters_expected",
                             &c->peak_expected) &&
           report_reader_u32(p, line, "collectives", &c->collectives) &&
           report_reader_u32(p, line, "collectives_expected",
                             &c->collectives_expected);
}

static bool take_time(struct report_reader *p, const json_t *line,
                      struct judge_case *c)
{
    uint64_t n = 0;

    if (json_object_get(line, "milliseconds") &&
        !report_reader_u64(p, line, "milliseconds", &n)) {
        return false;
    }
    c->seconds = (double)n / 1e3;
    return true;
}

static bool take_case(struct report_reader *p, const json_t *line)
{
    struct judge_result *r = &p->part->result;
    struct judge_case *c;

    if (!grow(p)) {
        return false;
    }
    c = &r->cases[r->n_cases++];
    if (!report_reader_text(p, line, "case", c->id, sizeof(c->id)) ||
        !report_reader_outcome(p, line, &c->outcome) ||
        !report_reader_text(p, line, "reason", c->reason, sizeof(c->reason))) {
        return false;
    }
    if (!case_of_id(c->id, &c->c)) {
        return report_reader_refuse(p, "%.80s is no id of a case", c->id);
    }
    return take_losses(p, line, c) && take_counts(p, line, c) &&
           take_time(p, line, c) && take_rerun(p, line, c->id);
}

/* Begins the part of an engine, which a header opens. */
static bool begin_part(struct report_reader *p, struct report_kept *out,
                       const struct requirement *const *table)
{
    struct report_part_kept *more =
        realloc(out->part, ((size_t)out->n + 1) * sizeof(*more));

    if (!more) {
        return report_reader_refuse(p, "out of memory");
    }
    out->part = more;
    p->part = &more[out->n++];
    memset(p->part, 0, sizeof(*p->part));
    p->part->result.requirement = table;
    p->part->result.n_requirements = requirement_count(table);
    p->room = 0;
    p->open = true;
    return true;
}

static bool take_line(struct report_reader *p, json_t *line,
                      const struct requirement *const *table,
                      struct report_kept *out)
{
    const char *type = json_string_value(json_object_get(line, "type"));

    if (!type || p->open == (strcmp(type, "header") == 0)) {
        return report_reader_refuse(p, "not a line that may be here: a header, "
                                       "then cases and items, then a footer");
    }
    if (strcmp(type, "header") == 0) {
        return begin_part(p, out, table) && take_header(p, line);
    }
    if (strcmp(type, "case") == 0) {
        return take_case(p, line);
    }
    if (strcmp(type, "item") == 0) {
        return report_reader_item(p, line);
    }
    if (strcmp(type, "footer") == 0) {
        return report_reader_footer(p, line);
    }
    return strcmp(type, "figures") == 0
               ? report_reader_figures(p, line)
               : report_reader_refuse(p, "an unknown type");
}

void report_kept_release(struct report_kept *r)
{
    for (uint32_t i = 0; i < r->n; i++) {
        judge_release(&r->part[i].result);
        free(r->part[i].stage);
    }
    free(r->part);
    memset(r, 0, sizeof(*r));
}

const char *report_line(const char **at, const char *end, size_t *n)
{
    const char *begin = *at;
    const char *stop;

    if (begin >= end) {
        return NULL;
    }
    stop = memchr(begin, '\n', (size_t)(end - begin));
    *n = (size_t)((stop ? stop : end) - begin);
    *at = stop ? stop + 1 : end;
    return begin;
}

int report_read(const char *text, size_t bytes, const char *file,
                const struct requirement *const *table, struct report_kept *out,
                struct fsdp_error *error)
{
    struct report_reader p = {.j = {.file = file, .error = error}};
    const char *const end = text + bytes;
    const char *line;
    size_t n = 0;
    bool good = true;

    memset(out, 0, sizeof(*out));
    while (good && (line = report_line(&text, end, &n))) {
        json_t *v = NULL;

        p.line++;
        if (report_reader_passed(&p, line, n)) {
            continue;
        }
        v = json_loadb(line, n, JSON_REJECT_DUPLICATES, NULL);
        good = json_is_object(v) ? take_line(&p, v, table, out)
                                 : report_reader_refuse(&p, "no JSON object");
        json_decref(v);
    }
    if (good && (p.open || out->n == 0)) {
        (void)report_reader_refuse(&p, "the report has no footer");
    }
    for (uint32_t i = 0; i < out->n; i++) {
        struct report_part_kept *part = &out->part[i];

        part->meta.suite_version = part->suite;
        part->meta.rerun = part->rerun[0] != '\0' ? part->rerun : NULL;
    }
    if (p.j.status != FSDP_OK) {
        report_kept_release(out);
    }
    return p.j.status;
}

void report_select(struct judge_result *r, const char *const *only)
{
    for (uint32_t q = 0; q < r->n_requirements; q++) {
        bool asked = false;

        for (uint32_t i = 0; only[i] && !asked; i++) {
            asked = strcmp(r->requirement[q]->id, only[i]) == 0;
        }
        r->reported[q] = r->reported[q] && asked;
    }
    judge_conclude(r);
}
