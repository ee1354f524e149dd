/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_parse_case.c - reads the text of case.json: which case, which engine,
 * and how its ranks ended.
 */
#include "record/record_internal.h"

#include <stdlib.h>
#include <string.h>

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

static bool parse_sync(struct record_json *j, const json_t *v,
                       struct run_case *c)
{
    char text[CASE_MAX_MICROBATCHES + 1];

    if (!record_json_text(j, record_field("case.sync"), v, text,
                          sizeof(text))) {
        return false;
    }
    while (text[c->microbatches] != '\0') {
        const char s = text[c->microbatches];

        if (s != 's' && s != 'n') {
            return record_refuse(j, record_field("case.sync"),
                                 "letters s and n were expected");
        }
        c->sync[c->microbatches++] = s == 's';
    }
    return true;
}

static bool parse_names(struct record_json *j, json_t *const *v,
                        struct run_case *c)
{
    const struct {
        const char *field;
        const char *(*name)(uint32_t);
        uint32_t *out;
    } names[] = {
        {"case.data", case_data_name, &c->data},
        {"case.scenario", case_scenario_name, &c->scenario},
        {"case.strategy", case_strategy_name, &c->strategy},
        {"case.layout", case_layout_name, &c->layout},
        {"case.wrap", case_wrap_name, &c->wrap},
        {"case.fold", case_fold_name, &c->fold},
        {"case.optimizer", case_optimizer_name, &c->optimizer},
    };

    for (size_t i = 0; i < N_OF(names); i++) {
        if (!record_json_name(j, record_field(names[i].field), v[i],
                              names[i].name, false, names[i].out)) {
            return false;
        }
    }
    return true;
}

static bool parse_numbers(struct record_json *j, json_t *const *v,
                          struct run_case *c)
{
    const struct {
        const char *field;
        uint32_t *out;
    } numbers[] = {
        {"case.ranks", &c->ranks},
        {"case.replicas", &c->replicas},
        {"case.grains", &c->grains},
        {"case.prefetch_forward", &c->prefetch_forward},
        {"case.prefetch_backward", &c->prefetch_backward},
        {"case.reduces_in_flight", &c->reduces_in_flight},
        {"case.steps", &c->steps},
        {"case.recorded_steps", &c->recorded_steps},
    };

    for (size_t i = 0; i < N_OF(numbers); i++) {
        if (!record_json_u32(j, record_field(numbers[i].field), v[i],
                             UINT32_MAX, numbers[i].out)) {
            return false;
        }
    }
    return true;
}

static bool parse_run_case(struct record_json *j, json_t *v, struct run_case *c)
{
    static const char *const key[] = {"data",
                                      "scenario",
                                      "strategy",
                                      "layout",
                                      "wrap",
                                      "fold",
                                      "optimizer",
                                      "ranks",
                                      "replicas",
                                      "grains",
                                      "prefetch_forward",
                                      "prefetch_backward",
                                      "reduces_in_flight",
                                      "steps",
                                      "recorded_steps",
                                      "workload",
                                      "size",
                                      "seed",
                                      "keep_root",
                                      "sync",
                                      "lr",
                                      "weight_decay",
                                      "divide_factor"};
    json_t *value[N_OF(key)];
    const char *wrong;

    memset(c, 0, sizeof(*c));
    if (!record_json_object(j, record_field("case"), v, key, N_OF(key),
                            value) ||
        !parse_names(j, value, c) || !parse_numbers(j, value + 7, c) ||
        !record_json_text(j, record_field("case.workload"), value[15],
                          c->workload, sizeof(c->workload)) ||
        !record_json_text(j, record_field("case.size"), value[16], c->size,
                          sizeof(c->size)) ||
        !record_json_u64(j, record_field("case.seed"), value[17], &c->seed) ||
        !record_json_flag(j, record_field("case.keep_root"), value[18],
                          &c->keep_root) ||
        !parse_sync(j, value[19], c) ||
        !record_json_real(j, record_field("case.lr"), value[20], &c->lr) ||
        !record_json_real(j, record_field("case.weight_decay"), value[21],
                          &c->weight_decay) ||
        !record_json_real(j, record_field("case.divide_factor"), value[22],
                          &c->divide_factor)) {
        return false;
    }
    wrong = case_check(c);
    return wrong == NULL || record_refuse(j, record_field("case"), "%s", wrong);
}

