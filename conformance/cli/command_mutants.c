/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_mutants.c - runs every mutant over the cases that show it and
 * compares the first causes that were found with those it lists, strictly
 * both ways. Prints the kill matrix.
 */
#include "cli/choose/selection.h"
#include "cli/commands.h"
#include "cli/verdict/evaluate.h"
#include "cli/verdict/records_folder.h"
#include "judge/report/progress.h"
#include "mutants/mutant.h"
#include "run/supervise.h"
#include "run/worker/rank_limits.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TAKES = TAKES_ENGINE | TAKES_WORLD | TAKES_JSON
};

/* A mutant's hang is judged by a watchdog: no reason to wait for long. */
enum {
    MUTANT_TIMEOUT_MS = 1500
};

/* Selects the cases that show a mutant, and those that their requirements look
 * up. */
static int cases_of(const struct mutant *m, const struct case_list *all,
                    struct case_list *out)
{
    uint32_t most = m->shows.n_cases ? m->shows.n_cases : 3;

    *out = (struct case_list){calloc(most, sizeof(*out->c)), 0};
    for (uint32_t i = 0; out->c && i < all->n && out->n < most; i++) {
        const struct run_case *c = &all->c[i];
        const bool ahead =
            c->prefetch_forward || c->prefetch_backward || c->reduces_in_flight;

        if ((m->shows.engine || !ahead) &&
            m->shows.mixed == (c->precision != CASE_F32) &&
            m->shows.factors == (c->factors != CASE_USUAL_FACTORS) &&
            (m->shows.places ||
             m->shows.offload == (c->offload != CASE_NOT_OFFLOADED)) &&
            mutant_is_in(m, c)) {
            out->c[out->n++] = all->c[i];
        }
    }
    return out->c ? FSDP_OK : FSDP_ERR_NOMEM;
}

/* The ids of requirements that failed, crashed or hung somewhere, sorted, as
 * the table is. */
static void first_causes(const struct judge_result *r, char *out, size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    for (uint32_t q = 0; q < r->n_requirements; q++) {
        bool failed = false;
        for (uint32_t c = 0; c < r->n_cases; c++) {
            uint32_t outcome = judge_item_at(r, c, q)->outcome;
            failed = failed || outcome == JUDGE_FAIL ||
                     outcome == JUDGE_ERROR || outcome == JUDGE_TIMEOUT;
        }
        if (failed && used < size) {
            used += (size_t)snprintf(out + used, size - used, "%s%s",
                                     used ? " " : "", r->requirement[q]->id);
        }
    }
}

/* Whether both lists have the same ids, whatever their order. */
static bool same_ids(const char *a, const char *b)
{
    const char *lists[2] = {a, b};

    for (int k = 0; k < 2; k++) {
        char copy[4096];
        char other[4096];
        char *rest = copy;
        char *id;
        snprintf(copy, sizeof(copy), "%s", lists[k]);
        snprintf(other, sizeof(other), " %s ", lists[1 - k]);
        while ((id = strtok_r(rest, " ", &rest))) {
            char padded[128];
            snprintf(padded, sizeof(padded), " %s ", id);
            if (!strstr(other, padded)) {
                return false;
            }
        }
    }
    return true;
}

static int run_mutant(const struct arguments *a, const struct mutant *m,
                      const struct case_list *cases, const struct text *text,
                      struct progress *part, char *found, size_t size)
{
    struct folder folder = {.temporary = false};
    struct fsdp_error error = {0};
    struct supervise_engine said = {.known = false};
    struct judge_result r = {0};
    struct supervise_job job = {.launcher = a->launcher,
                                .timeout_ms = 20000,
                                .n_workers = a->jobs,
                                .part = part};
    struct evaluate_input e = {.cases = cases, .text = text};
    int status = folder_open_temporary(cases, 1, &folder, &error);

    job.records = e.records = folder.path;
    if (status == FSDP_OK) {
        status = supervise_baselines(&job, cases, &error);
    }
    if (status == FSDP_OK) {
        job.cases = cases->c;
        job.n_cases = cases->n;
        job.engine = m->shows.engine ? m->shows.engine
                     : a->engines.n  ? a->engines.name[0]
                                     : "ref";
        job.mutant = m->name;
        job.world = a->world;
        job.timeout_ms = MUTANT_TIMEOUT_MS;
        job.isolate = m->shows.isolated;
        status = supervise(&job, &said, &error);
    }
    if (status == FSDP_OK) {
        status = evaluate_records(&e, &r, &error);
        first_causes(&r, found, size);
    }
    if (status != FSDP_OK) {
        snprintf(found, size, "%s",
                 error.message[0] ? error.message : fsdp_status_text(status));
    }
    judge_release(&r);
    folder_close(&folder);
    return status;
}

static bool wanted(const struct arguments *a, const char *name)
{
    for (int i = 0; i < a->n_rest; i++) {
        if (strcmp(a->rest[i], name) == 0) {
            return true;
        }
    }
    return a->n_rest == 0;
}

static int check_names(const struct arguments *a)
{
    for (int i = 0; i < a->n_rest; i++) {
        const struct mutant *const *m = mutants;
        while (*m && strcmp((*m)->name, a->rest[i]) != 0) {
            m++;
        }
        if (!*m) {
            return option_unknown("mutant", a->rest[i],
                                  "; see: fsdp-cts list mutants",
                                  arguments_mutant);
        }
    }
    return 0;
}

static uint32_t count_wanted(const struct arguments *a)
{
    uint32_t n = 0;

    for (const struct mutant *const *m = mutants; *m; m++) {
        n += wanted(a, (*m)->name);
    }
    return n;
}

