/* SPDX-License-Identifier: Apache-2.0 */
/*
 * results_bench.c - timed results: the format of `fsdp-cts bench`, and the
 * custom one of github-action-benchmark, in which this program's own exports
 * say in "extra" what the format has no place for.
 */
#include "judge/report/figures.h"
#include "tools/track/results.h"
#include "tools/track/strict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char extra_mark[] = "fsdp-track ";

static bool read_better(struct record_json *j, struct record_field at,
                        json_t *v, const struct record_row *row, void *base)
{
    const char *better = json_string_value(v);
    bool *higher = record_at(row, base);

    *higher = better && strcmp(better, "higher") == 0;
    return *higher || (better && strcmp(better, "lower") == 0) ||
           record_refuse(j, at, "\"higher\" or \"lower\" was expected");
}

static const struct record_type better_one = {read_better, NULL};

static bool check_timed(struct record_json *j, void *base)
{
    const struct timed_result *x = base;

    if (x->name[0] == '\0' || x->unit[0] == '\0') {
        return record_refuse(j, record_field("name, unit"),
                             "a text was expected");
    }
    return (x->p10 <= x->median && x->median <= x->p90) ||
           record_refuse(j, record_field(x->name),
                         "p10 <= median <= p90 was expected");
}

/* ---- fsdp-bench ---- */

struct bench_file {
    char commit[RESULTS_COMMIT_BYTES], date[RESULTS_COMMIT_BYTES];
    struct machine machine;
    uint32_t n;
    struct timed_result *result;
};

#define AT(member) RECORD_AT(struct machine, member)
static const struct record_row machine_rows[] = {
    {"cpu", &record_string, AT(cpu)},
    {"cores", &record_u64, AT(cores), .most = 1 << 20},
    {"memory_bytes", &record_u64, AT(memory_bytes)},
    {"gpu", &record_string, AT(gpu), .null = true},
};
#undef AT
static const struct record_table machine_table = {RECORD_ROWS(machine_rows),
                                                  .prefix = "hardware."};

static const struct record_row sample = {.type = &record_double,
                                         .room = sizeof(double)};

#define AT(member) RECORD_AT(struct timed_result, member)
static const struct record_row result_rows[] = {
    {"name", &record_string, AT(name)},
    {"unit", &record_string, AT(unit)},
    {"better", &better_one, AT(higher)},
    {"median", &record_double, AT(median)},
    {"p10", &record_double, AT(p10)},
    {"p90", &record_double, AT(p90)},
    {"samples", &record_list,
     RECORD_LIST(struct timed_result, sample, n_samples), .each = &sample,
     .least = 1, .most = RESULTS_SAMPLES_MOST},
};
#undef AT
static const struct record_table result_table = {
    RECORD_ROWS(result_rows), .size = sizeof(struct timed_result), .prefix = "",
    .check = check_timed};

#define AT(member) RECORD_AT(struct bench_file, member)
static const struct record_row bench_rows[] = {
    {"version", &record_version, .most = 1},
    {"format", &record_ignored, .offset = 0},
    {"commit", &record_string, AT(commit)},
    {"date", &record_string, AT(date)},
    {"hardware", &record_object, AT(machine), .table = &machine_table},
    {"results", &record_list, RECORD_LIST(struct bench_file, result, n),
     .table = &result_table, .least = 1, .most = RESULTS_MOST},
};
#undef AT
static const struct record_table bench_table = {RECORD_ROWS(bench_rows),
                                                .prefix = ""};

/* "step.gpt.full-shard.k2.impl.memory": the engine comes behind the ranks. */
static void find_engine(struct timed_result *x)
{
    for (const char *dot = strchr(x->name, '.'); dot;
         dot = strchr(dot + 1, '.')) {
        size_t digits = strspn(dot + 2, "0123456789");

        if (dot[1] == 'k' && digits > 0 && dot[2 + digits] == '.') {
            const char *engine = dot + 3 + digits;

            snprintf(x->engine, sizeof(x->engine), "%.*s",
                     (int)strcspn(engine, "."), engine);
            return;
        }
    }
}

static bool take_machine(struct record_json *j, const struct machine *m,
                         struct results *r)
{
    char here[MACHINE_TEXT_BYTES];
    char before[MACHINE_TEXT_BYTES];

