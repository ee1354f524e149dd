/* SPDX-License-Identifier: Apache-2.0 */
/*
 * results_bench.c - timed results: the format of `fsdp-cts bench`, and the
 * custom one of github-action-benchmark, in which this program's own exports
 * say in "extra" what the format has no place for.
 */
#include "tools/track/figures.h"
#include "tools/track/results.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char extra_mark[] = "fsdp-track ";

/* ---- fsdp-bench ---- */

static int read_hardware(const struct strict *s, json_t *o, struct results *r)
{
    static const char *const keys[] = {"cpu", "cores", "memory_bytes", "gpu",
                                       NULL};
    struct machine m = {.cpu = ""};
    char here[MACHINE_TEXT_BYTES];
    char before[MACHINE_TEXT_BYTES];
    json_t *v[4];

    FSDP_TRY(strict_object(s, "hardware", o, keys, v));
    FSDP_TRY(strict_text(s, "hardware.cpu", v[0], m.cpu, sizeof(m.cpu)));
    FSDP_TRY(strict_count(s, "hardware.cores", v[1], 1 << 20, &m.cores));
    FSDP_TRY(strict_count(s, "hardware.memory_bytes", v[2], UINT64_MAX,
                          &m.memory_bytes));
    if (!json_is_null(v[3])) {
        FSDP_TRY(strict_text(s, "hardware.gpu", v[3], m.gpu, sizeof(m.gpu)));
    }
    machine_text(&m, here);
    machine_text(&r->machine, before);
    if (r->has_machine && strcmp(here, before) != 0) {
        return strict_refuse(s, "hardware",
                             "another machine than that of a "
                             "file before");
    }
    r->machine = m;
    r->has_machine = true;
    return FSDP_OK;
}

static int read_samples(const struct strict *s, const json_t *v,
                        struct timed_result *x)
{
    FSDP_TRY(strict_array(s, "samples", v, 1, RESULTS_SAMPLES_MOST));
    x->sample = calloc(json_array_size(v), sizeof(*x->sample));
    if (x->sample == NULL) {
        return track_fail(s->error, FSDP_ERR_NOMEM, "out of memory");
    }
    for (size_t i = 0; i < json_array_size(v); i++) {
        FSDP_TRY(
            strict_number(s, "samples", json_array_get(v, i), &x->sample[i]));
        x->n_samples++;
    }
    return FSDP_OK;
}

static int read_better(const struct strict *s, const json_t *v, bool *higher)
{
    const char *better = json_string_value(v);

    *higher = better != NULL && strcmp(better, "higher") == 0;
    return *higher || (better != NULL && strcmp(better, "lower") == 0)
               ? FSDP_OK
               : strict_refuse(s, "better",
                               "\"higher\" or \"lower\" was expected");
}

static int check_timed(const struct strict *s, const struct timed_result *x)
{
    if (x->name[0] == '\0' || x->unit[0] == '\0') {
        return strict_refuse(s, "name, unit", "a text was expected");
    }
    return x->p10 <= x->median && x->median <= x->p90
               ? FSDP_OK
               : strict_refuse(s, x->name, "p10 <= median <= p90 was expected");
}

/* "step.gpt.full-shard.k2.impl.memory": the engine comes behind the ranks. */
static void find_engine(struct timed_result *x)
{
    for (const char *dot = strchr(x->name, '.'); dot != NULL;
         dot = strchr(dot + 1, '.')) {
        size_t digits = strspn(dot + 2, "0123456789");

        if (dot[1] == 'k' && digits > 0 && dot[2 + digits] == '.') {
            const char *engine = dot + 3 + digits;

            (void)snprintf(x->engine, sizeof(x->engine), "%.*s",
                           (int)strcspn(engine, "."), engine);
            return;
        }
    }
}

static int read_result(const struct strict *s, json_t *o,
                       struct timed_result *x)
{
    static const char *const keys[] = {"name", "unit", "better",  "median",
                                       "p10",  "p90",  "samples", NULL};
    json_t *v[7];

