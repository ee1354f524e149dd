/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_verify.c - judges records that were kept by `run --records DIR`, or
 * a bundle of them.
 */
#include "cli/choose/selection.h"
#include "cli/commands.h"
#include "cli/fixtures.h"
#include "cli/line/exit_codes.h"
#include "cli/play/rerun.h"
#include "cli/verdict/evaluate.h"
#include "cli/verdict/records_folder.h"
#include "cli/verdict/textbook.h"
#include "run/supervise.h"
#include "run/worker/case_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    TAKES = TAKES_SELECTION | TAKES_JUDGE | TAKES_REPORT | TAKES_REPORT_ONLY |
            TAKES_TEXT | TAKES_GOLDEN | TAKES_SEED | TAKES_JSON
};

static void help(void)
{
    printf("usage: fsdp-cts verify RECORDS ... [OPTION ...]\n"
           "       fsdp-cts verify BUNDLE [--partial-ok] [--json]\n\n"
           "Judges the records in a folder that 'fsdp-cts run --records' "
           "wrote, those in\nseveral folders as one run ('fsdp-cts run "
           "--shard'), or checks a\nbundle of 'fsdp-cts submit': its files, "
           "versions and cases, and its report against\nwhat the judge finds "
           "now of the records in it.\n\n"
           "examples:\n"
           "  fsdp-cts verify records --report again.jsonl\n"
           "  fsdp-cts verify part1 part2 part3\n"
           "\n");
    arguments_help(TAKES);
    exit_codes_print(stdout);
}

/* Finds the records of this engine in the other folders. */
static int find_others(const struct arguments *a, const char *engine,
                       const struct engine_folders *part, const char *baselines,
                       struct evaluate_part *out)
{
    for (int p = 1; p < a->n_rest; p++) {
        uint32_t i = 0;

        while (i < part[p].n && strcmp(part[p].of[i].name, engine) != 0) {
            i++;
        }
        if (i == part[p].n || part[p].n != part[0].n) {
            fprintf(stderr,
                    "fsdp-cts verify: %s has records of other engines than "
                    "%s\n",
                    a->rest[p], a->rest[0]);
            return EXIT_BAD_DATA;
        }
        out[p - 1] = (struct evaluate_part){part[p].of[i].records,
                                            baselines ? baselines : a->rest[p]};
    }
    return 0;
}

/* Judges each engine that has records in the folders. */
static int judge_found(const struct arguments *a,
                       const struct engine_folders *found,
                       struct evaluate_input *e, struct evaluate_part *others)
{
    struct evaluate_result result[ARGUMENTS_MAX] = {0};
    struct evaluate_job jobs[ARGUMENTS_MAX];
    static char rerun[ARGUMENTS_MAX][RERUN_BYTES];
    int64_t started = (int64_t)time(NULL);
    bool judged = true;
    int code;

    for (uint32_t i = 0; i < found->n; i++) {
        struct evaluate_part *mine = others + (size_t)i * e->n_others;

        rerun_find(found->of[i].records, rerun[i]);
        jobs[i] = (struct evaluate_job){*e, rerun[i]};
        jobs[i].input.records = found->of[i].records;
        jobs[i].input.baselines = e->baselines ? e->baselines : a->rest[0];
        jobs[i].input.others = mine;
        code = find_others(a, found->of[i].name, found, e->baselines, mine);
        if (code) {
            return code;
        }
    }
    code = evaluate_engines(jobs, found->n, a, started, result);
    for (uint32_t i = 0; i < found->n; i++) {
        judged = judged && result[i].judged;
    }
    if (!evaluate_write(a, result, found->n)) {
        code = evaluate_worse(code, EXIT_OUTPUT);
    } else if (a->report_only && judged) {
        code = 0; /* the report says the rest */
    }
    for (uint32_t i = 0; i < found->n; i++) {
        if (!a->quiet) {
            textbook_print(&jobs[i].input, &result[i].r, a->verbose);
        }
        evaluate_print(a, &result[i], found->n);
    }
    if (found->n > 1 && !a->quiet) {
        evaluate_print_summary(result, found->n);
    }
    for (uint32_t i = 0; i < found->n; i++) {
        judge_release(&result[i].r);
    }
    return code;
}

