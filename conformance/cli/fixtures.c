/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixtures.c - which cases the golden data have, and how they are made.
 */
#include "cli/fixtures.h"

#include "cases/manifest_axes.h"
#include "cli/folder.h"
#include "record/record_internal.h"
#include "run/adapter_case.h"
#include "run/case_record.h"
#include "run/supervise.h"

#include <stdio.h>
#include <string.h>

static int add(struct case_list *list, const char *workload, const char *size,
               uint32_t data, uint32_t strategy, struct manifest_world world,
               uint32_t layout)
{
    struct run_case c;

    manifest_start(workload, size, data, strategy, world, &c);
    c.layout = layout;
    /* One that accumulates at each second rank count, momentum at others. */
    if (world.ranks % 2 == 0) {
        c.microbatches = 2;
        c.sync[0] = 0;
        c.sync[1] = 1;
    } else if (data == WORKLOAD_NATURAL) {
        c.optimizer = FSDP_OPTIMIZER_MOMENTUM;
    }
    if (strcmp(workload, "gpt") == 0) {
        c.wrap = CASE_WRAP_BLOCK;
        c.steps = 2;
        c.recorded_steps = 1;
    }
    manifest_numbers(&c);
    return manifest_add(list, &c);
}

static int add_layout(struct case_list *list, uint32_t layout)
{
    for (uint32_t k = 1; k <= 4; k++) {
        const struct manifest_world world = {k, 0};

        for (uint32_t s = CASE_FULL_SHARD; s <= CASE_NO_SHARD; s++) {
            FSDP_TRY(
                add(list, "mlp", "odd", WORKLOAD_NATURAL, s, world, layout));
        }
        FSDP_TRY(add(list, "linear", "tiny", WORKLOAD_EXACT, CASE_FULL_SHARD,
                     world, layout));
    }
    for (uint32_t s = CASE_HYBRID_SHARD; s <= CASE_HYBRID_SHARD_ZERO2; s++) {
        FSDP_TRY(add(list, "mlp", "odd", WORKLOAD_NATURAL, s,
                     (struct manifest_world){4, 2}, layout));
    }
    return FSDP_OK;
}

/* One that clips, and has a record of each norm. */
static int add_clip(struct case_list *list)
{
    const struct manifest_world world = {2, 0};
    struct run_case c;

    manifest_start("mlp", "odd", WORKLOAD_NATURAL, CASE_FULL_SHARD, world, &c);
    c.scenario = CASE_CLIP;
    c.recorded_steps = c.steps;
    return manifest_add(list, &c);
}

int fixtures_cases(struct case_list *out)
{
    int status;

    memset(out, 0, sizeof(*out));
    status = add_layout(out, FSDP_LAYOUT_FLAT);
    if (status == FSDP_OK) {
        status = add_layout(out, FSDP_LAYOUT_PER_PARAMETER);
    }
    if (status == FSDP_OK) {
        status = add(out, "gpt", "odd", WORKLOAD_NATURAL, CASE_FULL_SHARD,
                     (struct manifest_world){3, 0}, FSDP_LAYOUT_FLAT);
    }
    if (status == FSDP_OK) {
        status = add_clip(out);
    }
    if (status != FSDP_OK) {
        manifest_release(out);
    }
    return status;
}

/* What differs from machine to machine and from run to run is no part of it. */
static int settle(const char *folder, struct fsdp_error *error)
{
    struct record r;
    int status = record_read(folder, &r, error);

    for (uint32_t k = 0; k < r.n_ranks && status == FSDP_OK; k++) {
        r.rank[k].seconds = 0.0;
        r.rank[k].memory.process_growth = 0;
        r.rank[k].memory.new_channels = 0;
        status = record_write_rank(folder, k, &r.rank[k], error);
    }
    record_release(&r);
    return status;
}

static int settle_all(const char *records, const struct case_list *cases,
                      bool baseline, struct fsdp_error *error)
{
    char folder[CASE_FOLDER_BYTES];

    for (uint32_t i = 0; i < cases->n; i++) {
        case_folder(records, &cases->c[i], baseline, folder);
        FSDP_TRY(settle(folder, error));
    }
    return FSDP_OK;
}

static int run_all(const char *records, const struct case_list *cases,
                   const char *engine, uint32_t n_workers,
                   struct fsdp_error *error)
{
    struct supervise_engine said = {.known = false};
    const struct supervise_job job = {.cases = cases->c,
                                      .n_cases = cases->n,
                                      .records = records,
                                      .engine = engine,
                                      .world = WORLD_LOCAL,
                                      .timeout_ms = 60000,
                                      .n_workers = n_workers};

    FSDP_TRY(supervise(&job, &said, error));
    return settle_all(records, cases, strcmp(engine, "unsharded") == 0, error);
}

int fixtures_write(const char *folder, const struct case_list *cases,
                   const struct text *text, uint32_t n_workers,
                   struct fsdp_error *error)
{
    char path[RECORD_PATH_BYTES];
    char id[CASE_ID_BYTES];
    char one[RECORD_PATH_BYTES];
    struct folder records = {.temporary = false};
    struct case_list baselines;
    int status;

    FSDP_TRY(record_make_directory(folder, error));
    FSDP_TRY(record_path(path, folder, "cases", error));
    FSDP_TRY(record_make_directory(path, error));
    for (uint32_t i = 0; i < cases->n; i++) {
        case_id(&cases->c[i], id);
        FSDP_TRY(record_path(one, path, id, error));
        FSDP_TRY(adapter_case_write(one, &cases->c[i], text, error));
    }
    FSDP_TRY(record_path(path, folder, "records", error));
    FSDP_TRY(folder_open(path, &records, error));
    FSDP_TRY(run_all(path, cases, "ref", n_workers, error));
    FSDP_TRY(case_baselines(cases, &baselines));
    status = run_all(path, &baselines, "unsharded", n_workers, error);
    manifest_release(&baselines);
    folder_sweep(&records);
    return status;
}
