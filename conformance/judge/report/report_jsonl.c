/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_jsonl.c - the report as JSON Lines: a header, a line for each case
 * and one of its exact figures, a line for each (requirement, case) that was
 * judged, and a footer. A file without its footer is no report.
 */
#include "judge/report/report_internal.h"

#include <float.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Jansson takes a reference in every case; NULL is what allocation failed. */
static void set(json_t *o, const char *key, json_t *value, int *status)
{
    if (!value || json_object_set_new(o, key, value) != 0) {
        *status = FSDP_ERR_NOMEM;
    }
}

static json_t *text(const char *s)
{
    char clean[REPORT_LINE_BYTES];

    return json_string(report_printable(s, clean));
}

/* JSON numbers of other programs end at 2^53; what is larger is a string. */
static json_t *number(uint64_t x)
{
    char digits[24];

    if (x <= UINT64_C(1) << 53) {
        return json_integer((json_int_t)x);
    }
    snprintf(digits, sizeof(digits), "%" PRIu64, x);
    return json_string(digits);
}

static void set_text(json_t *o, const char *key, const char *s, int *status)
{
    if (s && s[0] != '\0') {
        set(o, key, text(s), status);
    }
}

static void set_index(json_t *o, const char *key, int64_t x, int *status)
{
    if (x >= 0) {
        set(o, key, number((uint64_t)x), status);
    }
}

/* Writes the object as one line and drops it. */
static int put_line(FILE *f, json_t *o, int status)
{
    char *line = NULL;

    if (o && status == FSDP_OK) {
        line = json_dumps(o, JSON_COMPACT | JSON_PRESERVE_ORDER);
    }
    json_decref(o);
    if (!line) {
        return FSDP_ERR_NOMEM;
    }
    status = fprintf(f, "%s\n", line) > 0 ? FSDP_OK : FSDP_ERR_IO;
    free(line);
    return status;
}

static void append(json_t *list, json_t *value, int *status)
{
    if (!value || json_array_append_new(list, value) != 0) {
        *status = FSDP_ERR_NOMEM;
    }
}

/* Which requirements were asked, unless all were. */
static void set_reported(json_t *o, const struct judge_result *r, int *status)
{
    json_t *list = json_array();
    bool all = true;

    for (uint32_t q = 0; q < r->n_requirements; q++) {
        all = all && r->reported[q];
        if (r->reported[q]) {
            append(list, text(r->requirement[q]->id), status);
        }
    }
    if (all) {
        json_decref(list);
    } else {
        set(o, "requirements", list, status);
    }
}

static int put_header(FILE *f, const struct judge_result *r,
                      const struct report_meta *m)
{
    json_t *o = json_object();
    json_t *claims = json_array();
    int status = claims ? FSDP_OK : FSDP_ERR_NOMEM;

    set(o, "type", json_string("header"), &status);
    set(o, "report", json_integer(REPORT_VERSION), &status);
    set_text(o, "suite", m->suite_version, &status);
    set_text(o, "commit", m->commit, &status);
    if (m->commit) {
        set(o, "dirty", json_boolean(m->dirty), &status);
    }
    set_text(o, "compiler", m->compiler, &status);
    set_text(o, "engine", r->engine, &status);
    set_text(o, "engine_version", r->engine_version, &status);
    set_text(o, "world", r->world, &status);
    set_text(o, "isolation", r->isolation, &status);
    if (r->sampled.of > 0) {
        set(o, "sampled", json_integer(r->sampled.ranks), &status);
        set(o, "sampled_of", json_integer(r->sampled.of), &status);
        set_text(o, "unasked", r->sampled.unasked, &status);
    }
    if (r->followed.cases > 0) {
        set(o, "followed", json_integer(r->followed.known), &status);
        set(o, "followed_of", json_integer(r->followed.of), &status);
        set(o, "followed_in", json_integer(r->followed.cases), &status);
    }
    for (uint32_t i = 0; i < r->n_claims; i++) {
        if (json_array_append_new(claims, text(r->claim[i])) != 0) {
            status = FSDP_ERR_NOMEM;
        }
    }
    set(o, "claims", claims, &status);
    set_reported(o, r, &status);
    set_text(o, "records", m->records, &status);
    set_index(o, "started", m->started > 0 ? m->started : -1, &status);
    return put_line(f, o, status);
}