/* Whether these records are of models that were sharded and not trained. */
static bool only_shards(const struct arguments *a, const char *records,
                        const struct case_list *cases)
{
    char path[CASE_FOLDER_BYTES + 16];
    char folder[CASE_FOLDER_BYTES];
    struct run_case c;

    case_sharded(&cases->c[0], &c);
    case_folder(records, &c, false, folder);
    snprintf(path, sizeof(path), "%s/case.json", folder);
    return a->level < LEVEL_GATHER && access(path, R_OK) == 0;
}

/* Judges the folders of records of each engine. */
static int judge_folders(const struct arguments *a, struct case_list *cases,
                         struct evaluate_input *e)
{
    const size_t n = (size_t)a->n_rest;
    struct engine_folders *found = calloc(n, sizeof(*found));
    struct evaluate_part *others = calloc(n * ARGUMENTS_MAX, sizeof(*others));
    int code = found && others ? 0 : EXIT_INCOMPLETE;

    e->n_others = (uint32_t)(n - 1);
    for (size_t i = 0; i < n && code == 0; i++) {
        if (engine_folders_find(a->rest[i], &found[i]) != FSDP_OK) {
            fprintf(stderr, "fsdp-cts verify: %s cannot be read\n", a->rest[i]);
            code = EXIT_BAD_DATA;
        }
    }
    if (code == 0 && !engine_folders_any(&found[0])) {
        fprintf(stderr,
                "fsdp-cts verify: %s has no records; see: fsdp-cts run "
                "--records\n",
                a->rest[0]);
        code = EXIT_BAD_DATA;
    }
    if (code == 0 && only_shards(a, found[0].of[0].records, cases)) {
        selection_only_shards(cases);
    }
    if (code == 0) {
        code = judge_found(a, found, e, others);
    }
    free(found);
    free(others);
    return code;
}

static int verify(const struct arguments *a)
{
    struct case_list cases;
    struct text text;
    struct fsdp_error error = {0};
    const char *all[512];
    char golden[4096];
    struct evaluate_input e = {
        .cases = &cases, .text = &text, .only = evaluate_only(a, all)};
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
        snprintf(golden, sizeof(golden), "%s/records", a->fixtures);
        e.baselines = golden;
    }
    code = selection_make(a, &cases);
    if (code == 0) {
        code = judge_folders(a, &cases, &e);
    }
    manifest_release(&cases);
    text_release(&text);
    return code;
}

int command_verify(int argc, char **argv)
{
    struct arguments a;
    struct stat s;
    bool is_bundle;

    const int wrong = arguments_parse(argc, argv, TAKES, &a);
    if (wrong) {
        return wrong;
    }
    if (a.help) {
        help();
        return 0;
    }
    if (a.report_only && !a.report) {
        fprintf(stderr, "fsdp-cts verify: --report-only needs --report\n");
        return EXIT_USAGE;
    }
    if (a.n_rest < 1 || a.n_rest > ARGUMENTS_MAX) {
        fprintf(stderr, "fsdp-cts verify: needs a folder of records, or of "
                        "each part of them; see: fsdp-cts verify --help\n");
        return EXIT_USAGE;
    }
    for (int i = 0; i < a.n_rest; i++) {
        if (stat(a.rest[i], &s) != 0 || !S_ISDIR(s.st_mode)) {
            fprintf(stderr, "fsdp-cts verify: %s is not a folder\n", a.rest[i]);
            return EXIT_BAD_DATA;
        }
    }
    is_bundle = a.n_rest == 1 && bundle_is(a.rest[0]);
    if (a.json && !is_bundle) {
        fprintf(stderr, "fsdp-cts verify: --json is for bundles; of records "
                        "see --report\n");
        return EXIT_USAGE;
    }
    return is_bundle ? command_verify_bundle(&a) : verify(&a);
}
