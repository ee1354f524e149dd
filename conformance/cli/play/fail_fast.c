/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fail_fast.c - judges each batch by itself. Requirements that compare it with
 * cases of another batch are left to the judgement of all cases at the end.
 */
#include "cli/play/fail_fast.h"
#include "judge/report/progress.h"
#include "run/worker/case_record.h"

#include <stdio.h>
#include <unistd.h>

/* Whether the unsharded run of a case is still to be made. */
static bool lacks_baseline(const char *baselines, const struct run_case *c)
{
    struct run_case copy = *c;
    const struct case_list one = {&copy, 1};
    struct case_list its = {NULL, 0};
    char folder[CASE_FOLDER_BYTES];
    char file[CASE_FOLDER_BYTES + 16];
    bool lacks = case_baselines(&one, &its) != FSDP_OK;

    for (uint32_t i = 0; i < its.n; i++) {
        case_folder(baselines, &its.c[i], true, folder);
        snprintf(file, sizeof(file), "%s/case.json", folder);
        lacks = lacks || access(file, R_OK) != 0;
    }
    manifest_release(&its);
    return lacks;
}

/* Makes the baselines and seals them as well, since engines run afterwards. */
static int make_baselines(const struct supervise_job *job,
                          const struct evaluate_input *e,
                          const struct case_list *batch,
                          struct fsdp_error *error)
{
    struct supervise_job own = *job;
    struct case_list missing = {NULL, 0};
    int status = FSDP_OK;

    own.records = e->baselines;
    own.title = NULL;
    for (uint32_t i = 0; i < batch->n && status == FSDP_OK; i++) {
        if (lacks_baseline(e->baselines, &batch->c[i])) {
            status = case_list_add(&missing, &batch->c[i]);
        }
    }
    if (status == FSDP_OK && missing.n) {
        status = supervise_baselines(&own, &missing, error);
    }
    manifest_release(&missing);
    return status;
}

static int judge_batch(const struct evaluate_input *e,
                       const struct case_list *batch, bool *failed,
                       struct fsdp_error *error)
{
    struct evaluate_input own = *e;
    struct judge_result r = {.n_cases = 0};
    int status;

    own.cases = batch;
    own.partly = false;
    status = evaluate_records(&own, &r, error);
    *failed = status == FSDP_OK && r.verdict == JUDGE_NON_CONFORMANT;
    if (status == FSDP_OK) {
        judge_release(&r);
    }
    return status;
}

int fail_fast(const struct supervise_job *job, struct evaluate_input *e,
              struct supervise_engine *said, struct fsdp_error *error)
{
    const uint32_t most =
        job->world == WORLD_MPI || !job->n_workers ? 1 : job->n_workers;
    struct supervise_job own = *job;
    struct progress progress;
    int status = FSDP_OK;

    own.title = NULL;
    progress_begin(&progress, job->title ? job->title : "", "cases",
                   e->cases->n, !job->title);
    for (uint32_t i = 0; i < e->cases->n && status == FSDP_OK && !e->stopped;
         i += most) {
        const uint32_t left = e->cases->n - i;
        const struct case_list batch = {e->cases->c + i,
                                        left < most ? left : most};
        bool failed = false;

        own.cases = batch.c;
        own.n_cases = batch.n;
        status = supervise(&own, said, error);
        if (status == FSDP_OK) {
            status = make_baselines(job, e, &batch, error);
        }
        if (status == FSDP_OK) {
            status = judge_batch(e, &batch, &failed, error);
        }
        if (failed) {
            e->stopped = "stopped at the first failure";
        }
        if (status == FSDP_OK) {
            progress_add(&progress, batch.n, failed ? 1 : 0);
        }
    }
    progress_end(&progress);
    return status;
}
