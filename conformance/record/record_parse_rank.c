/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_parse_rank.c - reads the text of rank-R.json: what one rank showed,
 * but for tensors. Counts have to be those that the case asks for: a judge
 * walks these arrays by the case's numbers.
 */
#include "record/record_internal.h"

#include <stdlib.h>
#include <string.h>

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

static bool parse_floats(struct record_json *j, const char *name,
                         const json_t *v, uint64_t least, uint64_t most,
                         float **out, uint32_t *n)
{
    if (!record_json_array(j, record_field(name), v, least, most)) {
        return false;
    }
    *out = record_json_room(j, json_array_size(v), sizeof(**out));
    if (*out == NULL) {
        return false;
    }
    *n = (uint32_t)json_array_size(v);
    for (size_t i = 0; i < *n; i++) {
        if (!record_json_float(j, record_element(name, i), json_array_get(v, i),
                               &(*out)[i])) {
            return false;
        }
    }
    return true;
}

/* A rank that ended well has as many losses as the case asks for, another one
 * at most. */
static bool parse_losses(struct record_json *j, const struct run_case *c,
                         json_t *const *v, struct record_rank *r)
{
    const uint64_t steps = case_trains(c) ? c->steps : 0;
    const uint64_t all = steps * c->microbatches;
    const uint64_t other = c->scenario == CASE_EVAL    ? steps
                           : c->scenario == CASE_AGAIN ? all
                                                       : 0;
    const bool ok = r->status == FSDP_OK;

    return parse_floats(j, "losses", v[0], ok ? all : 0, all, &r->loss,
                        &r->n_losses) &&
           parse_floats(j, "other_losses", v[1], ok ? other : 0, other,
                        &r->other_loss, &r->n_other_losses);
}

static bool parse_error(struct record_json *j, json_t *v, struct record_rank *r)
{
    static const char *const key[] = {"status", "rank", "native", "where",
                                      "message"};
    const struct record_field at = record_field("error");
    struct fsdp_error *const e = &r->error;
    json_t *value[N_OF(key)];

    if (json_is_null(v)) {
        return true;
    }
    return record_json_object(j, at, v, key, N_OF(key), value) &&
           record_json_i32(j, at, value[0], &e->status) &&
           record_json_i32(j, at, value[1], &e->rank) &&
           record_json_i32(j, at, value[2], &e->native) &&
           record_json_text(j, at, value[3], e->where, sizeof(e->where)) &&
           record_json_text(j, at, value[4], e->message, sizeof(e->message));
}

static bool parse_collective(struct record_json *j, size_t s, const json_t *v,
                             struct record_collective *c)
{
    const struct record_field at = record_element("sequences", s);

    if (!record_json_array(j, at, v, 7, 7)) {
        return false;
    }
    return record_json_name(j, at, json_array_get(v, 0), record_collective_name,
                            true, &c->kind) &&
           record_json_name(j, at, json_array_get(v, 1), record_dim_name, true,
                            &c->dim) &&
           record_json_name(j, at, json_array_get(v, 2), record_dtype_name,
                            true, &c->dtype) &&
           record_json_name(j, at, json_array_get(v, 3), case_fold_name, true,
                            &c->fold) &&
           record_json_u32(j, at, json_array_get(v, 4), UINT32_MAX, &c->root) &&
           record_json_name(j, at, json_array_get(v, 5), record_unit_name, true,
                            &c->unit) &&
           record_json_u64(j, at, json_array_get(v, 6), &c->n);
}

static bool parse_sequences(struct record_json *j, const json_t *v,
                            struct record_rank *r)
{
    if (!record_json_array(j, record_field("sequences"), v, 1, UINT32_MAX)) {
        return false;
    }
    r->sequence = record_json_room(j, json_array_size(v), sizeof(*r->sequence));
    if (r->sequence == NULL) {
        return false;
    }
    r->n_sequences = (uint32_t)json_array_size(v);
    for (size_t s = 0; s < r->n_sequences; s++) {
        const json_t *const list = json_array_get(v, s);
        struct record_sequence *const q = &r->sequence[s];

        if (!record_json_array(j, record_element("sequences", s), list, 0,
                               UINT32_MAX)) {
            return false;
        }
        q->c = record_json_room(j, json_array_size(list), sizeof(*q->c));
        if (q->c == NULL) {
            return false;
        }
        q->n = (uint32_t)json_array_size(list);
        for (size_t i = 0; i < q->n; i++) {
            if (!parse_collective(j, s, json_array_get(list, i), &q->c[i])) {
                return false;
            }
        }
    }
    return true;
}

