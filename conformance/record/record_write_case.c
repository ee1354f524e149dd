/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_write_case.c - writes case.json: which case, which engine, and how
 * its ranks ended.
 */
#include "record/record_internal.h"

#include <string.h>

static const char where[] = "record_write";

static void add_float_text(struct record_text *t, const char *name, float x)
{
    char text[CASE_FLOAT_BYTES];

    case_float_text(x, text);
    record_text_add(t, "  \"%s\": %s,\n", name, text);
}

void record_text_case(struct record_text *t, const struct run_case *c)
{
    char sync[CASE_MAX_MICROBATCHES + 1];

    case_sync_text(c, sync);
    record_text_add(t,
                    " \"case\": {\n  \"workload\": \"%s\",\n"
                    "  \"size\": \"%s\",\n  \"data\": \"%s\",\n"
                    "  \"scenario\": \"%s\",\n  \"seed\": ",
                    c->workload, c->size, case_data_name(c->data),
                    case_scenario_name(c->scenario));
    record_text_u64(t, c->seed);
    record_text_add(t,
                    ",\n  \"strategy\": \"%s\",\n  \"ranks\": %u,\n"
                    "  \"replicas\": %u,\n  \"layout\": \"%s\",\n"
                    "  \"wrap\": \"%s\",\n  \"fold\": \"%s\",\n"
                    "  \"grains\": %u,\n  \"keep_root\": %s,\n"
                    "  \"sync\": \"%s\",\n  \"optimizer\": \"%s\",\n",
                    case_strategy_name(c->strategy), c->ranks, c->replicas,
                    case_layout_name(c->layout), case_wrap_name(c->wrap),
                    case_fold_name(c->fold), c->grains,
                    c->keep_root != 0 ? "true" : "false", sync,
                    case_optimizer_name(c->optimizer));
    add_float_text(t, "lr", c->lr);
    add_float_text(t, "weight_decay", c->weight_decay);
    add_float_text(t, "divide_factor", c->divide_factor);
    record_text_add(t,
                    "  \"prefetch_forward\": %u,\n"
                    "  \"prefetch_backward\": %u,\n"
                    "  \"reduces_in_flight\": %u,\n  \"steps\": %u,\n"
                    "  \"recorded_steps\": %u},\n",
                    c->prefetch_forward, c->prefetch_backward,
                    c->reduces_in_flight, c->steps, c->recorded_steps);
}

static void add_end(struct record_text *t, const struct record_rank *r)
{
    record_text_add(t, "{\"end\": ");
    record_text_name(t, record_end_name(r->end), r->end);
    record_text_add(t,
                    ", \"exit_status\": %d, \"signal\": %u, "
                    "\"collectives\": ",
                    r->exit_status, r->signal);
    record_text_u64(t, r->n_collectives);
    record_text_add(t, ", \"in_collective\": %s, \"last_kind\": ",
                    r->in_collective != 0 ? "true" : "false");
    record_text_name(t, record_collective_name(r->last_kind), r->last_kind);
    record_text_add(t, ", \"last_unit\": ");
    record_text_name(t, record_unit_name(r->last_unit), r->last_unit);
    record_text_add(t, "}");
}

static void add_head(struct record_text *t, const struct record *r)
{
    char id[CASE_ID_BYTES];

    case_id(&r->c, id);
    record_text_add(t,
                    "{\n \"version\": %d,\n \"id\": \"%s\",\n"
                    " \"engine\": ",
                    RECORD_VERSION, id);
    record_text_string(t, r->engine, sizeof(r->engine) - 1);
    record_text_add(t, ",\n \"engine_version\": ");
    record_text_string(t, r->engine_version, sizeof(r->engine_version) - 1);
    record_text_add(t, ",\n \"world\": ");
    record_text_string(t, r->world, sizeof(r->world) - 1);
    record_text_add(t, ",\n \"claims\": [");
    for (uint32_t i = 0; i < r->n_claims; i++) {
        record_text_add(t, "%s", i == 0 ? "" : ", ");
        record_text_string(t, r->claim[i], sizeof(r->claim[i]) - 1);
    }
    record_text_add(t, "],\n");
}

int record_write_case(const char *directory, const struct record *r,
                      struct fsdp_error *error)
{
    const char *wrong = case_check(&r->c);
    char path[RECORD_PATH_BYTES];
    struct record_text t = {0};

    if (wrong == NULL && r->n_ranks != r->c.ranks) {
        wrong = "the record has another number of ranks than its case";
    }
    if (wrong == NULL && (r->rank == NULL || r->n_claims > RECORD_MAX_CLAIMS ||
                          (r->n_claims != 0 && r->claim == NULL))) {
        wrong = "the record has no ranks, or too many claims, or none";
    }
    for (uint32_t i = 0; wrong == NULL && i < r->n_ranks; i++) {
        if (record_end_name(r->rank[i].end) == NULL ||
            r->rank[i].signal > 255) {
            wrong = "a rank's end or signal is not in its list";
        }
    }
    if (wrong != NULL) {
        return record_fail(error, FSDP_ERR_INVALID, where, "%s", wrong);
    }
    FSDP_TRY(record_make_directory(directory, error));
    FSDP_TRY(record_path(path, directory, "case.json", error));
    add_head(&t, r);
    record_text_case(&t, &r->c);
    record_text_add(&t, " \"ranks\": [");
    for (uint32_t i = 0; i < r->n_ranks; i++) {
        record_text_add(&t, "%s\n  ", i == 0 ? "" : ",");
        add_end(&t, &r->rank[i]);
    }
    record_text_add(&t, "]\n}\n");
    return record_text_save(&t, path, error);
}
