/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_cases.c - has the engines or the adapter play the cases of a run, in
 * order, after earlier records were cleared.
 */
#include "cli/play/run_cases.h"
#include "cases/case_claims.h"
#include "cli/play/fail_fast.h"
#include "cli/play/isolation.h"
#include "run/adapter.h"
#include "run/supervise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int run_cases_say(const struct fsdp_error *error, int status)
{
    evaluate_say(error, status);
    return status == FSDP_ERR_INVALID ? EXIT_USAGE
           : status == FSDP_ERR_IO    ? EXIT_OUTPUT
                                      : EXIT_INCOMPLETE;
}

/* An adapter starts a program of its own, and often a slow one: it may be
 * silent for ten times as long as one of our cases. */
int run_cases_by_adapter(const struct arguments *a,
                         const struct case_list *cases, const struct text *text,
                         const char *records,
                         const struct adapter_claims *claims,
                         struct case_list *claimed, struct fsdp_error *error)
{
    struct case_list all = {NULL, 0};
    const struct adapter_job job = {.command = a->adapter,
                                    .records = records,
                                    .cases = cases,
                                    .text = text,
                                    .timeout_ms = a->timeout_ms * 10,
                                    .quiet = a->quiet || !claimed,
                                    .claims = claims,
                                    .claimed = claimed ? claimed : &all};
    const int status = adapter_run(&job, error);

    if (status == FSDP_OK && claimed) {
        isolation_tell(a);
    }
    manifest_release(&all);
    return status;
}

/* Leaves out the engines from i on: the run was stopped before them. */
static void leave_out(struct engine_folders *engines, uint32_t i)
{
    for (uint32_t k = i; k < engines->n; k++) {
        fprintf(stderr, "fsdp-cts: %s was not run\n", engines->of[k].engine);
    }
    engines->n = i < engines->n ? i : engines->n;
}

/* Whether the engine claims all that a case needs; also true if it ended before
 * it said what it claims. */
static bool claims_case(const struct supervise_engine *said,
                        const struct run_case *c)
{
    const char *list[CASE_MAX_CLAIMS];
    const uint32_t n = case_claims(c, list);
    char padded[sizeof(said->claims) + 2];
    char word[64];

    snprintf(padded, sizeof(padded), " %s ", said->claims);
    for (uint32_t i = 0; i < n && said->known; i++) {
        snprintf(word, sizeof(word), " %s ", list[i]);
        if (!strstr(padded, word)) {
            return false;
        }
    }
    return true;
}

/* Marks the cases that the engine claims: claimed[cases->n]. */
static void mark_claimed(const struct supervise_engine *said,
                         const struct case_list *cases, bool *claimed)
{
    for (uint32_t i = 0; i < cases->n; i++) {
        claimed[i] = claimed[i] || claims_case(said, &cases->c[i]);
    }
}

/* Runs the engines; claimed[e->cases->n]: for each case, whether some engine
 * claims it. */
static int run_engines(const struct arguments *a,
                       struct engine_folders *engines, struct evaluate_input *e,
                       bool *claimed, struct seals *seals, struct times *times,
                       struct fsdp_error *error)
{
    struct supervise_job job = arguments_job(a);
    int status = FSDP_OK;

    job.sealed = e->baselines;
    job.seals = seals;
    job.cases = e->cases->c;
    job.n_cases = e->cases->n;
    job.tells = true;
    job.cleared = true;

    for (uint32_t i = 0; i < engines->n && status == FSDP_OK && !e->stopped;
         i++) {
        const struct times_span began = times_now();
        struct supervise_engine said = {.known = false};

        job.records = engines->of[i].records;
        job.engine = engines->of[i].engine;
        job.title = a->quiet || a->debug ? NULL : job.engine;
        e->records = job.records;
        status = a->fail_fast ? fail_fast(&job, e, &said, error)
                              : supervise(&job, &said, error);
        if (i == 0 && said.known) {
            isolation_tell(a);
        }
        isolation_tell_engine(&job, &said);
        mark_claimed(&said, e->cases, claimed);
        times_note(times, "record", job.engine, began);
        times_note_launch(times, job.engine, said.launch_seconds);
        if (e->stopped || supervise_interrupted()) {
            leave_out(engines, i + 1);
        }
    }
    return status;
}

/* Removes all records of an earlier run, also those of cases that this one may
 * not reach. */
static int clear_all(const struct engine_folders *engines,
                     const struct evaluate_input *e, struct fsdp_error *error)
{
    struct case_list baselines = {NULL, 0};
    int status = case_baselines(e->cases, &baselines);

    if (status == FSDP_OK) {
        status = supervise_clear(e->baselines, baselines.c, baselines.n, true,
                                 error);
    }
    for (uint32_t i = 0; i < engines->n && status == FSDP_OK; i++) {
        status = supervise_clear(engines->of[i].records, e->cases->c,
                                 e->cases->n, false, error);
    }
    manifest_release(&baselines);
    return status;
}

static int run_baselines(const struct arguments *a,
                         const struct evaluate_input *e,
                         const struct case_list *cases, struct times *times,
                         struct fsdp_error *error)
{
    const struct times_span began = times_now();
    struct supervise_job job = arguments_job(a);
    int status;

    job.records = e->baselines;
    job.title = a->quiet ? NULL : "baseline";
    job.cleared = true;
    status = supervise_baselines(&job, cases, error);
    times_note(times, "baseline", "", began);
    return status;
}

/* Plays the cases by the engines, and finds those that some engine claims: only
 * these are compared with unsharded runs. But if records are only kept, the
 * runs of all cases are made, since records made elsewhere may be compared with
 * them. */
static int play_by_engines(const struct arguments *a,
                           struct engine_folders *engines,
                           struct evaluate_input *e, struct case_list *claimed,
                           struct seals *seals, struct times *times,
                           struct fsdp_error *error)
{
    bool *marked = calloc(e->cases->n + 1u, sizeof(*marked));
    int status = marked ? FSDP_OK : FSDP_ERR_NOMEM;

    if (status == FSDP_OK) {
        status = run_engines(a, engines, e, marked, seals, times, error);
    }
    for (uint32_t i = 0; i < e->cases->n && status == FSDP_OK; i++) {
        if (marked[i] || a->record_only) {
            status = case_list_add(claimed, &e->cases->c[i]);
        }
    }
    free(marked);
    return status;
}

int run_cases(const struct arguments *a, struct engine_folders *engines,
              struct evaluate_input *e, struct times *times)
{
    struct case_list claimed = {NULL, 0};
    struct seals seals = {NULL, 0};
    struct fsdp_error error = {0};
    struct times_span began = times_now();
    int status = clear_all(engines, e, &error);

    if (status == FSDP_ERR_ABORTED) { /* records of an earlier run are there */
        leave_out(engines, 0);
    }
    if (status == FSDP_OK && a->adapter) {
        status =
            run_cases_by_adapter(a, e->cases, e->text, engines->of[0].records,
                                 NULL, &claimed, &error);
        times_note(times, "record", "adapter", began);
    } else if (status == FSDP_OK) {
        status =
            play_by_engines(a, engines, e, &claimed, &seals, times, &error);
    }
    (void)seals_check(&seals); /* no engine runs any more */
    seals_release(&seals);
    if (status == FSDP_OK && !a->fail_fast) {
        status = run_baselines(a, e, &claimed, times, &error);
    }
    manifest_release(&claimed);
    return status == FSDP_OK ? 0 : run_cases_say(&error, status);
}
