/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track_export.c - exports. The custom format of github-action-benchmark has
 * no place for engine, case and kind: they are in "extra", and what reads
 * (results_bench.c) takes them from there.
 */
#include "tools/track/track_export.h"

#include "tools/track/track_judge.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct exporter {
    struct history *h;
    struct fsdp_error *error;
    enum track_format format;
    struct track_verdict v; /* runs and series of it */
    int64_t run;
    json_t *root; /* of JSON formats */
    FILE *out;    /* of CSV */
};

const char *track_format_name(uint32_t format)
{
    static const char *const name[TRACK_N_FORMATS] = {
        "gab-smaller", "gab-bigger", "bmf", "csv"};

    return format < TRACK_N_FORMATS ? name[format] : NULL;
}

static int no_memory(struct exporter *x)
{
    return record_fail(x->error, FSDP_ERR_NOMEM, "track", "out of memory");
}

/* An integer that no JSON number can hold is rounded, as other programs would
 * do anyway. */
static json_t *number(uint64_t value)
{
    return value <= UINT64_C(1) << 53 ? json_integer((json_int_t)value)
                                      : json_real((double)value);
}

/* ---- JSON ---- */

static int add_custom(struct exporter *x, const struct history_series *s,
                      const char *figure, const char *unit, json_t *value,
                      const char *range, json_t *extra)
{
    char name[RESULTS_ENGINE_BYTES + RESULTS_NAME_BYTES + FIGURE_NAME_BYTES];
    char *text = json_dumps(extra, JSON_COMPACT | JSON_PRESERVE_ORDER);
    char *marked = NULL;
    json_t *o;

    snprintf(name, sizeof(name), "%s%s%s%s%s", s->name,
             s->engine[0] != '\0' ? " " : "", s->engine,
             figure[0] != '\0' ? " " : "", figure);
    json_decref(extra);
    if (!text || asprintf(&marked, "fsdp-track %s", text) < 0) {
        free(text);
        json_decref(value);
        return no_memory(x);
    }
    o = json_pack("{s:s, s:s, s:o, s:s*, s:s}", "name", name, "unit", unit,
                  "value", value, "range", range, "extra", marked);
    free(text);
    free(marked);
    return o && json_array_append_new(x->root, o) == 0 ? FSDP_OK : no_memory(x);
}

/* A measure's name as Bencher wants it: a-z, 0-9 and -. */
static void slug(const char *name, char out[FIGURE_NAME_BYTES + 8])
{
    size_t n = 0;

    for (; *name != '\0' && n < FIGURE_NAME_BYTES; name++) {
        if (*name == '/') {
            memcpy(out + n, "-per-", 5);
            n += 5;
        } else {
            char c = (char)tolower((unsigned char)*name);

            out[n++] =
                (char)(strchr("abcdefghijklmnopqrstuvwxyz0123456789", c) ? c
                                                                         : '-');
        }
    }
    out[n] = '\0';
}

static int add_bencher(struct exporter *x, const struct history_series *s,
                       const char *measure, json_t *metric)
{
    char name[RESULTS_ENGINE_BYTES + RESULTS_NAME_BYTES];
    char key[FIGURE_NAME_BYTES + 8];
    json_t *benchmark;

    snprintf(name, sizeof(name), "%s%s%s", s->name,
             s->engine[0] != '\0' ? " " : "", s->engine);
    slug(measure, key);
    benchmark = json_object_get(x->root, name);
    if (!benchmark) {
        benchmark = json_object();
        if (json_object_set_new(x->root, name, benchmark) != 0) {
            json_decref(metric);
            return no_memory(x);
        }
        benchmark = json_object_get(x->root, name);
    }
    return metric && json_object_set_new(benchmark, key, metric) == 0
               ? FSDP_OK
               : no_memory(x);
}

static int exact_json(struct exporter *x, const struct history_series *s,
                      const struct figures *f)
{
    for (uint32_t i = 0; i < f->n; i++) {
        const char *unit = figure_unit(f->name[i]);

        if (x->format == TRACK_BENCHER) {
            FSDP_TRY(
                add_bencher(x, s, f->name[i],
                            json_pack("{s:o}", "value", number(f->value[i]))));
        } else if (x->format == TRACK_CUSTOM_SMALLER) {
            json_t *extra =
                json_pack("{s:s, s:s, s:s, s:s, s:I}", "kind", "exact",
                          "engine", s->engine, "case", s->name, "figure",
                          f->name[i], "steps", (json_int_t)f->steps);

            FSDP_TRY(add_custom(x, s, f->name[i],
                                unit[0] != '\0' ? unit : "count",
                                number(f->value[i]), NULL, extra));
        }
    }
    return FSDP_OK;
}

static int timed_json(struct exporter *x, const struct history_series *s,
                      const struct history_timed *t)
{
    char range[48];
    json_t *extra;

    if (x->format == TRACK_BENCHER) {
        return add_bencher(x, s, s->unit,
                           json_pack("{s:f, s:f, s:f}", "value", t->median,
                                     "lower_value", t->p10, "upper_value",
                                     t->p90));
    }
    if (s->higher != (x->format == TRACK_CUSTOM_BIGGER)) {
        return FSDP_OK;
    }
    snprintf(range, sizeof(range), "%.6g to %.6g", t->p10, t->p90);
    extra =
        json_pack("{s:s, s:s, s:s, s:s, s:f, s:f}", "kind", "timed", "engine",
                  s->engine, "case", s->name, "better",
                  s->higher ? "higher" : "lower", "p10", t->p10, "p90", t->p90);
    return add_custom(x, s, "", s->unit, json_real(t->median), range, extra);
}

/* ---- CSV ---- */