/* The outcome of all mutants: the lines of the matrix, or an array of
 * objects. */
struct matrix {
    json_t *array; /* NULL: lines */
    uint32_t passed, failed, skipped;
};

/* Shows "ok", "BAD" or "skip", and what was found, or why nothing was looked
 * for. */
static int show(struct matrix *x, const struct mutant *m, const char *outcome,
                const char *found)
{
    x->passed += strcmp(outcome, "ok") == 0;
    x->failed += strcmp(outcome, "BAD") == 0;
    x->skipped += strcmp(outcome, "skip") == 0;
    if (x->array) {
        return json_array_append_new(
            x->array,
            json_pack("{s:s, s:s, s:s, s:s}", "name", m->name, "outcome",
                      outcome, "found", found, "kills", m->kills));
    }
    printf("%-4s %-28s %s\n", outcome, m->name,
           found[0] ? found : "(survived)");
    if (strcmp(outcome, "BAD") == 0) {
        printf("     %-28s listed: %s\n", "", m->kills);
    }
    fflush(stdout);
    return 0;
}

/* Why a mutant cannot be shown here; NULL: it can be. */
static const char *no_isolation(const struct arguments *a,
                                const struct mutant *m)
{
    return !m->shows.isolated        ? NULL
           : limits_lacking()        ? limits_lacking()
           : a->world != WORLD_LOCAL ? "not this world"
                                     : NULL;
}

/* Runs one mutant. FSDP_OK whatever the outcome; ABORTED; INVALID, the engine's
 * fault: there is nothing to show. */
static int run_one(const struct arguments *a, const struct mutant *m,
                   const struct case_list *all, const struct text *text,
                   struct progress *progress, struct matrix *x)
{
    char found[4096] = "";
    struct case_list cases = {NULL, 0};
    int status = cases_of(m, all, &cases);
    bool good = false;

    if (status == FSDP_OK && cases.n == 0) {
        snprintf(found, sizeof(found), "(no case of the manifest shows it)");
    } else if (status == FSDP_OK) {
        status = run_mutant(a, m, &cases, text, progress, found, sizeof(found));
        good = status == FSDP_OK && found[0] && same_ids(found, m->kills);
    }
    manifest_release(&cases);
    if (status == FSDP_ERR_INVALID) {
        fprintf(stderr, "fsdp-cts mutants: %s\n", found);
        return status;
    }
    for (char *at = found; *at; at++) { /* an engine's words may be in it */
        if (*at < ' ' || *at > '~') {
            *at = '?';
        }
    }
    progress_clear(progress);
    if (show(x, m, good ? "ok" : "BAD", found)) {
        return FSDP_ERR_NOMEM;
    }
    progress_add(progress, 1, !good);
    return status == FSDP_ERR_ABORTED ? status : FSDP_OK;
}

static int end(const struct matrix *x, int status)
{
    if (status == FSDP_ERR_INVALID || status == FSDP_ERR_NOMEM) {
        return status == FSDP_ERR_INVALID ? EXIT_USAGE : EXIT_INCOMPLETE;
    }
    if (x->array) {
        json_dumpf(x->array, stdout, JSON_INDENT(1));
        printf("\n");
    } else {
        printf("%u passed, %u failed", x->passed, x->failed);
        printf(x->skipped ? ", %u skipped\n" : "\n", x->skipped);
    }
    if (x->skipped && !x->passed && !x->failed) {
        return EXIT_SKIPPED;
    }
    return x->passed && !x->failed      ? 0
           : status == FSDP_ERR_ABORTED ? EXIT_INCOMPLETE
                                        : EXIT_NOT_CONFORMANT;
}

static int run_all(const struct arguments *a, const struct case_list *all,
                   const struct text *text)
{
    struct matrix x = {.array = a->json ? json_array() : NULL};
    struct progress progress;
    int status = FSDP_OK;
    int code;

    progress_begin(&progress, "mutants", "mutants", count_wanted(a), a->quiet);
    for (const struct mutant *const *m = mutants; *m && status == FSDP_OK;
         m++) {
        const char *lacks = no_isolation(a, *m);
        char why[256];

        if (!wanted(a, (*m)->name)) {
            continue;
        }
        if (!lacks) {
            status = run_one(a, *m, all, text, &progress, &x);
            continue;
        }
        snprintf(why, sizeof(why), "no isolation here: %s", lacks);
        status = show(&x, *m, "skip", why) ? FSDP_ERR_NOMEM : FSDP_OK;
    }
    if (status != FSDP_ERR_INVALID) {
        progress_end(&progress);
    }
    code = end(&x, status);
    json_decref(x.array);
    return code;
}

int command_mutants(int argc, char **argv)
{
    struct arguments a;
    struct case_list all;
    struct text text;
    struct fsdp_error error = {0};
    int code = arguments_parse(argc, argv, TAKES, &a);

    if (code || check_names(&a)) {
        return EXIT_USAGE;
    }
    if (a.help) {
        printf("usage: fsdp-cts mutants [NAME ...] [OPTION ...]\n\nRuns "
               "mutants of an engine and prints, for each, the requirements\n"
               "that failed as first causes: the kill matrix.\n\n"
               "examples:\n"
               "  fsdp-cts mutants\n"
               "  fsdp-cts mutants divide-twice --engine ./mine.so\n"
               "\n");
        arguments_help(TAKES);
        return 0;
    }
    text_load(NULL, &text, &error);
    if (manifest_make(&all, &error) != FSDP_OK) {
        fprintf(stderr, "fsdp-cts: %s\n", error.message);
        return EXIT_INCOMPLETE;
    }
    supervise_catch_signals();
    code = run_all(&a, &all, &text);
    manifest_release(&all);
    return code;
}