    machine_text(m, here);
    machine_text(&r->machine, before);
    if (r->has_machine && strcmp(here, before) != 0) {
        return record_refuse(j, record_field("hardware"),
                             "another machine than that of a file before");
    }
    r->machine = *m;
    r->has_machine = true;
    return true;
}

static int take_bench(struct record_json *j, struct bench_file *f,
                      struct results *r)
{
    int64_t date;

    if (f->commit[0] != '\0' && strcmp(f->commit, "unknown") != 0) {
        FSDP_TRY(results_set_commit(r, f->commit, j->file, j->error));
    }
    if (!results_date(f->date, &date)) {
        (void)record_refuse(j, record_field("date"),
                            "2026-11-21T10:00:00Z, for example, was expected");
        return j->status;
    }
    r->date = date > r->date ? date : r->date;
    if (!take_machine(j, &f->machine, r)) {
        return j->status;
    }
    for (uint32_t i = 0; i < f->n; i++) {
        struct timed_result x = f->result[i];

        f->result[i].sample = NULL; /* the results' own from here on */
        find_engine(&x);
        FSDP_TRY(results_add_timed(r, &x, j->error));
    }
    return FSDP_OK;
}

int results_read_bench(const char *path, json_t *root, struct results *r,
                       struct fsdp_error *error)
{
    struct record_json j = {.file = path, .error = error};
    struct bench_file f = {.n = 0};
    int status;

    status = record_read_root(&j, root, &bench_table, &f)
                 ? take_bench(&j, &f, r)
                 : j.status;
    for (uint32_t i = 0; i < f.n; i++) {
        free(f.result[i].sample);
    }
    free(f.result);
    return status;
}

/* ---- github-action-benchmark ---- */

/* Fields that only this program's own exports have. */
struct extra {
    char engine[RESULTS_ENGINE_BYTES], name[RESULTS_NAME_BYTES];
    char figure[FIGURE_NAME_BYTES];
    bool higher;
    double p10, p90;
};

#define AT(member) RECORD_AT(struct extra, member)
static const struct record_row exact_rows[] = {
    {"kind", &record_ignored, .offset = 0},
    {"engine", &record_string, AT(engine)},
    {"case", &record_string, AT(name)},
    {"figure", &record_string, AT(figure)},
    {"steps", &record_ignored, .offset = 0},
};
static const struct record_row timed_rows[] = {
    {"kind", &record_ignored, .offset = 0},
    {"engine", &record_string, AT(engine)},
    {"case", &record_string, AT(name)},
    {"better", &better_one, AT(higher)},
    {"p10", &record_double, AT(p10)},
    {"p90", &record_double, AT(p90)},
};
#undef AT
static const struct record_table exact_table = {RECORD_ROWS(exact_rows),
                                                .prefix = ""};
static const struct record_table timed_table = {RECORD_ROWS(timed_rows),
                                                .prefix = ""};

#define AT(member) RECORD_AT(struct timed_result, member)
static const struct record_row entry_rows[] = {
    {"name", &record_string, AT(name)},
    {"unit", &record_string, AT(unit)},
    {"value", &record_double, AT(median)},
    {"range", &record_ignored, .optional = true},
    {"extra", &record_ignored, .optional = true},
};
#undef AT
static const struct record_table entry_table = {RECORD_ROWS(entry_rows),
                                                .prefix = ""};

/* Exact figures are gathered by case, {"engine\ncase": {"steps", "figures"}}.
 */
static bool gather_exact(struct record_json *j, json_t *groups,
                         const struct extra *x, json_t *steps, json_t *value)
{
    char key[RESULTS_ENGINE_BYTES + RESULTS_NAME_BYTES];
    json_t *group;

    snprintf(key, sizeof(key), "%s\n%s", x->engine, x->name);
    group = json_object_get(groups, key);
    if (!group) {
        group = json_pack("{s:O, s:{}}", "steps", steps, "figures");
        if (!group || json_object_set_new(groups, key, group) != 0) {
            j->status =
                record_fail(j->error, FSDP_ERR_NOMEM, "track", "out of memory");
            return false;
        }
    }
    group = json_object_get(group, "figures");
    if (json_object_get(group, x->figure)) {
        return record_refuse(j, record_field(x->figure), "a second time");
    }
    if (json_object_set(group, x->figure, value) != 0) {
        j->status =
            record_fail(j->error, FSDP_ERR_NOMEM, "track", "out of memory");
    }
    return j->status == FSDP_OK;
}

