/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluate.c - makes verdict, reports and exit code from a folder of records.
 */
#include "cli/verdict/evaluate.h"
#include "cases/case_graph.h"
#include "cases/case_model.h"
#include "cli/line/version.h"
#include "cli/verdict/evaluate_told.h"
#include "judge/report/report.h"
#include "run/supervise.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int describe(void *context, const struct run_case *c,
                    struct judge_model *out, struct fsdp_error *error)
{
    const struct evaluate_input *e = context;
    const struct text *text = e->text;
    struct case_model *m;
    int status;

    if (e->partly ? supervise_hurried() : supervise_interrupted()) {
        return FSDP_ERR_ABORTED; /* the rest is quick */
    }
    m = calloc(1, sizeof(*m));
    if (!m) {
        return FSDP_ERR_NOMEM;
    }
    status = case_model_make(c, text->bytes, text->n, m, error);
    if (status != FSDP_OK) {
        case_model_release(m);
        free(m);
        return status;
    }
    *out = (struct judge_model){&m->model->model, &m->units.units,
                                m->model->idle, m};
    return FSDP_OK;
}

static const char *stopped(void *context)
{
    const struct evaluate_input *e = context;

    return supervise_interrupted() ? "interrupted" : e->stopped;
}

static void judged(void *context, bool failed)
{
    const struct evaluate_input *e = context;

    progress_add(e->progress, 1, failed ? 1 : 0);
}

static void undescribe(void *context, struct judge_model *model)
{
    (void)context;
    case_model_release(model->own);
    free(model->own);
}

/* Whether a case is in none of the lists, but drawn from a seed: then the
 * number of cases does not say how much of the suite was run. */
static bool is_foreign(const struct case_list *cases)
{
    struct fsdp_error error = {0};
    struct case_list all;
    uint32_t known = 0;

    if (manifest_make(&all, &error) != FSDP_OK) {
        return true;
    }
    for (uint32_t i = 0; i < cases->n; i++) {
        bool found = !case_is_graph(&cases->c[i]);

        for (uint32_t k = 0; k < all.n && !found; k++) {
            /* Cases are zeroed before they are filled, and have no padding.
             * NOLINTNEXTLINE(bugprone-suspicious-memory-comparison,cert-*) */
            found = memcmp(&all.c[k], &cases->c[i], sizeof(all.c[k])) == 0;
        }
        known += found;
    }
    manifest_release(&all);
    return known != cases->n;
}

int evaluate_open_store(const struct evaluate_input *e,
                        struct judge_store **out)
{
    int status = judge_store_open(e->records, e->baselines, out);

    for (uint32_t i = 0; i < e->n_others && status == FSDP_OK; i++) {
        status =
            judge_store_add(*out, e->others[i].records, e->others[i].baselines);
    }
    return status;
}

struct judge_input evaluate_source(const struct evaluate_input *e,
                                   struct judge_store *store)
{
    return (struct judge_input){.describe = describe,
                                .undescribe = undescribe,
                                .model_context = (void *)e,
                                .record = judge_store_record,
                                .baseline = judge_store_baseline,
                                .next = judge_store_next,
                                .record_context = store,
                                .judged = judged,
                                .judged_context = (void *)e,
                                .stopped = stopped,
                                .stopped_context = (void *)e};
}

int evaluate_records(const struct evaluate_input *e, struct judge_result *out,
                     struct fsdp_error *error)
{
    struct judge_store *store = NULL;
    struct judge_input in;
    int status = requirement_set_check(requirement_table(), error->message,
                                       sizeof(error->message));

    if (status == FSDP_OK) {
        status = evaluate_open_store(e, &store);
    }
    if (status == FSDP_OK) {
        in = evaluate_source(e, store);
        in.requirements = requirement_table();
        in.only = e->only;
        in.cases = e->cases->c;
        in.n_cases = e->cases->n;
        in.n_manifest = manifest_count;
        in.foreign = is_foreign(e->cases);
        in.manifest_sha256 = manifest_sha256;
        in.claims = e->claims;
        in.drawn = e->drawn;
        in.timed = e->timed;
        in.hurried = supervise_interrupted();
        status = judge(&in, out);
    }
    if (supervise_interrupted() && !e->partly) {
        status = FSDP_ERR_ABORTED;
        snprintf(error->message, sizeof(error->message), "interrupted");
    }
    judge_store_close(store);
    return status;
}

/* Only a MUST counts: a SHOULD comes behind them all. */
bool evaluate_failure_of(const struct judge_result *r, uint32_t c,
                         uint32_t *out)
{
    return judge_first_cause_of(r, c, out) && r->requirement[*out]->must;
}

struct evaluate_failure evaluate_first_failure(const struct judge_result *r)
{
    struct evaluate_failure f = {.found = false};
    uint32_t q = 0;

