/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_write.c - writes what one rank showed: rank-R.json and
 * rank-R.safetensors.
 */
#include "record/record_internal.h"

#include "checkpoint/safetensors.h"

#include <math.h>
#include <stdlib.h>

static const char where[] = "record_write";

static bool lacks_array(const struct record_rank *r)
{
    const struct record_memory *const m = &r->memory;

    return (r->n_losses != 0 && r->loss == NULL) ||
           (r->n_other_losses != 0 && r->other_loss == NULL) ||
           (r->n_sequences != 0 && r->sequence == NULL) ||
           (r->n_answers != 0 && r->answer == NULL) ||
           (r->flights.n != 0 && r->flights.flight == NULL) ||
           (r->n_tensors != 0 && r->tensor == NULL) ||
           (r->n_steps != 0 &&
            (r->step_sequence == NULL || m->after_step == NULL ||
             m->allocations == NULL || m->launches == NULL)) ||
           (m->n_moments != 0 && m->moment == NULL);
}

/* NULL, or what is wrong with arrays of r. */
static const char *check_rank(const struct record_rank *r)
{
    /* Before anything was communicated there is the empty sequence alone. */
    const uint32_t n_sequences = r->n_sequences != 0 ? r->n_sequences : 1;

    if (lacks_array(r)) {
        return "an array that has elements is NULL";
    }
    if (r->shard_sequence >= n_sequences || r->end_sequence >= n_sequences) {
        return "shard_sequence or end_sequence is no sequence";
    }
    for (uint32_t i = 0; i < r->n_steps; i++) {
        if (r->step_sequence[i] >= n_sequences) {
            return "a step_sequence is no sequence";
        }
    }
    for (uint32_t s = 0; s < r->n_sequences; s++) {
        if (r->sequence[s].n != 0 && r->sequence[s].c == NULL) {
            return "a sequence that has collectives is NULL";
        }
    }
    for (uint32_t i = 0; i < r->n_tensors; i++) {
        if (record_stage_name(r->tensor[i].stage) == NULL ||
            (r->tensor[i].n != 0 && r->tensor[i].data == NULL)) {
            return "a tensor of no stage, or without data";
        }
    }
    return NULL;
}

/* `per_line` to a line: those of a step. */
static void add_floats(struct record_text *t, const char *name, const float *x,
                       uint32_t n, uint32_t per_line)
{
    record_text_add(t, " \"%s\": [", name);
    for (uint32_t i = 0; i < n; i++) {
        record_text_add(t, "%s%s", i == 0 ? "" : ",",
                        i % per_line == 0 ? "\n  " : " ");
        record_text_float(t, x[i]);
    }
    record_text_add(t, "],\n");
}

static void add_error(struct record_text *t, const struct fsdp_error *e)
{
    if (e->status == FSDP_OK) {
        record_text_add(t, " \"error\": null,\n");
        return;
    }
    record_text_add(
        t,
        " \"error\": {\"status\": %d, \"rank\": %d, \"native\": %d, "
        "\"where\": ",
        e->status, e->rank, e->native);
    record_text_string(t, e->where, sizeof(e->where) - 1);
    record_text_add(t, ", \"message\": ");
    record_text_string(t, e->message, sizeof(e->message) - 1);
    record_text_add(t, "},\n");
}

static void add_collective(struct record_text *t,
                           const struct record_collective *c)
{
    record_text_add(t, "[");
    record_text_name(t, record_collective_name(c->kind), c->kind);
    record_text_add(t, ", ");
    record_text_name(t, record_dim_name(c->dim), c->dim);
    record_text_add(t, ", ");
    record_text_name(t, record_dtype_name(c->dtype), c->dtype);
    record_text_add(t, ", ");
    record_text_name(t, case_fold_name(c->fold), c->fold);
    record_text_add(t, ", %u, ", c->root);
    record_text_name(t, record_unit_name(c->unit), c->unit);
    record_text_add(t, ", ");
    record_text_u64(t, c->n);
    record_text_add(t, "]");
}

static void add_sequences(struct record_text *t, const struct record_rank *r)
{
    record_text_add(t, " \"sequences\": [");
    for (uint32_t s = 0; s < r->n_sequences; s++) {
        record_text_add(t, "%s\n  [", s == 0 ? "" : ",");
        for (uint32_t i = 0; i < r->sequence[s].n; i++) {
            record_text_add(t, "%s", i == 0 ? "" : ",\n   ");
            add_collective(t, &r->sequence[s].c[i]);
        }
        record_text_add(t, "]");
    }
    record_text_add(t, "%s", r->n_sequences == 0 ? "[]" : "");
    record_text_add(t, "],\n \"shard_sequence\": %u,\n \"step_sequences\": [",
                    r->shard_sequence);
    for (uint32_t i = 0; i < r->n_steps; i++) {
        record_text_add(t, "%s%u", i == 0 ? "" : ", ", r->step_sequence[i]);
    }
    record_text_add(t, "],\n \"end_sequence\": %u,\n", r->end_sequence);
}

static void add_numbers(struct record_text *t, const uint64_t *x, uint32_t n)
{
    record_text_add(t, "[");
    for (uint32_t i = 0; i < n; i++) {
        record_text_add(t, "%s", i == 0 ? "" : ", ");
        record_text_u64(t, x[i]);
    }
    record_text_add(t, "]");
}

static void add_timeline(struct record_text *t, const struct record_memory *m)
{
    record_text_add(t, ",\n  \"timeline\": [");
    for (uint32_t i = 0; i < m->n_moments; i++) {
        const struct record_moment *const x = &m->moment[i];

        record_text_add(t, "%s\n   [", i == 0 ? "" : ",");
        record_text_name(t, record_point_name(x->point), x->point);
        record_text_add(t, ", %u, ", x->module);
        add_numbers(t, x->live, FSDP_N_KINDS);
        record_text_add(t, "]");
    }
    record_text_add(t, "]");
}

