/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trial.c - runs the engine, then the baselines, and judges.
 */
#include "cli/play/trial.h"

#include "cli/play/run_cases.h"
#include "cli/verdict/records_folder.h"
#include "run/supervise.h"

#include <time.h>

static int run_all(const struct trial *t, const struct case_list *cases,
                   const char *records)
{
    struct supervise_engine said = {.known = false};
    struct fsdp_error error = {0};
    struct supervise_job job = arguments_job(t->a);

    job.cases = cases->c;
    job.n_cases = cases->n;
    job.records = records;
    job.engine = t->engine;
    FSDP_TRY(t->a->adapter ? run_cases_by_adapter(t->a, cases, t->text, records,
                                                  NULL, NULL, &error)
                           : supervise(&job, &said, &error));
    return supervise_baselines(&job, cases, &error);
}

int trial_judge(const struct trial *t, const struct case_list *cases,
                struct judge_result *out)
{
    struct folder folder;
    struct fsdp_error error = {0};
    struct evaluate_input e = {.cases = cases, .text = t->text};
    int status = folder_open_temporary(cases, 1, &folder, &error);

    if (status == FSDP_OK) {
        status = run_all(t, cases, folder.path);
    }
    if (status == FSDP_OK) {
        e.records = folder.path;
        status = evaluate_records(&e, out, &error);
    }
    folder_close(&folder);
    return status;
}

double trial_now(void)
{
    struct timespec t = {0};

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