/* Which sequence each step made. */
static bool parse_steps(struct record_json *j, const struct run_case *c,
                        json_t *const *v, struct record_rank *r)
{
    const uint32_t steps = case_trains(c) ? c->steps : 0;
    const uint32_t last = r->n_sequences - 1;

    if (!record_json_u32(j, record_field("shard_sequence"), v[0], last,
                         &r->shard_sequence) ||
        !record_json_array(j, record_field("step_sequences"), v[1],
                           r->status == FSDP_OK ? steps : 0, steps) ||
        !record_json_u32(j, record_field("end_sequence"), v[2], last,
                         &r->end_sequence)) {
        return false;
    }
    r->step_sequence =
        record_json_room(j, json_array_size(v[1]), sizeof(*r->step_sequence));
    if (r->step_sequence == NULL) {
        return false;
    }
    r->n_steps = (uint32_t)json_array_size(v[1]);
    for (size_t i = 0; i < r->n_steps; i++) {
        if (!record_json_u32(j, record_element("step_sequences", i),
                             json_array_get(v[1], i), last,
                             &r->step_sequence[i])) {
            return false;
        }
    }
    return true;
}

static bool parse_kinds(struct record_json *j, struct record_field at,
                        const json_t *v, uint64_t out[FSDP_N_KINDS])
{
    if (!record_json_array(j, at, v, FSDP_N_KINDS, FSDP_N_KINDS)) {
        return false;
    }
    for (size_t k = 0; k < FSDP_N_KINDS; k++) {
        if (!record_json_u64(j, at, json_array_get(v, k), &out[k])) {
            return false;
        }
    }
    return true;
}

/* What was measured after each step. */
static bool parse_memory_steps(struct record_json *j, json_t *const *v,
                               struct record_rank *r)
{
    struct record_memory *const m = &r->memory;

    if (!record_json_array(j, record_field("memory.after_step"), v[0],
                           r->n_steps, r->n_steps) ||
        !record_json_array(j, record_field("memory.allocations"), v[1],
                           r->n_steps, r->n_steps) ||
        !record_json_array(j, record_field("memory.launches"), v[2], r->n_steps,
                           r->n_steps)) {
        return false;
    }
    m->after_step = record_json_room(j, r->n_steps, sizeof(*m->after_step));
    m->allocations = record_json_room(j, r->n_steps, sizeof(*m->allocations));
    m->launches = record_json_room(j, r->n_steps, sizeof(*m->launches));
    if (m->after_step == NULL || m->allocations == NULL ||
        m->launches == NULL) {
        return false;
    }
    for (size_t i = 0; i < r->n_steps; i++) {
        if (!parse_kinds(j, record_element("memory.after_step", i),
                         json_array_get(v[0], i), m->after_step[i].live) ||
            !record_json_u64(j, record_element("memory.allocations", i),
                             json_array_get(v[1], i), &m->allocations[i]) ||
            !record_json_u64(j, record_element("memory.launches", i),
                             json_array_get(v[2], i), &m->launches[i])) {
            return false;
        }
    }
    return true;
}

static bool parse_timeline(struct record_json *j, const json_t *v,
                           struct record_memory *m)
{
    if (!record_json_array(j, record_field("memory.timeline"), v, 0,
                           RECORD_MAX_MOMENTS)) {
        return false;
    }
    m->moment = record_json_room(j, json_array_size(v), sizeof(*m->moment));
    if (m->moment == NULL) {
        return false;
    }
    m->n_moments = (uint32_t)json_array_size(v);
    for (size_t i = 0; i < m->n_moments; i++) {
        const struct record_field at = record_element("memory.timeline", i);
        const json_t *const moment = json_array_get(v, i);
        struct record_moment *const out = &m->moment[i];

        if (!record_json_array(j, at, moment, 3, 3) ||
            !record_json_name(j, at, json_array_get(moment, 0),
                              record_point_name, false, &out->point) ||
            !record_json_u32(j, at, json_array_get(moment, 1), UINT32_MAX,
                             &out->module) ||
            !parse_kinds(j, at, json_array_get(moment, 2), out->live)) {
            return false;
        }
    }
    return true;
}

static bool parse_memory(struct record_json *j, json_t *v,
                         struct record_rank *r)
{
    static const char *const key[] = {"peak",
                                      "after_shard",
                                      "after_step",
                                      "allocations",
                                      "launches",
                                      "timeline",
                                      "peak_parameters",
                                      "peak_engine",
                                      "peak_storage",
                                      "peak_live_over_storage",
                                      "dirty_padding",
                                      "misplaced",
                                      "bad_ranges",
                                      "left_live",
                                      "left_storage",
                                      "process_growth",
                                      "new_channels"};
    struct record_memory *const m = &r->memory;
    uint64_t *const number[] = {&m->peak_parameters, &m->peak_engine,
                                &m->peak_storage,    &m->peak_live_over_storage,
                                &m->dirty_padding,   &m->misplaced,
                                &m->bad_ranges,      &m->left_live,
                                &m->left_storage,    &m->process_growth};
    json_t *value[N_OF(key)];

