/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_read_item.c - reads a line of a report about one requirement in one
 * case.
 */
#include "judge/report/report_read_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The part's own copy of a stage's name; NULL: no room. Stages are a dozen. */
static const char *keep_stage(struct report_part_kept *part, const char *name)
{
    char(*more)[48];

    for (uint32_t i = 0; i < part->n_stages; i++) {
        if (strcmp(part->stage[i], name) == 0) {
            return part->stage[i];
        }
    }
    /* The list is never moved: findings point into it. */
    if (!part->stage) {
        more = calloc(REPORT_MAX_STAGES, sizeof(*more));
        part->stage = more;
    }
    if (!part->stage || part->n_stages == REPORT_MAX_STAGES) {
        return NULL;
    }
    snprintf(part->stage[part->n_stages], sizeof(part->stage[0]), "%s", name);
    return part->stage[part->n_stages++];
}

static bool take_stage(struct report_reader *p, const json_t *v,
                       struct finding *f)
{
    char name[sizeof(p->part->stage[0])];

    if (!report_reader_text(p, v, "stage", name, sizeof(name))) {
        return false;
    }
    f->stage = name[0] != '\0' ? keep_stage(p->part, name) : NULL;
    return f->stage || name[0] == '\0' ||
           report_reader_refuse(p, "more stages than there are");
}

/* Reads an index; -1: the line has none. */
static bool take_index(struct report_reader *p, const json_t *v,
                       const char *key, int64_t *out)
{
    uint64_t n = 0;

    *out = -1;
    if (!json_object_get(v, key)) {
        return true;
    }
    if (!report_reader_u64(p, v, key, &n) || n > INT64_MAX) {
        return report_reader_refuse(p, "\"%s\" is no index", key);
    }
    *out = (int64_t)n;
    return true;
}

static bool take_value(struct report_reader *p, const json_t *v,
                       const char *key, uint32_t form, uint64_t *out)
{
    const char *bits = json_string_value(json_object_get(v, key));
    char again[16];

    if (form != FINDING_BITS) {
        return report_reader_u64(p, v, key, out);
    }
    *out = bits ? strtoul(bits, NULL, 16) & UINT32_MAX : 0;
    snprintf(again, sizeof(again), "0x%08x", (unsigned int)*out);
    return (bits && strcmp(bits, again) == 0) ||
           report_reader_refuse(p,
                                "\"%s\": bits are 0x and 8 digits of "
                                "0-9a-f",
                                key);
}

static bool take_form(struct report_reader *p, const json_t *v, uint32_t *out)
{
    const char *name = json_string_value(json_object_get(v, "form"));

    for (*out = 0; name && report_form_name(*out); (*out)++) {
        if (strcmp(report_form_name(*out), name) == 0) {
            return true;
        }
    }
    return report_reader_refuse(p, "a finding of no known form");
}

static bool take_finding(struct report_reader *p, const json_t *v,
                         struct judge_detail *d)
{
    struct finding *f = &d->finding;
    const json_t *ratio = json_object_get(v, "ratio");
    struct {
        const char *key;
        int64_t *to;
    } index[] = {{"step", &f->step},           {"microbatch", &f->microbatch},
                 {"unit", &f->unit},           {"rank", &f->rank},
                 {"parameter", &f->parameter}, {"element", &f->element},
                 {"flat", &f->flat},           {"shard", &f->shard},
                 {"local", &f->local}};

    if (!json_is_object(v) || !take_form(p, v, &f->form) ||
        !take_stage(p, v, f)) {
        return report_reader_refuse(p, "a finding is no object");
    }
    for (size_t i = 0; i < sizeof(index) / sizeof(index[0]); i++) {
        if (!take_index(p, v, index[i].key, index[i].to)) {
            return false;
        }
    }
    if (report_has_values(f) &&
        !(take_value(p, v, "got", f->form, &f->got) &&
          take_value(p, v, "want", f->form, &f->want))) {
        return false;
    }
    f->ratio = json_is_number(ratio) ? json_number_value(ratio) : 0.0;
    return report_reader_text(p, v, "unit_name", d->unit, sizeof(d->unit)) &&
           report_reader_text(p, v, "tensor", d->parameter,
                              sizeof(d->parameter)) &&
           report_reader_text(p, v, "note", f->note, sizeof(f->note));
}

/* Whether an outcome has the members that only failures have. */
static bool is_failure(uint32_t outcome)
{
    return outcome == JUDGE_FAIL || outcome == JUDGE_ERROR ||
           outcome == JUDGE_TIMEOUT;
}

