/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_flights.c - writes and reads when collectives were given out.
 */
#include "record/record_internal.h"

static const char *position_name(uint32_t position)
{
    return position == RECORD_NO_POSITION ? "none" : NULL;
}

void record_flights_add(struct record_text *t, const struct record_flights *f)
{
    record_text_add(t, " \"flights\": [");
    for (uint32_t i = 0; i < f->n; i++) {
        const struct record_flight *const x = &f->flight[i];

        record_text_add(t, "%s[", i == 0 ? "" : ",\n  ");
        record_text_name(t, record_collective_name(x->kind), x->kind);
        record_text_add(t, ", ");
        record_text_name(t, record_unit_name(x->unit), x->unit);
        record_text_add(t, ", %u, %u, ", x->issued, x->behind);
        record_text_name(t, position_name(x->awaited), x->awaited);
        record_text_add(t, ", %s]", x->on_stream ? "true" : "false");
    }
    record_text_add(t, "],\n");
}

static bool parse_flight(struct record_json *j, size_t i, const json_t *v,
                         struct record_flight *x)
{
    const struct record_field at = record_element("flights", i);

    return record_json_array(j, at, v, 6, 6) &&
           record_json_name(j, at, json_array_get(v, 0), record_collective_name,
                            true, &x->kind) &&
           record_json_name(j, at, json_array_get(v, 1), record_unit_name, true,
                            &x->unit) &&
           record_json_u32(j, at, json_array_get(v, 2), UINT32_MAX - 1,
                           &x->issued) &&
           record_json_u32(j, at, json_array_get(v, 3), UINT32_MAX - 1,
                           &x->behind) &&
           record_json_name(j, at, json_array_get(v, 4), position_name, true,
                            &x->awaited) &&
           record_json_flag(j, at, json_array_get(v, 5), &x->on_stream);
}

bool record_flights_parse(struct record_json *j, const json_t *v,
                          struct record_flights *out)
{
    if (!record_json_array(j, record_field("flights"), v, 0, UINT32_MAX)) {
        return false;
    }
    out->flight = record_json_room(j, json_array_size(v), sizeof *out->flight);
    if (out->flight == NULL) {
        return false;
    }
    out->n = (uint32_t)json_array_size(v);
    for (size_t i = 0; i < out->n; i++) {
        if (!parse_flight(j, i, json_array_get(v, i), &out->flight[i])) {
            return false;
        }
    }
    return true;
}