/* *exact says whether it is of an exact figure, which needs nothing more. */
static bool read_extra(struct record_json *j, json_t *o, json_t *groups,
                       json_t *value, struct timed_result *to, bool *exact)
{
    const char *kind = json_string_value(json_object_get(o, "kind"));
    const struct record_field at = record_field("extra");
    struct extra x = {.engine = ""};

    *exact = kind && strcmp(kind, "exact") == 0;
    if (*exact) {
        return record_read_fields(j, at, o, &exact_table, &x) &&
               gather_exact(j, groups, &x, json_object_get(o, "steps"), value);
    }
    if (json_object_get(o, "kind") && (!kind || strcmp(kind, "timed") != 0)) {
        return record_refuse(j, at, "of no kind");
    }
    if (!record_read_fields(j, at, o, &timed_table, &x)) {
        return false;
    }
    memcpy(to->engine, x.engine, sizeof(to->engine));
    memcpy(to->name, x.name, sizeof(to->name));
    to->higher = x.higher;
    to->p10 = x.p10;
    to->p90 = x.p90;
    return true;
}

/* The object in the text of an entry's "extra", if that is one of ours. */
static bool load_extra(struct record_json *j, const json_t *entry, json_t **out)
{
    const char *text = json_string_value(json_object_get(entry, "extra"));

    *out = NULL;
    if (!text || strncmp(text, extra_mark, sizeof(extra_mark) - 1) != 0) {
        return true;
    }
    text += sizeof(extra_mark) - 1;
    *out = strict_load(j, text, strlen(text));
    return *out != NULL;
}

static bool read_entry(struct record_json *j, json_t *o, char better,
                       json_t *groups, struct results *r)
{
    struct timed_result x = {.n_samples = 1};
    bool exact = false;
    json_t *extra;
    bool good;

    if (!record_read_fields(j, record_field("an entry"), o, &entry_table, &x) ||
        !load_extra(j, o, &extra)) {
        return false;
    }
    x.p10 = x.p90 = x.median;
    x.higher = better == 'h';
    good = extra ? read_extra(j, extra, groups, json_object_get(o, "value"), &x,
                              &exact)
                 : better != 0 ||
                       record_refuse(j, record_field(x.name),
                                     "which is better? --better lower or "
                                     "--better higher");
    json_decref(extra);
    if (!good || exact) {
        return good;
    }
    if (!check_timed(j, &x)) {
        return false;
    }
    x.sample = malloc(sizeof(*x.sample));
    if (x.sample) {
        *x.sample = x.median;
    }
    j->status = results_add_timed(r, &x, j->error);
    return j->status == FSDP_OK;
}

static int add_group(struct record_json *j, const char *key, json_t *group,
                     struct results *r)
{
    struct exact_result x = {.text = NULL};
    const char *end = strchr(key, '\n');
    struct figures f;
    int status = figures_read(j, group, &f);

    figures_release(&f);
    if (status != FSDP_OK) {
        return status;
    }
    snprintf(x.engine, sizeof(x.engine), "%.*s", (int)(end - key), key);
    snprintf(x.name, sizeof(x.name), "%s", end + 1);
    x.text = json_dumps(group, JSON_COMPACT | JSON_PRESERVE_ORDER);
    return results_add_exact(r, &x, j->error);
}

int results_read_custom(const char *path, json_t *root, char better,
                        struct results *r, struct fsdp_error *error)
{
    struct record_json j = {.file = path, .error = error};
    json_t *groups = json_object();
    const char *key;
    json_t *group;
    const size_t n = json_array_size(root);
    bool good = n > 0 && n <= RESULTS_MOST;

    if (!groups) {
        return record_fail(error, FSDP_ERR_NOMEM, "track", "out of memory");
    }
    if (!good) {
        (void)record_refuse(&j, record_field("the file"),
                            "%zu elements, 1 to %d expected", n, RESULTS_MOST);
    }
    for (size_t i = 0; good && i < n; i++) {
        good = read_entry(&j, json_array_get(root, i), better, groups, r);
    }
    json_object_foreach(groups, key, group)
    {
        if (j.status == FSDP_OK) {
            j.status = add_group(&j, key, group, r);
        }
    }
    json_decref(groups);
    return j.status;
}