static void add_memory(struct record_text *t, const struct record_rank *r)
{
    const struct record_memory *const m = &r->memory;
    const struct {
        const char *name;
        uint64_t x;
    } number[] = {
        {"peak_parameters", m->peak_parameters},
        {"peak_engine", m->peak_engine},
        {"peak_storage", m->peak_storage},
        {"peak_live_over_storage", m->peak_live_over_storage},
        {"dirty_padding", m->dirty_padding},
        {"misplaced", m->misplaced},
        {"bad_ranges", m->bad_ranges},
        {"left_live", m->left_live},
        {"left_storage", m->left_storage},
        {"process_growth", m->process_growth},
        {"new_channels", m->new_channels},
    };

    record_text_add(t, " \"memory\": {\n  \"peak\": ");
    add_numbers(t, m->peak, FSDP_N_KINDS);
    for (size_t i = 0; i < sizeof(number) / sizeof(number[0]); i++) {
        record_text_add(t, ",\n  \"%s\": ", number[i].name);
        record_text_u64(t, number[i].x);
    }
    record_text_add(t, ",\n  \"after_shard\": ");
    add_numbers(t, m->after_shard.live, FSDP_N_KINDS);
    record_text_add(t, ",\n  \"after_step\": [");
    for (uint32_t i = 0; i < r->n_steps; i++) {
        record_text_add(t, "%s\n   ", i == 0 ? "" : ",");
        add_numbers(t, m->after_step[i].live, FSDP_N_KINDS);
    }
    record_text_add(t, "],\n  \"allocations\": ");
    add_numbers(t, m->allocations, r->n_steps);
    record_text_add(t, ",\n  \"launches\": ");
    add_numbers(t, m->launches, r->n_steps);
    add_timeline(t, m);
    record_text_add(t, "},\n");
}

static void add_answers(struct record_text *t, const struct record_rank *r)
{
    record_text_add(t, " \"answers\": [");
    for (uint32_t i = 0; i < r->n_answers; i++) {
        record_text_add(t, "%s\n  [", i == 0 ? "" : ",");
        record_text_string(t, r->answer[i].name, sizeof(r->answer[i].name) - 1);
        record_text_add(t, ", %d]", r->answer[i].status);
    }
    record_text_add(t, "],\n");
}

static int write_text(const char *directory, uint32_t rank,
                      const struct record_rank *r, struct fsdp_error *error)
{
    const bool even = r->n_steps != 0 && r->n_losses % r->n_steps == 0 &&
                      r->n_losses >= r->n_steps;
    char path[RECORD_PATH_BYTES];
    struct record_text t = {0};

    FSDP_TRY(record_rank_path(path, directory, rank, ".json", error));
    record_text_add(&t,
                    "{\n \"version\": %d,\n \"rank\": %u,\n"
                    " \"status\": %d,\n",
                    RECORD_VERSION, rank, r->status);
    add_error(&t, &r->error);
    add_floats(&t, "losses", r->loss, r->n_losses,
               even ? r->n_losses / r->n_steps : 1);
    add_floats(&t, "other_losses", r->other_loss, r->n_other_losses, 1);
    add_sequences(&t, r);
    add_memory(&t, r);
    record_races_add(&t, &r->races);
    record_flights_add(&t, &r->flights);
    add_answers(&t, r);
    record_text_add(
        &t, " \"tensors\": %u,\n \"seconds\": %.17g\n}\n", r->n_tensors,
        isfinite(r->seconds) && r->seconds > 0.0 ? r->seconds : 0.0);
    return record_text_save(&t, path, error);
}

static int write_tensors(const char *directory, uint32_t rank,
                         const struct record_rank *r, struct fsdp_error *error)
{
    static const struct safetensors_meta meta = {"record-version", "1"};
    const size_t n = r->n_tensors;
    char path[RECORD_PATH_BYTES];
    char why[200] = "";
    char(*name)[RECORD_TENSOR_NAME_BYTES];
    struct safetensors_tensor *t;
    int status;

    FSDP_TRY(record_rank_path(path, directory, rank, ".safetensors", error));
    name = calloc(n + 1, sizeof(*name));
    t = calloc(n + 1, sizeof(*t));
    if (name == NULL || t == NULL) {
        status = record_fail(error, FSDP_ERR_NOMEM, where,
                             "%.150s: out of memory", path);
    } else {
        for (size_t i = 0; i < n; i++) {
            record_tensor_name(&r->tensor[i], name[i]);
            t[i] = (struct safetensors_tensor){
                .name = name[i],
                .dtype = "F32",
                .n_dims = 1,
                .shape = {r->tensor[i].n},
                .data = r->tensor[i].data,
                .bytes = r->tensor[i].n * sizeof(float),
            };
        }
        status =
            safetensors_write(path, t, n, &meta, 1, false, why, sizeof(why));
        if (status != FSDP_OK) {
            (void)record_fail(error, status, where, "%s", why);
        }
    }
    free(name);
    free(t);
    return status;
}

int record_write_rank(const char *directory, uint32_t rank,
                      const struct record_rank *r, struct fsdp_error *error)
{
    const char *const wrong = check_rank(r);

    if (wrong != NULL) {
        return record_fail(error, FSDP_ERR_INVALID, where, "rank %u: %s", rank,
                           wrong);
    }
    FSDP_TRY(record_make_directory(directory, error));
    FSDP_TRY(write_tensors(directory, rank, r, error));
    return write_text(directory, rank, r, error);
}