/* RFC 4180; a cell that a spreadsheet would take for a formula gets an
 * apostrophe. */
static void cell(FILE *f, const char *text, char end)
{
    bool formula = text[0] != '\0' && strchr("=+-@", text[0]);

    fputc('"', f);
    if (formula) {
        fputc('\'', f);
    }
    for (; *text != '\0'; text++) {
        if (*text == '"') {
            fputc('"', f);
        }
        fputc(*text, f);
    }
    fprintf(f, "\"%c", end);
}

static void csv_head(struct exporter *x, const struct history_series *s,
                     int64_t id)
{
    const struct history_run *r = track_run(&x->v, id);
    char date[32] = "";
    time_t t = r ? (time_t)r->date : 0;
    struct tm tm;

    if (gmtime_r(&t, &tm)) {
        (void)strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &tm);
    }
    fprintf(x->out, "%" PRId64 ",", id);
    cell(x->out, r ? r->commit : "", ',');
    cell(x->out, date, ',');
    cell(x->out, r ? r->machine_text : "", ',');
    cell(x->out, s->engine, ',');
    cell(x->out, s->name, ',');
}

static void csv_exact(struct exporter *x, const struct history_series *s,
                      int64_t run, const struct figures *f)
{
    for (uint32_t i = 0; i < f->n; i++) {
        csv_head(x, s, run);
        cell(x->out, f->name[i], ',');
        cell(x->out, figure_unit(f->name[i]), ',');
        fprintf(x->out, "lower,%" PRIu64 ",,\r\n", f->value[i]);
    }
}

static void csv_timed(struct exporter *x, const struct history_series *s,
                      const struct history_timed *t)
{
    csv_head(x, s, t->run);
    cell(x->out, "median", ',');
    cell(x->out, s->unit, ',');
    fprintf(x->out, "%s,%.17g,%.17g,%.17g\r\n", s->higher ? "higher" : "lower",
            t->median, t->p10, t->p90);
}

/* ---- All ---- */

static int export_exact(struct exporter *x, const struct history_series *s)
{
    struct history_exact *all = NULL;
    struct figures f = {.n = 0};
    int64_t bundle = 0;
    uint32_t n = 0;
    int status = history_exact(x->h, s->id, &all, &n, x->error);

    for (uint32_t i = 0; i < n && status == FSDP_OK; i++) {
        if (x->format != TRACK_CSV && all[i].run != x->run) {
            continue;
        }
        if (all[i].bundle != bundle) {
            figures_release(&f);
            bundle = all[i].bundle;
            status = history_bundle(x->h, bundle, &f, x->error);
        }
        if (status == FSDP_OK && x->format == TRACK_CSV) {
            csv_exact(x, s, all[i].run, &f);
        } else if (status == FSDP_OK) {
            status = exact_json(x, s, &f);
        }
    }
    figures_release(&f);
    free(all);
    return status;
}

static int export_timed(struct exporter *x, const struct history_series *s)
{
    struct history_timed *all = NULL;
    uint32_t n = 0;
    int status = history_timed(x->h, s->id, &all, &n, x->error);

    for (uint32_t i = 0; i < n && status == FSDP_OK; i++) {
        if (x->format == TRACK_CSV) {
            csv_timed(x, s, &all[i]);
        } else if (all[i].run == x->run) {
            status = timed_json(x, s, &all[i]);
        }
    }
    free(all);
    return status;
}

static int export_all(struct exporter *x, int64_t run)
{
    const struct history_run *newest;

    FSDP_TRY(history_runs(x->h, &x->v.run, &x->v.n_runs, x->error));
    FSDP_TRY(history_series(x->h, &x->v.series, &x->v.n_series, x->error));
    newest = x->v.n_runs == 0 ? NULL
             : run == 0       ? &x->v.run[x->v.n_runs - 1]
                              : track_run(&x->v, run);
    if (!newest) {
        return record_fail(x->error, FSDP_ERR_FORMAT, "track",
                           "the history has no such run");
    }
    x->run = newest->id;
    x->root = x->format == TRACK_BENCHER ? json_object() : json_array();
    if (!x->root) {
        return no_memory(x);
    }
    if (x->format == TRACK_CSV) {
        fprintf(x->out, "run,commit,date,machine,engine,case,figure,unit,"
                        "better,value,p10,p90\r\n");
    }
    for (uint32_t i = 0; i < x->v.n_series; i++) {
        const struct history_series *s = &x->v.series[i];

        FSDP_TRY(s->exact ? export_exact(x, s) : export_timed(x, s));
    }
    return FSDP_OK;
}

static int finish(struct exporter *x)
{
    size_t n = x->format == TRACK_BENCHER ? json_object_size(x->root)
                                          : json_array_size(x->root);

    if (x->format == TRACK_CSV) {
        return FSDP_OK;
    }
    if (n == 0) { /* github-action-benchmark takes no empty list either */
        return record_fail(x->error, FSDP_ERR_FORMAT, "track",
                           "run %lld has nothing for %s", (long long)x->run,
                           track_format_name(x->format));
    }
    return json_dumpf(x->root, x->out, JSON_INDENT(1) | JSON_PRESERVE_ORDER) ==
                       0 &&
                   fputc('\n', x->out) != EOF
               ? FSDP_OK
               : record_fail(x->error, FSDP_ERR_IO, "track", "cannot write");
}

int track_export(struct history *h, enum track_format format, int64_t run,
                 FILE *out, struct fsdp_error *error)
{
    struct exporter x = {.h = h, .error = error, .format = format, .out = out};
    int status = export_all(&x, run);

    if (status == FSDP_OK) {
        status = finish(&x);
    }
    json_decref(x.root);
    track_verdict_release(&x.v);
    return status;
}
