/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_run.c - the main job: run the engines and the unsharded baselines,
 * judge what was recorded.
 */
#include "cli/choose/run_options.h"
#include "cli/choose/sample_ranks.h"
#include "cli/choose/selection.h"
#include "cli/commands.h"
#include "cli/fixtures.h"
#include "cli/line/exit_codes.h"
#include "cli/play/from_report.h"
#include "cli/play/isolation.h"
#include "cli/play/rerun.h"
#include "cli/play/run_cases.h"
#include "cli/play/times.h"
#include "cli/search/drawn.h"
#include "cli/search/shrink.h"
#include "cli/verdict/evaluate.h"
#include "cli/verdict/pictures.h"
#include "cli/verdict/records_folder.h"
#include "cli/verdict/textbook.h"
#include "run/supervise.h"
#include "run/worker/trace_merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    TAKES = TAKES_ENGINE | TAKES_SELECTION | TAKES_JUDGE | TAKES_REPORT |
            TAKES_WORLD | TAKES_RECORDS | TAKES_TEXT | TAKES_MUTANT |
            TAKES_RUN | TAKES_SEED | TAKES_GOLDEN | TAKES_SCRIPTS
};

static void help(void)
{
    printf(
        "usage: fsdp-cts run [OPTION ...]\n\n"
        "Runs engines through the suite's cases. Says of each engine, with "
        "evidence,\nwhether its loss curve is bit-exact, whether its peak "
        "memory is what the\nclosed form says, and whether its collectives are "
        "right in number and size.\n\n"
        "examples:\n"
        "  fsdp-cts run --engine ./mine.so --ranks 2,3\n"
        "  fsdp-cts run --engine ref --mutant divide-twice --workload mlp\n"
        "  fsdp-cts run --engine ./mine.so --case 'mlp.*.k2.*' --fail-fast\n"
        "\n");
    arguments_help(TAKES);
    exit_codes_print(stdout);
}

/* Shows one engine that was judged: its table, and for random cases that fail
 * the smallest one that can be found. */
static void show(const struct arguments *a, const struct evaluate_input *e,
                 const struct engine_folder *engine,
                 const struct evaluate_result *one, uint32_t n)
{
    struct shrink shrink = {.a = a,
                            .engine = engine->engine,
                            .text = e->text,
                            .rerun = one->meta.rerun,
                            .seconds = 60};

    const bool goes_on = !a->quiet && one->judged && !supervise_interrupted();

    if (goes_on) {
        textbook_print(e, &one->r, a->verbose);
    }
    evaluate_print(a, one, n);
    if (!goes_on) {
        return;
    }
    shrink.failure = evaluate_first_failure(&one->r);
    if (shrink.failure.found && a->n_seeds) {
        shrink_and_show(&shrink);
    }
}

static int judge_all(const struct arguments *a,
                     const struct engine_folders *engines,
                     const struct evaluate_input *common,
                     const struct drawn *drawn, int64_t started,
                     struct times *times)
{
    const struct times_span began = times_now();
    struct evaluate_result result[ARGUMENTS_MAX] = {0};
    struct evaluate_job jobs[ARGUMENTS_MAX];
    char(*rerun)[RERUN_BYTES] = calloc(engines->n, sizeof(*rerun));
    int code = EXIT_INCOMPLETE;

    for (uint32_t i = 0; i < engines->n && rerun; i++) {
        rerun_make(a, engines->of[i].engine, rerun[i]);
        jobs[i] = (struct evaluate_job){*common, rerun[i]};
        jobs[i].input.records = engines->of[i].records;
        jobs[i].input.drawn = drawn ? &drawn->engine[i].said : NULL;
    }
    if (rerun) {
        code = evaluate_engines(jobs, engines->n, a, started, result);
        times_note(times, "judge", "", began);
    }
    if (rerun && !evaluate_write(a, result, engines->n)) {
        code = evaluate_worse(code, EXIT_OUTPUT);
    }
    for (uint32_t i = 0; i < engines->n && rerun; i++) {
        show(a, &jobs[i].input, &engines->of[i], &result[i], engines->n);
    }
    if (engines->n > 1 && !a->quiet) {
        evaluate_print_summary(result, engines->n);
    }
    if (a->times) {
        times_print(times, result, engines->n);
    }
    for (uint32_t i = 0; i < engines->n; i++) {
        judge_release(&result[i].r);
    }
    free(rerun);
    return code;
}

/* Keeps the commands that make the records again, if records are kept. */
static int keep_reruns(const struct arguments *a,
                       const struct engine_folders *engines)
{
    struct fsdp_error error = {0};
    int status = FSDP_OK;

    for (uint32_t i = 0; i < engines->n && a->records && status == FSDP_OK;
         i++) {
        status = rerun_keep(a, engines->of[i].engine, engines->of[i].records,
                            &error);
    }
    return status == FSDP_OK ? 0 : run_cases_say(&error, status);
}

/* Makes the files of --trace and --pictures for the one case. */
static int draw(const struct arguments *a, const struct engine_folder *of,
                const struct case_list *cases, const struct text *text)
{
    struct fsdp_error error = {0};
    int status = FSDP_OK;

    if (a->trace) {
        status = trace_merge(of->records, &cases->c[0], of->engine, a->trace,
                             &error);
    }
    if (status == FSDP_OK && a->pictures) {
        status = pictures_write(of->records, &cases->c[0], text, a->pictures,
                                &error);
        if (status != FSDP_OK && status != FSDP_ERR_IO) {
            (void)run_cases_say(&error, status);
            return EXIT_INCOMPLETE;
        }
    }
    return status == FSDP_OK ? 0 : run_cases_say(&error, status);
}