    FSDP_TRY(strict_object(s, "results", o, keys, v));
    FSDP_TRY(strict_text(s, "name", v[0], x->name, sizeof(x->name)));
    FSDP_TRY(strict_text(s, "unit", v[1], x->unit, sizeof(x->unit)));
    FSDP_TRY(read_better(s, v[2], &x->higher));
    FSDP_TRY(strict_number(s, "median", v[3], &x->median));
    FSDP_TRY(strict_number(s, "p10", v[4], &x->p10));
    FSDP_TRY(strict_number(s, "p90", v[5], &x->p90));
    FSDP_TRY(read_samples(s, v[6], x));
    find_engine(x);
    return check_timed(s, x);
}

int results_read_bench(const char *path, json_t *root, struct results *r,
                       struct fsdp_error *error)
{
    static const char *const keys[] = {"format",   "version", "commit", "date",
                                       "hardware", "results", NULL};
    const struct strict s = {.file = path, .error = error};
    char text[RESULTS_COMMIT_BYTES];
    uint64_t version;
    int64_t date;
    json_t *v[6];

    FSDP_TRY(strict_count(&s, "version", json_object_get(root, "version"),
                          UINT32_MAX, &version));
    if (version != 1) {
        return strict_refuse(&s, "version", "%llu; this reader knows 1",
                             (unsigned long long)version);
    }
    FSDP_TRY(strict_object(&s, "the file", root, keys, v));
    FSDP_TRY(strict_text(&s, "commit", v[2], text, sizeof(text)));
    if (text[0] != '\0' && strcmp(text, "unknown") != 0) {
        FSDP_TRY(results_set_commit(r, text, path, error));
    }
    FSDP_TRY(strict_text(&s, "date", v[3], text, sizeof(text)));
    if (!results_date(text, &date)) {
        return strict_refuse(&s, "date",
                             "2026-11-21T10:00:00Z, for example, "
                             "was expected");
    }
    r->date = date > r->date ? date : r->date;
    FSDP_TRY(read_hardware(&s, v[4], r));
    FSDP_TRY(strict_array(&s, "results", v[5], 1, RESULTS_MOST));
    for (size_t i = 0; i < json_array_size(v[5]); i++) {
        struct timed_result x = {.sample = NULL};
        int status = read_result(&s, json_array_get(v[5], i), &x);

        if (status != FSDP_OK) {
            free(x.sample);
            return status;
        }
        FSDP_TRY(results_add_timed(r, &x, error));
    }
    return FSDP_OK;
}

/* ---- github-action-benchmark ---- */

/* An entry that this program exported: its exact figures are gathered by
 * case, {"engine\ncase": {"steps", "figures"}}. */
static int gather_exact(const struct strict *s, json_t *groups,
                        json_t *const *v, json_t *value)
{
    char engine[RESULTS_ENGINE_BYTES];
    char name[RESULTS_NAME_BYTES];
    char figure[FIGURE_NAME_BYTES];
    char key[RESULTS_ENGINE_BYTES + RESULTS_NAME_BYTES];
    json_t *group;

    FSDP_TRY(strict_text(s, "engine", v[1], engine, sizeof(engine)));
    FSDP_TRY(strict_text(s, "case", v[2], name, sizeof(name)));
    FSDP_TRY(strict_text(s, "figure", v[3], figure, sizeof(figure)));
    if (v[4] == NULL) {
        return strict_refuse(s, "extra", "\"steps\" is missing");
    }
    (void)snprintf(key, sizeof(key), "%s\n%s", engine, name);
    group = json_object_get(groups, key);
    if (group == NULL) {
        group = json_pack("{s:O, s:{}}", "steps", v[4], "figures");
        if (group == NULL || json_object_set_new(groups, key, group) != 0) {
            return track_fail(s->error, FSDP_ERR_NOMEM, "out of memory");
        }
    }
    group = json_object_get(group, "figures");
    if (json_object_get(group, figure) != NULL) {
        return strict_refuse(s, figure, "a second time");
    }
    return json_object_set(group, figure, value) == 0
               ? FSDP_OK
               : track_fail(s->error, FSDP_ERR_NOMEM, "out of memory");
}

static int read_extra_timed(const struct strict *s, json_t *const *v,
                            struct timed_result *x)
{
    FSDP_TRY(strict_text(s, "engine", v[1], x->engine, sizeof(x->engine)));
    FSDP_TRY(strict_text(s, "case", v[2], x->name, sizeof(x->name)));
    FSDP_TRY(read_better(s, v[5], &x->higher));
    FSDP_TRY(strict_number(s, "p10", v[6], &x->p10));
    return strict_number(s, "p90", v[7], &x->p90);
}

