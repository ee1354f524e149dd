/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_verify.c - judges records that were kept by `run --records DIR`, or
 * a bundle of them.
 */
#include "cli/bundle.h"
#include "cli/commands.h"
#include "cli/engine_folders.h"
#include "cli/evaluate.h"
#include "cli/fixtures.h"
#include "cli/miniature_table.h"
#include "cli/selection.h"
#include "cli/supervise.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

enum {
    TAKES = TAKES_SELECTION | TAKES_JUDGE | TAKES_REPORT | TAKES_REPORT_ONLY |
            TAKES_TEXT | TAKES_GOLDEN | TAKES_SEED | TAKES_JSON
};

static void help(void)
{
    printf("usage: fsdp-cts verify RECORDS [OPTION ...]\n"
           "       fsdp-cts verify BUNDLE [--partial-ok] [--json]\n\n"
           "Judges the records in a folder that 'fsdp-cts run --records' "
           "wrote, or checks a\nbundle of 'fsdp-cts submit': its files, "
           "versions and cases, and its report against\nwhat the judge finds "
           "now of the records in it.\n\n");
    arguments_help(TAKES);
    printf(
        "\nexit: 0 conformant, 1 not conformant, 2 incomplete, 64 usage "
        "error, 65 bad data,\n77 skipped (a selection that is not claimed)\n");
}

/* Of each engine that has records in the folder. */
static int judge_found(const struct arguments *a, const char *records,
                       const struct engine_folders *found, struct evaluation *e)
{
    struct evaluated result[ARGUMENTS_MAX] = {0};
    int64_t started = (int64_t)time(NULL);
    bool judged = true;
    int code = 0;

    e->baselines = e->baselines ? e->baselines : records;
    for (uint32_t i = 0; i < found->n; i++) {
        e->records = found->of[i].records;
        evaluate_judge(e, a, "fsdp-cts run --case ", started, &result[i]);
        code = evaluate_worse(code, result[i].code);
        judged = judged && result[i].judged;
    }
    if (!evaluate_write(a, result, found->n)) {
        code = evaluate_worse(code, EXIT_INCOMPLETE);
    } else if (a->report_only && judged) {
        code = 0; /* the report has what else there is to say */
    }
    for (uint32_t i = 0; i < found->n; i++) {
        evaluate_print(a, &result[i], found->n);
        e->records = found->of[i].records;
        if (!a->quiet) {
            miniature_print(e);
        }
    }
    if (found->n > 1 && !a->quiet) {
        evaluate_print_summary(result, found->n);
    }
    for (uint32_t i = 0; i < found->n; i++) {
        judge_release(&result[i].r);
    }
    return code;
}

static int verify(const struct arguments *a, const char *records)
{
    struct case_list cases;
    struct text text;
    struct fsdp_error error = {0};
    struct name_list storage;
    const char *all[512];
    struct engine_folders found;
    char golden[4096];
    struct evaluation e = {.cases = &cases,
                           .text = &text,
                           .only = evaluate_only(a, &storage, all)};
    int code;

    if (text_load(a->text, &text, &error) != FSDP_OK) {
        fprintf(stderr, "fsdp-cts: %s\n", error.message);
        return EXIT_USAGE;
    }
    if (a->fixtures) {
        if (fixtures_manifest_check(a->fixtures, &error) != FSDP_OK) {
            fprintf(stderr, "fsdp-cts verify: %s\n", error.message);
            text_release(&text);
            return EXIT_BAD_DATA;
        }
        snprintf(golden, sizeof golden, "%s/records", a->fixtures);
        e.baselines = golden;
    }
    code = selection_make(a, &cases);
    if (code == 0 && engine_folders_find(records, &found) != FSDP_OK) {
        fprintf(stderr, "fsdp-cts verify: %s cannot be read\n", records);
        code = EXIT_BAD_DATA;
    }
    if (code == 0) {
        code = judge_found(a, records, &found, &e);
    }
    manifest_release(&cases);
    text_release(&text);
    return code;
}

/* A bundle is judged as it is, in whole. */
static int verify_bundle(const struct arguments *a, const char *folder)
{
    struct fsdp_error error = {0};
    struct bundle *b;
    struct text text;
    int code;

    if (a->n_ranks || a->workloads.n || a->cases.n || a->strategies.n ||
        a->n_seeds || a->seed || a->fixtures || a->requirements.n ||
        a->level < N_LEVELS || a->report_only) {
        fprintf(stderr, "fsdp-cts verify: a bundle says itself which cases it "
                        "is about; nothing can be selected\n");
        return EXIT_USAGE;
    }
    if (text_load(a->text, &text, &error) != FSDP_OK) {
        fprintf(stderr, "fsdp-cts: %s\n", error.message);
        return EXIT_USAGE;
    }
    supervise_catch_signals();
    b = calloc(1, sizeof *b);
    code = b ? bundle_verify(folder, a, &text, b) : EXIT_INCOMPLETE;
    if (b && code != EXIT_BAD_DATA) {
        if (b->judged.judged && !evaluate_write(a, &b->judged, 1)) {
            code = evaluate_worse(code, EXIT_INCOMPLETE);
        }
        bundle_print(b, a, code);
    }
    if (b) {
        bundle_release(b);
    }
    free(b);
    text_release(&text);
    return code;
}

int command_verify(int argc, char **argv)
{
    struct arguments a;
    struct stat s;

    if (arguments_parse(argc, argv, TAKES, &a)) {
        return EXIT_USAGE;
    }
    if (a.help) {
        help();
        return 0;
    }
    if (a.report_only && !a.report) {
        fprintf(stderr, "fsdp-cts verify: --report-only needs --report\n");
        return EXIT_USAGE;
    }
    if (a.n_rest != 1) {
        fprintf(stderr, "fsdp-cts verify: needs one folder of records; see: "
                        "fsdp-cts verify --help\n");
        return EXIT_USAGE;
    }
    if (stat(a.rest[0], &s) != 0 || !S_ISDIR(s.st_mode)) {
        fprintf(stderr, "fsdp-cts verify: %s is no folder\n", a.rest[0]);
        return EXIT_BAD_DATA;
    }
    if (a.json && !bundle_is(a.rest[0])) {
        fprintf(stderr, "fsdp-cts verify: --json is for bundles; of records "
                        "see --report\n");
        return EXIT_USAGE;
    }
    return bundle_is(a.rest[0]) ? verify_bundle(&a, a.rest[0])
                                : verify(&a, a.rest[0]);
}
