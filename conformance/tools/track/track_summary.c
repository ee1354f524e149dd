/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_summary.c - the same changes as `track check` prints.
 */
#include "tools/track/track_summary.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

/* ---- JSON ---- */

/* Jansson takes a reference in every case; NULL is what allocation failed. */
static void set(json_t *o, const char *key, json_t *value, int *status)
{
    if (!value || json_object_set_new(o, key, value) != 0) {
        *status = FSDP_ERR_NOMEM;
    }
}

static json_t *run_object(const struct track_verdict *v, int64_t id,
                          int *status)
{
    const struct history_run *r = track_run(v, id);
    json_t *o = json_object();

    if (r) {
        set(o, "run", json_integer(r->id), status);
        set(o, "commit", json_string(r->commit), status);
    }
    return o;
}

static json_t *change_object(const struct track_verdict *v,
                             const struct track_change *c, int *status)
{
    const struct history_series *s = &v->series[c->series];
    json_t *o = json_object();

    set(o, "worse", json_boolean(c->worse), status);
    set(o, "case", json_string(s->name), status);
    set(o, "engine", json_string(s->engine), status);
    set(o, "figure", json_string(c->figure), status);
    set(o, "exact", json_boolean(c->exact), status);
    set(o, "before",
        c->exact ? json_integer((json_int_t)c->exact_before)
                 : json_real(c->before),
        status);
    set(o, "after",
        c->exact ? json_integer((json_int_t)c->exact_after)
                 : json_real(c->after),
        status);
    if (!c->exact && !c->large) {
        set(o, "chance", json_real(c->chance), status);
    }
    set(o, "last_before", run_object(v, c->good, status), status);
    set(o, "first_with", run_object(v, c->bad, status), status);
    return o;
}

int track_summary_json(const struct track_verdict *v, FILE *out)
{
    json_t *o = json_object();
    json_t *changes = json_array();
    int status = FSDP_OK;

    set(o, "newest", run_object(v, v->run[v->newest].id, &status), &status);
    set(o, "regressions", json_integer(v->n_worse), &status);
    set(o, "improvements", json_integer(v->n_change - v->n_worse), &status);
    set(o, "regression_causes", json_integer(track_causes(v, true)), &status);
    set(o, "improvement_causes", json_integer(track_causes(v, false)), &status);
    set(o, "gone", json_integer(v->n_gone), &status);
    set(o, "compared", json_integer(v->judged), &status);
    set(o, "new", json_integer(v->began), &status);
    set(o, "young", json_integer(v->n_young), &status);
    for (uint32_t i = 0; i < v->n_change && changes; i++) {
        if (json_array_append_new(
                changes, change_object(v, &v->change[i], &status)) != 0) {
            status = FSDP_ERR_NOMEM;
        }
    }
    set(o, "changes", changes, &status);
    if (status == FSDP_OK &&
        (json_dumpf(o, out, JSON_INDENT(1)) != 0 || fputc('\n', out) == EOF)) {
        status = FSDP_ERR_IO;
    }
    json_decref(o);
    return status;
}

/* ---- Markdown ---- */

/* Characters that a table would take as its own are left out of names. */
static void put_cell(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        fputc(*text == '|' || *text == '`' || *text == '\n' ? ' ' : *text, out);
    }
}

static void put_run(FILE *out, const struct track_verdict *v, int64_t id)
{
    const struct history_run *r = track_run(v, id);

    fputs(" | ", out);
    if (r) {
        fprintf(out, "`%.10s` (run %" PRId64 ")", r->commit, r->id);
    }
}

/* Of several changes with one cause the first stands for all. */
static void put_row(FILE *out, const struct track_verdict *v, uint32_t first,
                    uint32_t end)
{
    const struct track_change *c = &v->change[first];
    const struct history_series *s = &v->series[c->series];

    fprintf(out, "| %s | ", c->worse ? "**regression**" : "improvement");
    put_cell(out, s->engine);
    fputs(" | ", out);
    put_cell(out, c->figure);
    fputs(" | `", out);
    put_cell(out, s->name);
    fputc('`', out);
    if (end - first > 1) {
        fprintf(out, " and %" PRIu32 " more", end - first - 1);
    }
    if (c->exact) {
        fprintf(out, " | %" PRIu64 " &rarr; %" PRIu64, c->exact_before,
                c->exact_after);
    } else {
        fprintf(out, " | %.5g &rarr; %.5g", c->before, c->after);
    }
    if (c->before > 0.0) {
        fprintf(out, " (%+.2f %%)", 100.0 * (c->after / c->before - 1.0));
    }
    put_run(out, v, c->good);
    put_run(out, v, c->bad);
    fputs(" |\n", out);
}

void track_summary_markdown(const struct track_verdict *v, FILE *out)
{
    const struct history_run *r = &v->run[v->newest];

    fprintf(out,
            "### %s: run %" PRId64 " of `%.10s`\n\n"
            "%" PRIu32 " regressions, %" PRIu32 " improvements, %" PRIu32
            " gone; %" PRIu32 " series compared, %" PRIu32 " new.\n",
            v->n_worse > 0 ? "Regressions" : "No regression", r->id, r->commit,
            track_causes(v, true), track_causes(v, false), v->n_gone, v->judged,
            v->began);
    if (v->n_change == 0) {
        return;
    }
    fputs("\n| | engine | figure | cases | change | last before | first "
          "with it |\n|---|---|---|---|---|---|---|\n",
          out);
    for (uint32_t i = 0; i < v->n_change;) {
        const uint32_t end = track_same_cause(v, i);

        put_row(out, v, i, end);
        i = end;
    }
}