static void set_rerun(json_t *o, const struct judge_case *c,
                      const struct report_meta *m, int *status)
{
    char line[REPORT_LINE_BYTES];

    if (m->rerun) {
        set(o, "rerun", text(report_rerun(m, c, line)), status);
    }
}

static int put_case(FILE *f, const struct judge_case *c,
                    const struct report_meta *m)
{
    json_t *o = json_object();
    int status = FSDP_OK;
    uint32_t bits;
    char hex[16];

    set(o, "type", json_string("case"), &status);
    set(o, "case", text(c->id), &status);
    set(o, "outcome", text(judge_outcome_name(c->outcome)), &status);
    set_text(o, "reason", c->reason, &status);
    if (c->has_losses) {
        memcpy(&bits, &c->final_loss, sizeof(bits));
        snprintf(hex, sizeof(hex), "0x%08" PRIx32, bits);
        set(o, "final_loss", json_string(hex), &status);
        set(o, "losses", number(c->n_losses), &status);
        set(o, "losses_off", number(c->losses_off), &status);
    }
    if (c->has_counts) {
        set(o, "peak_parameters", number(c->peak), &status);
        set(o, "peak_parameters_expected", number(c->peak_expected), &status);
        set(o, "collectives", number(c->collectives), &status);
        set(o, "collectives_expected", number(c->collectives_expected),
            &status);
    }
    if (report_milliseconds(c) > 0) {
        set(o, "milliseconds", number(report_milliseconds(c)), &status);
    }
    set_rerun(o, c, m, &status);
    return put_line(f, o, status);
}

static json_t *moment(const struct judge_moment *m, int *status)
{
    json_t *o = json_array();
    json_t *live = json_array();

    append(o, text(record_point_name(m->point)), status);
    append(o, m->unit == JUDGE_NONE ? json_null() : number(m->unit), status);
    for (uint32_t k = 0; k < RECORD_KINDS || (k < FSDP_N_KINDS && m->live[k]);
         k++) {
        append(live, number(m->live[k]), status);
    }
    append(o, live, status);
    return o;
}

static json_t *timeline(const struct judge_figures *figures, int *status)
{
    json_t *o = json_object();
    json_t *units = json_array();
    json_t *moments = json_array();

    set(o, "step", number(figures->step), status);
    for (uint32_t u = 0; u < figures->n_units; u++) {
        append(units, text(figures->unit[u]), status);
    }
    set(o, "units", units, status);
    for (uint32_t i = 0; i < figures->n_moments; i++) {
        append(moments, moment(&figures->moment[i], status), status);
    }
    set(o, "moments", moments, status);
    return o;
}

static int put_figures(FILE *f, const struct judge_case *c)
{
    const struct judge_figures *figures = c->figures;
    json_t *o = json_object();
    json_t *all = json_object();
    int status = FSDP_OK;

    set(o, "type", json_string("figures"), &status);
    set(o, "case", text(c->id), &status);
    set(o, "steps", number(figures->steps), &status);
    for (uint32_t i = 0; i < JUDGE_N_FIGURES; i++) {
        set(all, judge_figure_name(i), number(figures->figure[i]), &status);
    }
    set(o, "figures", all, &status);
    set(o, "bound", number(figures->bound), &status);
    set(o, "timeline", timeline(figures, &status), &status);
    return put_line(f, o, status);
}

