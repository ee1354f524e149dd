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

/* The cases that show a mutant, and those that their requirements look up. */
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

/* Ids that failed, crashed or hung somewhere, sorted (the table is). */
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

/* The same ids, whatever their order. */
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
            return arguments_unknown("mutant", a->rest[i],
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

static int run_all(const struct arguments *a, const struct case_list *all,
                   const struct text *text)
{
    uint32_t passed = 0;
    uint32_t failed = 0;
    uint32_t skipped = 0;
    struct progress progress;
    bool go_on = true;
    int code = EXIT_NOT_CONFORMANT;

    progress_begin(&progress, "mutants", "mutants", count_wanted(a), a->quiet);
    for (const struct mutant *const *m = mutants; *m && go_on; m++) {
        char found[4096] = "";
        struct case_list cases = {NULL, 0};
        int status;
        bool good;
        if (!wanted(a, (*m)->name)) {
            continue;
        }
        if ((*m)->shows.isolated &&
            (limits_lacking() || a->world != WORLD_LOCAL)) {
            printf("skip %-28s no isolation here: %s\n", (*m)->name,
                   limits_lacking() ? limits_lacking() : "not this world");
            skipped++;
            continue;
        }
        status = cases_of(*m, all, &cases);
        if (status == FSDP_OK && cases.n == 0) {
            snprintf(found, sizeof(found),
                     "(no case of the manifest shows it)");
            status = FSDP_ERR_INVALID;
        } else if (status == FSDP_OK) {
            status = run_mutant(a, *m, &cases, text, &progress, found,
                                sizeof(found));
        }
        if (cases.n && status == FSDP_ERR_INVALID) { /* the engine's fault */
            fprintf(stderr, "fsdp-cts mutants: %s\n", found);
            manifest_release(&cases);
            return EXIT_USAGE;
        }
        go_on = status != FSDP_ERR_ABORTED;
        code = go_on ? code : EXIT_INCOMPLETE;
        good = status == FSDP_OK && found[0] && same_ids(found, (*m)->kills);
        passed += good;
        failed += !good;
        progress_clear(&progress);
        printf("%-4s %-28s %s\n", good ? "ok" : "BAD", (*m)->name,
               found[0] ? found : "(survived)");
        if (!good) {
            printf("     %-28s listed: %s\n", "", (*m)->kills);
        }
        fflush(stdout);
        progress_add(&progress, 1, !good);
        manifest_release(&cases);
    }
    progress_end(&progress);
    printf("%u passed, %u failed", passed, failed);
    printf(skipped ? ", %u skipped\n" : "\n", skipped);
    if (skipped && !passed && !failed) {
        return EXIT_SKIPPED;
    }
    return passed && !failed ? 0 : code;
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