static bool parse_claims(struct record_json *j, const json_t *v,
                         struct record *r)
{
    if (!record_json_array(j, record_field("claims"), v, 0,
                           RECORD_MAX_CLAIMS)) {
        return false;
    }
    r->claim = record_json_room(j, json_array_size(v), sizeof(*r->claim));
    if (r->claim == NULL) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(v); i++) {
        if (!record_json_text(j, record_element("claims", i),
                              json_array_get(v, i), r->claim[i],
                              sizeof(r->claim[i]))) {
            return false;
        }
        r->n_claims++;
    }
    return true;
}

static bool parse_end(struct record_json *j, size_t i, json_t *v,
                      struct record_rank *r)
{
    static const char *const key[] = {
        "end",           "exit_status", "signal",   "collectives",
        "in_collective", "last_kind",   "last_unit"};
    const struct record_field at = record_element("ranks", i);
    json_t *value[N_OF(key)];

    return record_json_object(j, at, v, key, N_OF(key), value) &&
           record_json_name(j, at, value[0], record_end_name, false, &r->end) &&
           record_json_i32(j, at, value[1], &r->exit_status) &&
           record_json_u32(j, at, value[2], 255, &r->signal) &&
           record_json_u64(j, at, value[3], &r->n_collectives) &&
           record_json_flag(j, at, value[4], &r->in_collective) &&
           record_json_name(j, at, value[5], record_collective_name, true,
                            &r->last_kind) &&
           record_json_name(j, at, value[6], record_unit_name, true,
                            &r->last_unit);
}

static bool parse_ends(struct record_json *j, const json_t *v, struct record *r)
{
    if (!record_json_array(j, record_field("ranks"), v, r->c.ranks,
                           r->c.ranks)) {
        return false;
    }
    r->rank = record_json_room(j, r->c.ranks, sizeof(*r->rank));
    if (r->rank == NULL) {
        return false;
    }
    r->n_ranks = r->c.ranks;
    for (uint32_t i = 0; i < r->n_ranks; i++) {
        if (!parse_end(j, i, json_array_get(v, i), &r->rank[i])) {
            return false;
        }
    }
    return true;
}

static bool parse_root(struct record_json *j, json_t *root, struct record *r)
{
    static const char *const key[] = {
        "version",        "id",     "case",  "engine",
        "engine_version", "claims", "world", "ranks"};
    json_t *value[N_OF(key)];
    char id[CASE_ID_BYTES];

    if (!record_json_version(j, root, RECORD_VERSION) ||
        !record_json_object(j, record_field("the file"), root, key, N_OF(key),
                            value)) {
        return false;
    }
    if (!parse_run_case(j, value[2], &r->c) ||
        !record_json_text(j, record_field("id"), value[1], r->id,
                          sizeof(r->id))) {
        return false;
    }
    case_id(&r->c, id);
    if (strcmp(id, r->id) != 0) {
        return record_refuse(j, record_field("id"), "the case's is %.100s", id);
    }
    return record_json_text(j, record_field("engine"), value[3], r->engine,
                            sizeof(r->engine)) &&
           record_json_text(j, record_field("engine_version"), value[4],
                            r->engine_version, sizeof(r->engine_version)) &&
           parse_claims(j, value[5], r) &&
           record_json_text(j, record_field("world"), value[6], r->world,
                            sizeof(r->world)) &&
           parse_ends(j, value[7], r);
}

int record_parse_case(const char *text, size_t bytes, const char *file,
                      struct record *out, struct fsdp_error *error)
{
    struct record_json j = {.file = file, .error = error};
    json_t *const root = record_json_load(&j, text, bytes);

    memset(out, 0, sizeof(*out));
    if (root != NULL) {
        (void)parse_root(&j, root, out);
        json_decref(root);
    }
    return j.status;
}