static void set_value(json_t *o, const char *key, uint32_t form, uint64_t x,
                      int *status)
{
    char digits[24];
    char decimal_key[32];
    uint32_t bits = (uint32_t)x;
    float value;

    if (form != FINDING_BITS) {
        set(o, key, number(x), status);
        return;
    }
    snprintf(digits, sizeof(digits), "0x%08" PRIx32, bits);
    set(o, key, json_string(digits), status);
    /* A string: JSON has no NaN and no infinity. */
    memcpy(&value, &bits, sizeof(value));
    snprintf(digits, sizeof(digits), "%.9g", (double)value);
    snprintf(decimal_key, sizeof(decimal_key), "%s_decimal", key);
    set(o, decimal_key, json_string(digits), status);
}

static json_t *finding(const struct judge_detail *d, int *status)
{
    const struct finding *f = &d->finding;
    json_t *o = json_object();

    set_text(o, "form", report_form_name(f->form), status);
    set_text(o, "stage", f->stage, status);
    set_index(o, "step", f->step, status);
    set_index(o, "microbatch", f->microbatch, status);
    set_index(o, "unit", f->unit, status);
    set_text(o, "unit_name", d->unit, status);
    set_index(o, "rank", f->rank, status);
    set_index(o, "parameter", f->parameter, status);
    set_text(o, "tensor", d->parameter, status);
    set_index(o, "element", f->element, status);
    set_index(o, "flat", f->flat, status);
    set_index(o, "shard", f->shard, status);
    set_index(o, "local", f->local, status);
    if (report_has_values(f)) {
        set_value(o, "got", f->form, f->got, status);
        set_value(o, "want", f->form, f->want, status);
    }
    if (f->ratio > 0.0 && f->ratio <= DBL_MAX) {
        set(o, "ratio", json_real(f->ratio), status);
    }
    set_text(o, "note", f->note, status);
    return o;
}

static int put_item(FILE *f, const struct judge_result *r, uint32_t c,
                    uint32_t q, const struct report_meta *m)
{
    const struct judge_item *item = judge_item_at(r, c, q);
    const struct requirement *requirement = r->requirement[q];
    json_t *o = json_object();
    char why[REPORT_LINE_BYTES];
    int status = FSDP_OK;

    set(o, "type", json_string("item"), &status);
    set(o, "requirement", text(requirement->id), &status);
    set(o, "case", text(r->cases[c].id), &status);
    set(o, "must", json_boolean(requirement->must), &status);
    set(o, "level", text(requirement_level_name(requirement->level)), &status);
    set(o, "outcome", text(judge_outcome_name(item->outcome)), &status);
    if (item->outcome == JUDGE_BLOCKED) {
        set(o, "blocked_by", text(r->requirement[item->blocked_by]->id),
            &status);
    } else if (!item->detail) {
        set_text(o, "reason", report_why(r, c, q, why), &status);
    } else {
        set(o, "finding", finding(item->detail, &status), &status);
    }
    if (item->outcome == JUDGE_FAIL || item->outcome == JUDGE_ERROR ||
        item->outcome == JUDGE_TIMEOUT) {
        set(o, "text", text(requirement->text), &status);
        set_rerun(o, &r->cases[c], m, &status);
    }
    return put_line(f, o, status);
}

static json_t *counts(const uint32_t *count, int *status)
{
    json_t *o = json_object();

    for (uint32_t i = 0; i < JUDGE_N_OUTCOMES; i++) {
        set(o, judge_outcome_name(i), number(count[i]), status);
    }
    return o;
}

static json_t *manifest(const struct judge_result *r, int *status)
{
    json_t *o = json_object();

    set(o, "cases", number(r->manifest), status);
    set(o, "selected", number(r->selected), status);
    set(o, "not_claimed", number(r->not_claimed), status);
    set(o, "expected", number(r->expected), status);
    set(o, "executed", number(r->executed), status);
    if (r->foreign) {
        set(o, "foreign", json_true(), status);
    }
    set_text(o, "sha256", r->manifest_sha256, status);
    return o;
}

static json_t *levels(const struct judge_result *r, int *status)
{
    json_t *o = json_object();

    for (uint32_t l = 0; l < N_LEVELS; l++) {
        set(o, requirement_level_name(l), counts(r->level[l].count, status),
            status);
    }
    return o;
}

