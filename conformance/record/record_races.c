/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_races.c - writes and reads the races of a rank.
 */
#include "record/record_internal.h"

static void add_side(struct record_text *t, const struct record_race_side *s)
{
    record_text_add(t, "[");
    record_text_string(t, s->what, sizeof(s->what) - 1);
    record_text_add(t, ", ");
    record_text_string(t, s->stream, sizeof(s->stream) - 1);
    record_text_add(t, ", %u, ", s->step);
    record_text_string(t, s->point, sizeof(s->point) - 1);
    record_text_add(t, ", %u]", s->module);
}

void record_races_add(struct record_text *t, const struct record_races *r)
{
    record_text_add(t, " \"races\": {\"count\": ");
    record_text_u64(t, r->count);
    record_text_add(t, ", \"unfollowed\": %u, \"first\": [", r->unfollowed);
    for (uint32_t i = 0; i < r->n && i < RECORD_RACES; i++) {
        const struct record_race *const x = &r->race[i];

        record_text_add(t, "%s\n  [", i == 0 ? "" : ",");
        record_text_string(t, x->edge, sizeof(x->edge) - 1);
        record_text_add(t, ", ");
        record_text_name(t, record_race_kind_name(x->kind), x->kind);
        record_text_add(t, ", ");
        record_text_name(t, record_unit_name(x->unit), x->unit);
        record_text_add(t, ", ");
        add_side(t, &x->earlier);
        record_text_add(t, ", ");
        add_side(t, &x->later);
        record_text_add(t, "]");
    }
    record_text_add(t, "]},\n");
}

const char *record_race_kind_name(uint32_t kind)
{
    return kind == FSDP_N_KINDS ? "nothing" : record_kind_name(kind);
}

static bool parse_side(struct record_json *j, struct record_field at,
                       const json_t *v, struct record_race_side *s)
{
    return record_json_array(j, at, v, 5, 5) &&
           record_json_text(j, at, json_array_get(v, 0), s->what,
                            sizeof(s->what)) &&
           record_json_text(j, at, json_array_get(v, 1), s->stream,
                            sizeof(s->stream)) &&
           record_json_u32(j, at, json_array_get(v, 2), UINT32_MAX, &s->step) &&
           record_json_text(j, at, json_array_get(v, 3), s->point,
                            sizeof(s->point)) &&
           record_json_u32(j, at, json_array_get(v, 4), UINT32_MAX, &s->module);
}

static bool parse_race(struct record_json *j, size_t i, const json_t *v,
                       struct record_race *x)
{
    const struct record_field at = record_element("races.first", i);

    return record_json_array(j, at, v, 5, 5) &&
           record_json_text(j, at, json_array_get(v, 0), x->edge,
                            sizeof(x->edge)) &&
           record_json_name(j, at, json_array_get(v, 1), record_race_kind_name,
                            false, &x->kind) &&
           record_json_name(j, at, json_array_get(v, 2), record_unit_name, true,
                            &x->unit) &&
           parse_side(j, at, json_array_get(v, 3), &x->earlier) &&
           parse_side(j, at, json_array_get(v, 4), &x->later);
}

bool record_races_parse(struct record_json *j, json_t *v,
                        struct record_races *out)
{
    static const char *const key[] = {"count", "unfollowed", "first"};
    json_t *value[3];

    if (!record_json_object(j, record_field("races"), v, key, 3, value) ||
        !record_json_u64(j, record_field("races.count"), value[0],
                         &out->count) ||
        !record_json_u32(j, record_field("races.unfollowed"), value[1],
                         UINT32_MAX, &out->unfollowed) ||
        !record_json_array(j, record_field("races.first"), value[2], 0,
                           RECORD_RACES)) {
        return false;
    }
    out->n = (uint32_t)json_array_size(value[2]);
    for (size_t i = 0; i < out->n; i++) {
        if (!parse_race(j, i, json_array_get(value[2], i), &out->race[i])) {
            return false;
        }
    }
    return out->n <= out->count ||
           record_refuse(j, record_field("races.first"),
                         "more races than were counted");
}