    for (uint32_t c = 0; c < r->n_cases && !f.found; c++) {
        if (case_is_graph(&r->cases[c].c) && evaluate_failure_of(r, c, &q)) {
            f = (struct evaluate_failure){true, r->cases[c].c,
                                          r->requirement[q]};
        }
    }
    return f;
}

/* Whether a requirement is of this level or below and needs none above it: one
 * that does is about what a later level brings, as gather.sees-updated-weights
 * is about a step. What the needed ones need in turn is left out of account:
 * nearly all of it comes to the step before. */
static bool is_within(const struct requirement *r, uint32_t level)
{
    const struct requirement *const *table = requirement_table();
    const char *at = r->needs;
    char id[REQUIREMENT_ID_BYTES];

    if (r->level > level) {
        return false;
    }
    while (requirement_next_need(&at, id)) {
        if (table[requirement_index(table, id)]->level > level) {
            return false;
        }
    }
    return true;
}

const char *const *evaluate_only(const struct arguments *a, const char **all)
{
    uint32_t n = 0;

    if (a->requirements.n == 0 && a->level >= N_LEVELS) {
        return NULL;
    }
    for (const struct requirement *const *r = requirement_table(); *r; r++) {
        if (a->requirements.n ? name_list_matches(&a->requirements, (*r)->id)
                              : is_within(*r, a->level)) {
            all[n++] = (*r)->id;
        }
    }
    all[n] = NULL;
    return all;
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

/* Whether a selection has only cases that pass, are not claimed or do not
 * apply. --partial-ok says the same of a whole run whose engine lacks a claim
 * of the core. */
static bool passes(const struct judge_result *r, const struct arguments *a)
{
    return (a->partial_ok || judge_is_selection(r)) && !a->strict &&
           r->verdict == JUDGE_UNDECIDED && !r->abandoned &&
           r->executed == r->expected && r->count[JUDGE_FAIL] == 0 &&
           r->count[JUDGE_ERROR] == 0 && r->count[JUDGE_TIMEOUT] == 0 &&
           r->count[JUDGE_BLOCKED] == 0 && r->count[JUDGE_INCOMPLETE] == 0 &&
           !r->drawn.incomplete;
}

/* Whether these requirements lack a verdict only because another one, which
 * fails itself, blocks them: a user who asks for one of them asks for that one,
 * too. */
static bool is_blocked(const struct judge_result *r, const struct arguments *a)
{
    return a->requirements.n > 0 && !a->strict && !r->stopped[0] &&
           r->verdict == JUDGE_UNDECIDED && !r->abandoned &&
           r->executed == r->expected && r->count[JUDGE_BLOCKED] > 0 &&
           r->count[JUDGE_FAIL] == 0 && r->count[JUDGE_ERROR] == 0 &&
           r->count[JUDGE_TIMEOUT] == 0 && r->count[JUDGE_INCOMPLETE] == 0 &&
           r->count[JUDGE_SKIP] == 0;
}

int evaluate_code(const struct judge_result *r, const struct arguments *a)
{
    if (is_blocked(r, a)) {
        return EXIT_SKIPPED;
    }
    if (r->stopped[0] || !passes(r, a)) {
        return (int)r->verdict;
    }
    return r->count[JUDGE_PASS] > 0 ? EXIT_CONFORMANT : EXIT_SKIPPED;
}

/* The line of --quiet. */
static const char *in_a_word(const struct judge_result *r, int code)
{
    if (code == EXIT_SKIPPED && r->count[JUDGE_BLOCKED] > 0) {
        return "SKIPPED: blocked by what another requirement fails";
    }
    if (code == EXIT_SKIPPED) {
        return "SKIPPED: not claimed, or it applies to none of these cases";
    }
    return code == EXIT_CONFORMANT && r->verdict == JUDGE_UNDECIDED
               ? "PASSED, of a selection: no verdict"
               : judge_verdict_name(r->verdict);
}

void evaluate_say(const struct fsdp_error *error, int status)
{
    if (!supervise_interrupted()) {
        fprintf(stderr, "fsdp-cts: %s\n",
                error->message[0] ? error->message : fsdp_status_text(status));
    }
}

void evaluate_engine(const struct evaluate_input *e, const struct arguments *a,
                     const char *rerun, int64_t started,
                     struct evaluate_result *out)
{
    struct fsdp_error error = {0};
    const struct judge_result *r = &out->r;
    int status;

    *out = (struct evaluate_result){.code = EXIT_INCOMPLETE,
                                    .meta = {.suite_version = version_text(),
                                             .compiler = __VERSION__,
                                             .records = e->records,
                                             .rerun = rerun,
                                             .started = started,
                                             .report = a->report,
                                             .verbose = a->verbose,
                                             .brief = a->requirements.n > 0}};
    status = evaluate_records(e, &out->r, &error);
    if (status != FSDP_OK) {
        evaluate_say(&error, status);
        return;
    }
    out->judged = true;
    evaluate_told(e, &out->r);
    out->meta.ended = (int64_t)time(NULL);
    out->code = evaluate_code(r, a);
    if (r->verdict == JUDGE_UNDECIDED && r->malformed) {
        out->code = EXIT_BAD_DATA;
        fprintf(stderr, "fsdp-cts: %u records cannot be read: %s: %s\n",
                r->malformed, first_unread(r)->id, first_unread(r)->reason);
    }
}

struct judging {
    struct evaluate_job job;
    const struct arguments *a;
    int64_t started;
    struct evaluate_result *out;
    pthread_t thread;
    bool has_thread;
};

static void *judge_in_thread(void *self)
{
    const struct judging *g = self;

    evaluate_engine(&g->job.input, g->a, g->job.rerun, g->started, g->out);
    return NULL;
}

/* Engines share only what none of them writes to. */
int evaluate_engines(const struct evaluate_job *jobs, uint32_t n,
                     const struct arguments *a, int64_t started,
                     struct evaluate_result *result)
{
    struct judging all[ARGUMENTS_MAX];
    struct progress progress;
    uint32_t n_cases = 0;
    int code = 0;

    for (uint32_t i = 0; i < n; i++) {
        n_cases += jobs[i].input.cases->n;
    }
    progress_begin(&progress, "judge", "cases", n_cases, a->quiet);
    progress_tick(&progress);
    for (uint32_t i = 0; i < n; i++) {
        struct judging *g = &all[i];

        *g = (struct judging){jobs[i], a, started, &result[i], 0, false};
        g->job.input.progress = &progress;
        g->has_thread =
            n > 1 && a->jobs > 1 &&
            pthread_create(&g->thread, NULL, judge_in_thread, g) == 0;
        if (!g->has_thread) {
            judge_in_thread(g);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        if (all[i].has_thread) {
            pthread_join(all[i].thread, NULL);
        }
        code = evaluate_worse(code, result[i].code);
    }
    progress_end(&progress);
    return code;
}

bool evaluate_write(const struct arguments *a,
                    const struct evaluate_result *all, uint32_t n)
{
    struct report_part part[ARGUMENTS_MAX];
    struct fsdp_error error = {0};
    uint32_t n_parts = 0;
    int status = FSDP_OK;

    for (uint32_t i = 0; i < n; i++) {
        if (all[i].judged) {
            part[n_parts++] = (struct report_part){&all[i].r, &all[i].meta};
        }
    }
    if (a->report && n_parts) {
        status = report_jsonl_all(part, n_parts, a->report, &error);
    }
    if (a->junit && n_parts && status == FSDP_OK) {
        status = report_junit_all(part, n_parts, a->junit, &error);
    }
    if (status != FSDP_OK) {
        evaluate_say(&error, status);
    }
    return status == FSDP_OK;
}

void evaluate_print(const struct arguments *a,
                    const struct evaluate_result *one, uint32_t n)
{
    if (!one->judged) {
        return;
    }
    if (!a->quiet) {
        report_text(&one->r, &one->meta, stdout);
    } else {
        printf("%s%s%s\n", n > 1 ? one->r.engine : "", n > 1 ? " " : "",
               in_a_word(&one->r, one->code));
    }
}

void evaluate_print_summary(const struct evaluate_result *all, uint32_t n)
{
    printf("\n%-16s %9s %11s %7s %7s %7s  %-10s %s\n", "engine", "cases",
           "not claimed", "pass", "fail", "blocked", "right to", "verdict");
    for (uint32_t i = 0; i < n; i++) {
        const struct judge_result *r = &all[i].r;
        char cases[24];

        if (!all[i].judged) {
            continue;
        }
        snprintf(cases, sizeof(cases), "%u/%u", r->executed, r->expected);
        printf("%-16s %9s %11u %7u %7u %7u  %-10s %s\n", r->engine, cases,
               r->not_claimed, r->count[JUDGE_PASS],
               r->count[JUDGE_FAIL] + r->count[JUDGE_ERROR] +
                   r->count[JUDGE_TIMEOUT],
               r->count[JUDGE_BLOCKED],
               r->highest_level >= 0
                   ? requirement_level_name((uint32_t)r->highest_level)
                   : "none",
               judge_verdict_name(r->verdict));
    }
}

int evaluate_worse(int a, int b)
{
    static const int order[] = {
        EXIT_CONFORMANT, EXIT_SKIPPED,        EXIT_INCOMPLETE, EXIT_OUTPUT,
        EXIT_BAD_DATA,   EXIT_NOT_CONFORMANT, EXIT_USAGE};
    const size_t worst = sizeof(order) / sizeof(order[0]) - 1;
    size_t i = 0;
    size_t k = 0;

    while (i < worst && order[i] != a) {
        i++;
    }
    while (k < worst && order[k] != b) {
        k++;
    }
    return i > k ? a : b;
}