/* Whether scripts are drawn beside the cases: in a run of the whole manifest,
 * for engines that the suite plays itself. */
static bool draws_beside(const struct arguments *a,
                         const struct case_list *cases)
{
    return selection_is_whole(a, cases) && !a->adapter && !a->record_only &&
           a->world != WORLD_MPI;
}

static int run(const struct arguments *a, const struct case_list *cases,
               const struct text *text)
{
    struct folder folder = {.temporary = false};
    struct engine_folders engines;
    struct fsdp_error error = {0};
    const char *all[512];
    struct evaluate_input e = {.cases = cases,
                               .text = text,
                               .only = evaluate_only(a, all),
                               .partly = true,
                               .timed = a->times};
    struct times times = {.began = times_now()};
    struct drawn *drawn = NULL;
    int64_t started = (int64_t)time(NULL);
    bool ran = false;
    int code;

    code = a->records
               ? folder_open(a->records, &folder, &error)
               : folder_open_temporary(cases, a->engines.n, &folder, &error);
    if (code != FSDP_OK) {
        folder_close(&folder);
        return run_cases_say(&error, code);
    }
    e.baselines = folder.path;
    folder_sweep(&folder); /* of a run that was killed */
    code = engine_folders_make(&a->engines, folder.path, &engines);
    if (code == 0) {
        code = keep_reruns(a, &engines);
    }
    if (code == 0) {
        code = run_cases(a, &engines, &e, &times);
        ran = true;
    }
    code = code ? code : draw(a, &engines.of[0], cases, text);
    if (code == 0 && !e.stopped && draws_beside(a, cases)) {
        const struct times_span began = times_now();

        code = drawn_beside(a, text, &drawn);
        times_note(&times, "draw", "", began);
    }
    if (ran && engines.n > 0 && !a->record_only &&
        (code == 0 || supervise_interrupted())) {
        code = judge_all(a, &engines, &e, drawn, started, &times);
    }
    free(drawn);
    if (a->times && a->record_only) {
        times_print(&times, NULL, 0);
    }
    folder_sweep(&folder);
    folder_close(&folder);
    return code;
}

/* --dry-run: prints the cases that would be run. */
static int print_cases(const struct case_list *cases)
{
    for (uint32_t i = 0; i < cases->n; i++) {
        char id[CASE_ID_BYTES];

        case_id(&cases->c[i], id);
        printf("%s\n", id);
    }
    return 0;
}

/* Selects the cases and runs them. */
static int select_and_run(struct arguments *a)
{
    struct case_list cases = {NULL, 0};
    struct text text = {NULL, 0, NULL};
    struct fsdp_error error = {0};
    int code;

    if (a->fixtures &&
        fixtures_manifest_check(a->fixtures, &error) != FSDP_OK) {
        fprintf(stderr, "fsdp-cts run: %s\n", error.message);
        return EXIT_BAD_DATA;
    }
    if (text_load(a->text, &text, &error) != FSDP_OK) {
        fprintf(stderr, "fsdp-cts: %s\n", error.message);
        return EXIT_USAGE;
    }
    if (a->adapter) { /* the adapter's engine, which has no name yet */
        a->engines.name[a->engines.n++] = "adapter";
    } else if (a->engines.n == 0) { /* no engine is named: the suite's own */
        a->engines.name[a->engines.n++] = "ref";
        a->engines.name[a->engines.n++] = "impl";
    }
    code = a->n_scripts && a->seed == 0 ? arguments_fresh_seed(a, "seed") : 0;
    code = code || a->n_scripts ? code : selection_make(a, &cases);
    if (code == 0 && a->level < LEVEL_GATHER && !a->adapter) {
        selection_only_shards(&cases);
    }
    code = code ? code : run_options_check_cases(a, &cases);
    isolation_settle(a, &cases);
    supervise_catch_signals();
    if (code == 0) {
        if (a->sample_ranks && !a->quiet) {
            sample_ranks_tell(a, &cases);
        }
        code = a->n_scripts ? drawn_alone(a, &text)
               : a->dry_run ? print_cases(&cases)
                            : run(a, &cases, &text);
    }
    if (supervise_interrupted()) { /* it may have come while a verdict was
                                      printed */
        fprintf(stderr, "fsdp-cts: interrupted\n");
        code = code == 0 ? EXIT_INCOMPLETE : code;
    }
    manifest_release(&cases);
    text_release(&text);
    return code;
}

int command_run(int argc, char **argv)
{
    struct arguments a;
    struct from_report from = {.words = NULL};
    int code = arguments_parse(argc, argv, TAKES, &a);
    const bool earlier = code == 0 && (a.from || a.failed || a.last_failed);

    if (code == 0 && a.help) {
        help();
        return 0;
    }
    if (code == 0 && a.n_rest) {
        fprintf(stderr,
                "fsdp-cts run: '%s' is no option; see: fsdp-cts run "
                "--help\n",
                a.rest[0]);
        return EXIT_USAGE;
    }
    if (code == 0 && earlier) {
        code = from_report(&a, TAKES, &from);
    }
    code = code ? code : run_options_check(&a);
    a.record_only = a.record_only || a.n_shards;
    code = code ? code : select_and_run(&a);
    if (earlier) {
        from_report_release(&from);
    }
    return code;
}