static json_t *proofs(const struct judge_result *r, int *status)
{
    json_t *o = json_object();
    json_t *unproved = json_array();
    uint64_t n = 0;

    for (uint32_t q = 0; q < r->n_requirements; q++) {
        n += r->n_proofs[q];
        if (judge_is_unproved(r, q) &&
            json_array_append_new(unproved, text(r->requirement[q]->id)) != 0) {
            *status = FSDP_ERR_NOMEM;
        }
    }
    set(o, "spoiled_and_noticed", number(n), status);
    set(o, "abandoned", json_boolean(r->abandoned), status);
    set(o, "unproved", unproved, status);
    return o;
}

static json_t *drawn(const struct judge_drawn *d, int *status)
{
    json_t *o = json_object();

    set(o, "generator", number(d->generator), status);
    set(o, "seed", number(d->seed), status);
    set(o, "played", number(d->played), status);
    set(o, "failed", number(d->failed), status);
    set(o, "incomplete", json_boolean(d->incomplete), status);
    set_text(o, "first", d->first, status);
    return o;
}

static json_t *stopped(const struct judge_result *r, int *status)
{
    json_t *o = json_object();

    set_text(o, "why", r->stopped, status);
    set(o, "not_run", number(r->not_run), status);
    set(o, "not_judged", number(r->not_judged), status);
    return o;
}

static int put_footer(FILE *f, const struct judge_result *r,
                      const struct report_meta *m)
{
    json_t *o = json_object();
    int status = FSDP_OK;
    const char *highest =
        r->highest_level < 0
            ? NULL
            : requirement_level_name((uint32_t)r->highest_level);

    set(o, "type", json_string("footer"), &status);
    set(o, "totals", counts(r->count, &status), &status);
    set(o, "manifest", manifest(r, &status), &status);
    set(o, "levels", levels(r, &status), &status);
    set_text(o, "highest_level", highest, &status);
    set(o, "self_check", proofs(r, &status), &status);
    if (r->drawn.wanted) {
        set(o, "drawn", drawn(&r->drawn, &status), &status);
    }
    if (r->stopped[0] != '\0') {
        set(o, "stopped", stopped(r, &status), &status);
    }
    set(o, "verdict", text(judge_verdict_name(r->verdict)), &status);
    set_text(o, "reason", r->reason, &status);
    set_index(o, "ended", m->ended > 0 ? m->ended : -1, &status);
    return put_line(f, o, status);
}

static int put_items(FILE *f, const struct judge_result *r,
                     const struct report_meta *meta)
{
    for (uint32_t c = 0; c < r->n_cases; c++) {
        FSDP_TRY(put_case(f, &r->cases[c], meta));
        if (r->cases[c].figures) {
            FSDP_TRY(put_figures(f, &r->cases[c]));
        }
        for (uint32_t q = 0; q < r->n_requirements; q++) {
            if (report_shows(r, c, q)) {
                FSDP_TRY(put_item(f, r, c, q, meta));
            }
        }
    }
    return FSDP_OK;
}

int report_jsonl_all(const struct report_part *part, uint32_t n,
                     const char *path, struct fsdp_error *error)
{
    struct report_file file;
    int status = report_file_open(&file, path, error);

    for (uint32_t i = 0; i < n && status == FSDP_OK; i++) {
        status = put_header(file.f, part[i].result, part[i].meta);
        if (status == FSDP_OK) {
            status = put_items(file.f, part[i].result, part[i].meta);
        }
        if (status == FSDP_OK) {
            status = put_footer(file.f, part[i].result, part[i].meta);
        }
    }
    return report_file_close(&file, status);
}

int report_jsonl(const struct judge_result *r, const struct report_meta *meta,
                 const char *path, struct fsdp_error *error)
{
    const struct report_part part = {r, meta};

    return report_jsonl_all(&part, 1, path, error);
}