    if (!record_json_object(j, record_field("memory"), v, key, N_OF(key),
                            value) ||
        !parse_kinds(j, record_field("memory.peak"), value[0], m->peak) ||
        !parse_kinds(j, record_field("memory.after_shard"), value[1],
                     m->after_shard.live) ||
        !parse_memory_steps(j, value + 2, r) ||
        !parse_timeline(j, value[5], m)) {
        return false;
    }
    for (size_t i = 0; i < N_OF(number); i++) {
        if (!record_json_u64(j, record_field(key[6 + i]), value[6 + i],
                             number[i])) {
            return false;
        }
    }
    return record_json_u32(j, record_field("memory.new_channels"),
                           value[6 + N_OF(number)], UINT32_MAX,
                           &m->new_channels);
}

static bool parse_answers(struct record_json *j, const json_t *v,
                          struct record_rank *r)
{
    if (!record_json_array(j, record_field("answers"), v, 0, 1024)) {
        return false;
    }
    r->answer = record_json_room(j, json_array_size(v), sizeof(*r->answer));
    if (r->answer == NULL) {
        return false;
    }
    r->n_answers = (uint32_t)json_array_size(v);
    for (size_t i = 0; i < r->n_answers; i++) {
        const struct record_field at = record_element("answers", i);
        const json_t *const pair = json_array_get(v, i);

        if (!record_json_array(j, at, pair, 2, 2) ||
            !record_json_text(j, at, json_array_get(pair, 0), r->answer[i].name,
                              sizeof(r->answer[i].name)) ||
            !record_json_i32(j, at, json_array_get(pair, 1),
                             &r->answer[i].status)) {
            return false;
        }
    }
    return true;
}

static bool parse_head(struct record_json *j, json_t *const *v, uint32_t rank,
                       struct record_rank *r)
{
    uint32_t mine;

    if (!record_json_u32(j, record_field("rank"), v[1], UINT32_MAX, &mine) ||
        !record_json_i32(j, record_field("status"), v[2], &r->status) ||
        !parse_error(j, v[3], r)) {
        return false;
    }
    return mine == rank ||
           record_refuse(j, record_field("rank"), "%u in the file of rank %u",
                         mine, rank);
}

static bool parse_root(struct record_json *j, json_t *root,
                       const struct run_case *c, uint32_t rank,
                       struct record_rank *r, uint32_t *n_tensors)
{
    static const char *const key[] = {
        "version",        "rank",         "status",    "error",
        "losses",         "other_losses", "sequences", "shard_sequence",
        "step_sequences", "end_sequence", "memory",    "races",
        "answers",        "tensors",      "seconds",   "flights"};
    json_t *value[N_OF(key)];

    if (!record_json_version(j, root, RECORD_VERSION) ||
        !record_json_object(j, record_field("the file"), root, key, N_OF(key),
                            value) ||
        !parse_head(j, value, rank, r) || !parse_losses(j, c, value + 4, r) ||
        !parse_sequences(j, value[6], r) || !parse_steps(j, c, value + 7, r) ||
        !parse_memory(j, value[10], r) ||
        !record_races_parse(j, value[11], &r->races) ||
        !record_flights_parse(j, value[15], &r->flights) ||
        !parse_answers(j, value[12], r) ||
        !record_json_u32(j, record_field("tensors"), value[13], UINT32_MAX,
                         n_tensors)) {
        return false;
    }
    if (!json_is_number(value[14]) || !(json_number_value(value[14]) >= 0.0)) {
        return record_refuse(j, record_field("seconds"),
                             "a number from 0 was expected");
    }
    r->seconds = json_number_value(value[14]);
    return true;
}

int record_parse_rank(const char *text, size_t bytes, const char *file,
                      const struct run_case *c, uint32_t rank,
                      struct record_rank *out, uint32_t *n_tensors,
                      struct fsdp_error *error)
{
    struct record_json j = {.file = file, .error = error};
    json_t *const root = record_json_load(&j, text, bytes);

    *n_tensors = 0;
    if (root != NULL) {
        (void)parse_root(&j, root, c, rank, out, n_tensors);
        json_decref(root);
    }
    return j.status;
}
