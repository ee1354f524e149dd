/* SPDX-License-Identifier: Apache-2.0 */
/* figures.c - reads the exact figures of a case. */
#include "tools/track/figures.h"

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

static int read_values(const struct strict *s, json_t *o, struct figures *out)
{
    const char *name;
    json_t *value;

    if (!json_is_object(o) || json_object_size(o) > FIGURES_MOST) {
        return strict_refuse(s, "figures",
                             "an object of at most %d was "
                             "expected",
                             FIGURES_MOST);
    }
    json_object_foreach(o, name, value)
    {
        if (!is_name(name)) {
            return strict_refuse(s, "figures", "\"%.40s\" is no name", name);
        }
        FSDP_TRY(strict_count(s, name, value, UINT64_MAX, &out->value[out->n]));
        memcpy(out->name[out->n++], name, strlen(name) + 1);
    }
    return FSDP_OK;
}

static int read_point(const struct strict *s, const json_t *v, uint32_t *out)
{
    const char *name = json_string_value(v);

    for (*out = 0; record_point_name(*out) != NULL; (*out)++) {
        if (name != NULL && strcmp(name, record_point_name(*out)) == 0) {
            return FSDP_OK;
        }
    }
    return strict_refuse(s, "moments", "a point's name was expected");
}

static int read_moment(const struct strict *s, const json_t *v,
                       uint32_t n_units, struct figures_moment *out)
{
    const json_t *live = json_array_get(v, 2);
    uint64_t unit = FIGURES_NO_UNIT;

    FSDP_TRY(strict_array(s, "moments", v, 3, 3));
    FSDP_TRY(read_point(s, json_array_get(v, 0), &out->point));
    if (!json_is_null(json_array_get(v, 1))) {
        FSDP_TRY(strict_count(s, "moments: unit", json_array_get(v, 1),
                              n_units > 0 ? n_units - 1 : 0, &unit));
        if (n_units == 0) {
            return strict_refuse(s, "moments", "there are no units");
        }
    }
    out->unit = (uint32_t)unit;
    FSDP_TRY(
        strict_array(s, "moments: live", live, FSDP_N_KINDS, FSDP_N_KINDS));
    for (size_t k = 0; k < FSDP_N_KINDS; k++) {
        FSDP_TRY(strict_count(s, "moments: live", json_array_get(live, k),
                              UINT64_MAX, &out->live[k]));
    }
    return FSDP_OK;
}

static int read_timeline(const struct strict *s, json_t *o, struct figures *out)
{
    static const char *const keys[] = {"step", "units", "moments", NULL};
    json_t *v[3];
    size_t n_units;
    size_t n_moments;

    FSDP_TRY(strict_object(s, "timeline", o, keys, v));
    FSDP_TRY(strict_count(s, "step", v[0], UINT32_MAX, &out->step));
    FSDP_TRY(strict_array(s, "units", v[1], 0, FIGURES_UNITS_MOST));
    FSDP_TRY(strict_array(s, "moments", v[2], 0, FIGURES_MOMENTS_MOST));
    n_units = json_array_size(v[1]);
    n_moments = json_array_size(v[2]);
    out->unit = calloc(n_units + 1, sizeof(*out->unit));
    out->moment = calloc(n_moments + 1, sizeof(*out->moment));
    if (out->unit == NULL || out->moment == NULL) {
        return track_fail(s->error, FSDP_ERR_NOMEM, "out of memory");
    }
    for (size_t i = 0; i < n_units; i++) {
        FSDP_TRY(strict_text(s, "units", json_array_get(v[1], i), out->unit[i],
                             sizeof(out->unit[i])));
        out->n_units++;
    }
    for (size_t i = 0; i < n_moments; i++) {
        FSDP_TRY(read_moment(s, json_array_get(v[2], i), out->n_units,
                             &out->moment[i]));
        out->n_moments++;
    }
    return FSDP_OK;
}

int figures_read(const struct strict *s, json_t *o, struct figures *out)
{
    static const char *const keys[] = {"steps", "figures", "?bound",
                                       "?timeline", NULL};
    json_t *v[4];

    memset(out, 0, sizeof(*out));
    FSDP_TRY(strict_object(s, "figures", o, keys, v));
    FSDP_TRY(strict_count(s, "steps", v[0], UINT32_MAX, &out->steps));
    FSDP_TRY(read_values(s, v[1], out));
    if (v[2] != NULL) {
        out->has_bound = true;
        FSDP_TRY(strict_count(s, "bound", v[2], UINT64_MAX, &out->bound));
    }
    return v[3] != NULL ? read_timeline(s, v[3], out) : FSDP_OK;
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
