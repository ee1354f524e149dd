/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluate.c - from a folder of records to a verdict, reports and exit code.
 */
#include "cli/evaluate.h"
#include "cases/case_model.h"
#include "cli/supervise.h"
#include "cli/version.h"
#include "judge/judge_store.h"
#include "judge/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int describe(void *context, const struct run_case *c,
                    struct judge_model *out, struct fsdp_error *error)
{
    const struct text *text = context;
    struct case_model *m;
    int status;

    if (supervise_interrupted()) {
        return FSDP_ERR_ABORTED; /* the rest goes by quickly */
    }
    m = calloc(1, sizeof *m);
    if (!m) {
        return FSDP_ERR_NOMEM;
    }
    status = case_model_make(c, text->bytes, text->n, m, error);
    if (status != FSDP_OK) {
        case_model_release(m);
        free(m);
        return status;
    }
    *out = (struct judge_model){&m->model->model, &m->units.units, m};
    return FSDP_OK;
}

static void undescribe(void *context, struct judge_model *model)
{
    (void)context;
    case_model_release(model->own);
    free(model->own);
}

int evaluate(const struct evaluation *e, struct judge_result *out,
             struct fsdp_error *error)
{
    struct judge_store *store = NULL;
    struct judge_input in = {.requirements = requirements,
                             .only = e->only,
                             .cases = e->cases->c,
                             .n_cases = e->cases->n,
                             .n_manifest = manifest_count,
                             .manifest_sha256 = manifest_sha256,
                             .claims = e->claims,
                             .describe = describe,
                             .undescribe = undescribe,
                             .model_context = (void *)e->text,
                             .record = judge_store_record,
                             .baseline = judge_store_baseline,
                             .next = judge_store_next};
    int status = requirement_set_check(requirements, error->message,
                                       sizeof error->message);

    if (status == FSDP_OK) {
        status = judge_store_open(e->records, &store);
    }
    if (status == FSDP_OK && e->baselines) {
        status = judge_store_baselines(store, e->baselines);
    }
    if (status == FSDP_OK) {
        in.record_context = store;
        status = judge(&in, out);
    }
    if (supervise_interrupted()) {
        status = FSDP_ERR_ABORTED;
        snprintf(error->message, sizeof error->message, "interrupted");
    }
    judge_store_close(store);
    return status;
}

const char *const *evaluate_only(const struct arguments *a,
                                 struct name_list *storage, const char **all)
{
    uint32_t n = 0;

    if (a->requirements.n) {
        *storage = a->requirements;
        return storage->name;
    }
    if (a->level >= N_LEVELS) {
        return NULL;
    }
    for (const struct requirement *const *r = requirements; *r; r++) {
        if ((*r)->level <= a->level) {
            all[n++] = (*r)->id;
        }
    }
    all[n] = NULL;
    return all;
}

static int write_reports(const struct judge_result *r,
                         const struct report_meta *meta,
                         const struct arguments *a, struct fsdp_error *error)
{
    if (a->report) {
        FSDP_TRY(report_jsonl(r, meta, a->report, error));
    }
    if (a->junit) {
        FSDP_TRY(report_junit(r, meta, a->junit, error));
    }
    return FSDP_OK;
}

/* The first case whose record cannot be read; there is one. */
static const struct judge_case *first_unread(const struct judge_result *r)
{
    uint32_t i = 0;

    while (i + 1 < r->n_cases &&
           !strstr(r->cases[i].reason, "cannot be read")) {
        i++;
    }
    return &r->cases[i];
}

/* Nothing of a selection but passes and what is not claimed or does not
 * apply, and nobody asked for more. */
static bool partial_ok(const struct judge_result *r, const struct arguments *a)
{
    return a->partial_ok && r->verdict == JUDGE_UNDECIDED && !r->abandoned &&
           r->executed == r->expected && r->count[JUDGE_FAIL] == 0 &&
           r->count[JUDGE_ERROR] == 0 && r->count[JUDGE_TIMEOUT] == 0 &&
           r->count[JUDGE_BLOCKED] == 0 && r->count[JUDGE_INCOMPLETE] == 0;
}

static int exit_code(const struct judge_result *r, const struct arguments *a)
{
    if (!partial_ok(r, a)) {
        return (int)r->verdict;
    }
    return r->count[JUDGE_PASS] > 0 ? EXIT_CONFORMANT : EXIT_SKIPPED;
}

/* The one line of --quiet. */
static const char *in_a_word(const struct judge_result *r, int code)
{
    if (code == EXIT_SKIPPED) {
        return "SKIPPED: not claimed, or it applies to none of these cases";
    }
    return code == EXIT_CONFORMANT && r->verdict == JUDGE_UNDECIDED
               ? "PASSED, of a selection: no verdict"
               : judge_verdict_name(r->verdict);
}

int evaluate_and_report(const struct evaluation *e, const struct arguments *a,
                        const char *rerun, int64_t started)
{
    struct judge_result r = {0};
    struct fsdp_error error = {0};
    struct report_meta meta = {.suite_version = version_text(),
                               .compiler = __VERSION__,
                               .records = e->records,
                               .rerun = rerun,
                               .started = started,
                               .report = a->report};
    int status = evaluate(e, &r, &error);
    int code = EXIT_INCOMPLETE;

    if (status == FSDP_OK) {
        meta.ended = (int64_t)time(NULL);
        status = write_reports(&r, &meta, a, &error);
        code = exit_code(&r, a);
        if (r.verdict == JUDGE_UNDECIDED && r.malformed) {
            code = EXIT_BAD_DATA;
            fprintf(stderr, "fsdp-cts: %u records cannot be read: %s: %s\n",
                    r.malformed, first_unread(&r)->id,
                    first_unread(&r)->reason);
        }
        if (!a->quiet) {
            report_text(&r, &meta, stdout);
        } else {
            printf("%s\n", in_a_word(&r, code));
        }
    }
    if (status != FSDP_OK) {
        if (!supervise_interrupted()) { /* the command says that */
            fprintf(stderr, "fsdp-cts: %s\n",
                    error.message[0] ? error.message
                                     : fsdp_status_text(status));
        }
        code = EXIT_INCOMPLETE;
    }
    judge_release(&r);
    return code;
}
