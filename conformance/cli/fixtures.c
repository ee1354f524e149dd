/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixtures.c - makes the golden data.
 */
#include "cli/fixtures.h"

#include "cli/verdict/records_folder.h"
#include "record/record_internal.h"
#include "run/adapter_case.h"
#include "run/supervise.h"
#include "run/worker/case_record.h"

#include <stdio.h>
#include <string.h>

/* Removes from a record what differs from machine to machine and from run to
 * run. */
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
                   const char *engine, uint32_t n_workers, bool quiet,
                   struct fsdp_error *error)
{
    struct supervise_engine said = {.known = false};
    const struct supervise_job job = {.cases = cases->c,
                                      .n_cases = cases->n,
                                      .records = records,
                                      .engine = engine,
                                      .world = WORLD_LOCAL,
                                      .timeout_ms = 60000,
                                      .n_workers = n_workers,
                                      .title = quiet ? NULL : engine};

    FSDP_TRY(supervise(&job, &said, error));
    return settle_all(records, cases, strcmp(engine, "unsharded") == 0, error);
}

int fixtures_write(const char *folder, const struct case_list *cases,
                   const struct text *text, uint32_t n_workers, bool quiet,
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
    FSDP_TRY(run_all(path, cases, "ref", n_workers, quiet, error));
    FSDP_TRY(case_baselines(cases, &baselines));
    status = run_all(path, &baselines, "unsharded", n_workers, quiet, error);
    manifest_release(&baselines);
    folder_sweep(&records);
    return status;
}
