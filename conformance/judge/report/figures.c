/* SPDX-License-Identifier: Apache-2.0 */
/* figures.c - reads the exact figures of a case. */
#include "judge/report/figures.h"

#include "record/record.h"
#include <stdlib.h>
#include <string.h>

/* Names go into pages, formats of others and messages. */
static bool is_name(const char *name)
{
    size_t n = strlen(name);

    return n > 0 && n < FIGURE_NAME_BYTES &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") == n;
}

static bool read_values(struct record_json *j, struct record_field at,
                        json_t *v, const struct record_row *row, void *base)
{
    static const struct record_row number = {.type = &record_u64};
    struct figures *out = base;
    const char *name;
    json_t *value;

    (void)row;
    if (!json_is_object(v) || json_object_size(v) > FIGURES_MOST) {
        return record_refuse(j, at, "an object of at most %d was expected",
                             FIGURES_MOST);
    }
    json_object_foreach(v, name, value)
    {
        if (!is_name(name)) {
            return record_refuse(j, at, "\"%.40s\" is no name", name);
        }
        if (!record_u64.read(j, record_field(name), value, &number,
                             &out->value[out->n])) {
            return false;
        }
        memcpy(out->name[out->n++], name, strlen(name) + 1);
    }
    return true;
}

/* Null is JUDGE_NONE. */
static bool read_unit(struct record_json *j, struct record_field at, json_t *v,
                      const struct record_row *row, void *base)
{
    const struct figures *f = j->context;
    uint32_t *out = record_at(row, base);

    *out = JUDGE_NONE;
    return json_is_null(v) ||
           (record_u32.read(j, at, v, row, base) &&
            (*out < f->n_units ||
             record_refuse(j, at, "%u: no such unit", *out)));
}

static const struct record_type values = {read_values, NULL};
static const struct record_type unit = {read_unit, NULL};

static const struct record_row bytes_of_kind = {.type = &record_u64,
                                                .room = sizeof(uint64_t)};

#define AT(member) RECORD_AT(struct judge_moment, member)
static const struct record_row moment_rows[] = {
    {"point", &record_name, AT(point), .name = record_point_name},
    {"unit", &unit, AT(unit)},
    {"live", &record_array, AT(live), .least = RECORD_KINDS,
     .most = FSDP_N_KINDS, .each = &bytes_of_kind},
};
#undef AT
static const struct record_table moment_table = {
    RECORD_ROWS(moment_rows), .size = sizeof(struct judge_moment),
    .tuple = true};

#define AT(member) RECORD_AT(struct figures, member)
static const struct record_row timeline_rows[] = {
    {"step", &record_u64, AT(step), .most = UINT32_MAX},
    {"units", &record_list, RECORD_LIST(struct figures, unit, n_units),
     RECORD_STRINGS(struct figures, unit), .most = FIGURES_UNITS_MOST},
    {"moments", &record_list, RECORD_LIST(struct figures, moment, n_moments),
     .table = &moment_table, .most = FIGURES_MOMENTS_MOST},
};
static const struct record_table timeline_table = {RECORD_ROWS(timeline_rows),
                                                   .prefix = ""};
static const struct record_row figures_rows[] = {
    {"steps", &record_u64, AT(steps), .most = UINT32_MAX},
    {"figures", &values, .offset = 0},
    {"bound", &record_u64, AT(bound), .optional = true},
    {"timeline", &record_object, .offset = 0, .table = &timeline_table,
     .optional = true},
};
#undef AT
static const struct record_table figures_table = {RECORD_ROWS(figures_rows),
                                                  .prefix = ""};

int figures_read(struct record_json *j, json_t *o, struct figures *out)
{
    memset(out, 0, sizeof(*out));
    j->context = out;
    (void)record_read_fields(j, record_field("figures"), o, &figures_table,
                             out);
    out->has_bound = json_object_get(o, "bound") != NULL;
    return j->status;
}

bool figures_are_judged(struct record_json *j, const struct figures *f)
{
    for (uint32_t i = 0; i < JUDGE_N_FIGURES; i++) {
        if (!figures_find(f, judge_figure_name(i))) {
            return record_refuse(j, record_field("figures"),
                                 "\"%s\" is missing", judge_figure_name(i));
        }
    }
    return (f->n == JUDGE_N_FIGURES && f->has_bound) ||
           record_refuse(j, record_field("figures"),
                         "%u of them, %d and a bound were expected", f->n,
                         JUDGE_N_FIGURES);
}

void figures_release(struct figures *f)
{
    free(f->moment);
    free(f->unit);
    memset(f, 0, sizeof(*f));
}

const uint64_t *figures_find(const struct figures *f, const char *name)
{
    for (uint32_t i = 0; i < f->n; i++) {
        if (strcmp(f->name[i], name) == 0) {
            return &f->value[i];
        }
    }
    return NULL;
}

const char *figure_unit(const char *name)
{
    return strncmp(name, "peak.", 5) == 0 || strcmp(name, "wire-bytes") == 0
               ? "bytes"
               : "";
}