bool report_reader_item(struct report_reader *p, const json_t *line)
{
    struct judge_result *r = &p->part->result;
    const char *id = json_string_value(json_object_get(line, "case"));
    const json_t *found = json_object_get(line, "finding");
    struct judge_item item = {.blocked_by = JUDGE_NONE};
    const uint32_t q =
        report_reader_requirement(p, json_object_get(line, "requirement"));
    struct judge_item *to;

    if (q == r->n_requirements ||
        !report_reader_outcome(p, line, &item.outcome)) {
        return false;
    }
    if (!id || r->n_cases == 0 ||
        strcmp(r->cases[r->n_cases - 1].id, id) != 0) {
        return report_reader_refuse(p, "an item behind another case's line");
    }
    to = &r->item[(uint64_t)(r->n_cases - 1) * r->n_requirements + q];
    if (to->outcome != JUDGE_NOT_APPLICABLE || !r->reported[q]) {
        return report_reader_refuse(p, "a second item on the same, or one "
                                       "that was not asked");
    }
    if (item.outcome == JUDGE_NOT_APPLICABLE ||
        is_failure(item.outcome) > (found != NULL)) {
        return report_reader_refuse(p, "an item without its finding");
    }
    if (item.outcome == JUDGE_BLOCKED) {
        item.blocked_by =
            report_reader_requirement(p, json_object_get(line, "blocked_by"));
        if (item.blocked_by == r->n_requirements) {
            return false;
        }
    }
    *to = item;
    if (!found) {
        return true;
    }
    to->detail = calloc(1, sizeof(*to->detail));
    if (!to->detail) {
        return report_reader_refuse(p, "out of memory");
    }
    return take_finding(p, found, to->detail);
}

/* The place behind a text that stands at `at`; NULL: it does not stand
 * there. */
static const char *behind(const char *at, const char *end, const char *text)
{
    const size_t n = strlen(text);

    return at && (size_t)(end - at) >= n && memcmp(at, text, n) == 0 ? at + n
                                                                     : NULL;
}

/* The place behind a text and the plain characters that follow it, up to a
 * quotation mark: n bytes from *of on. */
static const char *plain(const char *at, const char *end, const char *text,
                         const char **of, size_t *n)
{
    at = behind(at, end, text);
    *of = at;
    for (*n = 0; at && at < end && *at != '"'; at++, (*n)++) {
        if (*at <= ' ' || *at > '~' || *at == '\\') {
            return NULL;
        }
    }
    return at;
}

static bool is(const char *text, const char *of, size_t n)
{
    return strncmp(text, of, n) == 0 && text[n] == '\0';
}

/* The index of an id. Items have the order of the table, so that it is the next
 * one or one soon behind it. */
static uint32_t soon(struct report_reader *p, const char *of, size_t n)
{
    const struct judge_result *r = &p->part->result;

    for (uint32_t i = 0; i < r->n_requirements; i++) {
        const uint32_t q = (p->next + i) % r->n_requirements;

        if (is(r->requirement[q]->id, of, n)) {
            p->next = q + 1;
            return q;
        }
    }
    return r->n_requirements;
}

bool report_reader_passed(struct report_reader *p, const char *line, size_t n)
{
    const char *const end = line + n;
    const char *name[3];
    size_t bytes[3];
    const char *at = plain(line, end, "{\"type\":\"item\",\"requirement\":\"",
                           &name[0], &bytes[0]);
    struct judge_result *r;
    const char *must;
    uint32_t q;
    struct judge_item *to;

    at = plain(at, end, "\",\"case\":\"", &name[1], &bytes[1]);
    at = behind(at, end, "\",\"must\":");
    must = behind(at, end, "true");
    at = must ? must : behind(at, end, "false");
    at = plain(at, end, ",\"level\":\"", &name[2], &bytes[2]);
    if (behind(at, end, "\",\"outcome\":\"pass\"}") != end || !p->open) {
        return false;
    }
    r = &p->part->result;
    q = soon(p, name[0], bytes[0]);
    if (q == r->n_requirements || !r->reported[q] || r->n_cases == 0 ||
        !is(r->cases[r->n_cases - 1].id, name[1], bytes[1])) {
        return false;
    }
    to = &r->item[(uint64_t)(r->n_cases - 1) * r->n_requirements + q];
    if (to->outcome != JUDGE_NOT_APPLICABLE) {
        return false;
    }
    *to = (struct judge_item){JUDGE_PASS, JUDGE_NONE, NULL};
    return true;
}