/* 0: no extra of ours; *exact says what it is. */
static int read_extra(const struct strict *s, const char *extra, json_t *groups,
                      json_t *value, struct timed_result *x, bool *exact)
{
    static const char *const keys[] = {"kind",    "engine", "case",
                                       "?figure", "?steps", "?better",
                                       "?p10",    "?p90",   NULL};
    json_t *o = NULL;
    json_t *v[8];
    const char *kind;
    int status;

    FSDP_TRY(strict_load(s, extra, strlen(extra), &o));
    status = strict_object(s, "extra", o, keys, v);
    if (status == FSDP_OK) {
        kind = json_string_value(v[0]);
        *exact = kind != NULL && strcmp(kind, "exact") == 0;
        status = *exact ? gather_exact(s, groups, v, value)
                 : kind != NULL && strcmp(kind, "timed") == 0
                     ? read_extra_timed(s, v, x)
                     : strict_refuse(s, "extra", "of no kind");
    }
    json_decref(o);
    return status;
}

static int read_entry(const struct strict *s, json_t *o, char better,
                      json_t *groups, struct results *r)
{
    static const char *const keys[] = {"name",   "unit",   "value",
                                       "?range", "?extra", NULL};
    struct timed_result x = {.n_samples = 1};
    const char *extra;
    bool exact = false;
    json_t *v[5];

    FSDP_TRY(strict_object(s, "an entry", o, keys, v));
    FSDP_TRY(strict_text(s, "name", v[0], x.name, sizeof(x.name)));
    FSDP_TRY(strict_text(s, "unit", v[1], x.unit, sizeof(x.unit)));
    extra = json_string_value(v[4]);
    if (extra != NULL &&
        strncmp(extra, extra_mark, sizeof(extra_mark) - 1) == 0) {
        x.median = json_number_value(v[2]);
        FSDP_TRY(read_extra(s, extra + sizeof(extra_mark) - 1, groups, v[2], &x,
                            &exact));
        if (exact) {
            return FSDP_OK;
        }
    } else if (better == 0) {
        return strict_refuse(s, x.name,
                             "which is better? --better lower or "
                             "--better higher");
    } else {
        FSDP_TRY(strict_number(s, "value", v[2], &x.median));
        x.p10 = x.p90 = x.median;
        x.higher = better == 'h';
    }
    FSDP_TRY(check_timed(s, &x));
    x.sample = malloc(sizeof(*x.sample));
    if (x.sample != NULL) {
        *x.sample = x.median;
    }
    return results_add_timed(r, &x, s->error);
}

static int add_group(const struct strict *s, const char *key, json_t *group,
                     struct results *r)
{
    struct exact_result x = {.text = NULL};
    const char *end = strchr(key, '\n');
    struct figures f;
    int status = figures_read(s, group, &f);

    figures_release(&f);
    if (status != FSDP_OK) {
        return status;
    }
    (void)snprintf(x.engine, sizeof(x.engine), "%.*s", (int)(end - key), key);
    (void)snprintf(x.name, sizeof(x.name), "%s", end + 1);
    x.text = json_dumps(group, JSON_COMPACT | JSON_PRESERVE_ORDER);
    return results_add_exact(r, &x, s->error);
}

int results_read_custom(const char *path, json_t *root, char better,
                        struct results *r, struct fsdp_error *error)
{
    const struct strict s = {.file = path, .error = error};
    json_t *groups = json_object();
    const char *key;
    json_t *group;
    int status = strict_array(&s, "the file", root, 1, RESULTS_MOST);

    if (groups == NULL) {
        return track_fail(error, FSDP_ERR_NOMEM, "out of memory");
    }
    for (size_t i = 0; i < json_array_size(root) && status == FSDP_OK; i++) {
        status = read_entry(&s, json_array_get(root, i), better, groups, r);
    }
    json_object_foreach(groups, key, group)
    {
        if (status == FSDP_OK) {
            status = add_group(&s, key, group, r);
        }
    }
    json_decref(groups);
    return status;
}
