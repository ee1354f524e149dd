/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_run.c - the main job: run the unsharded baselines, run the engine,
 * judge what was recorded.
 */
#include "cli/adapter.h"
#include "cli/commands.h"
#include "cli/evaluate.h"
#include "cli/folder.h"
#include "cli/miniature.h"
#include "cli/selection.h"
#include "cli/supervise.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    TAKES = TAKES_ENGINE | TAKES_SELECTION | TAKES_JUDGE | TAKES_WORLD |
            TAKES_RECORDS | TAKES_TEXT | TAKES_MUTANT | TAKES_RUN | TAKES_SEED |
            TAKES_GOLDEN
};

static void help(void)
{
    printf(
        "usage: fsdp-cts run [OPTION ...]\n\n"
        "Runs an engine through the suite's cases and says, with evidence,\n"
        "whether its loss curve is bit-exact, its peak memory as the closed\n"
        "form says, and its collectives the right number and size.\n\n");
    arguments_help(TAKES);
    printf("\nexit: 0 conformant, 1 not conformant, 2 incomplete (a selection "
           "is, unless\n--partial-ok), 64 usage error, 77 skipped (a selection "
           "that "
           "is not claimed)\n");
}

/* What else a rerun of one case has to say. */
static void make_rerun(const struct arguments *a, const char *engine,
                       char text[1024])
{
    static const char *const world[] = {"local", "threads", "mpi"};
    size_t n;

    snprintf(text, 1024, "fsdp-cts run --engine %s", engine);
    n = strlen(text);
    if (a->world != WORLD_LOCAL) {
        snprintf(text + n, 1024 - n, " --world %s", world[a->world]);
        n = strlen(text);
    }
    if (a->adapter) {
        snprintf(text, 1024, "fsdp-cts run --adapter '%s'", a->adapter);
        n = strlen(text);
    }
    if (a->mutant) {
        snprintf(text + n, 1024 - n, " --mutant %s", a->mutant);
        n = strlen(text);
    }
    if (a->text) {
        snprintf(text + n, 1024 - n, " --text %s", a->text);
        n = strlen(text);
    }
    if (a->seed) {
        snprintf(text + n, 1024 - n, " --seed %u", a->seed);
        n = strlen(text);
    }
    snprintf(text + n, 1024 - n, " --case ");
}

/* An adapter starts a program of its own, and often a slow one: it may be
 * silent for ten times as long as a case of ours. */
static int run_adapter(const struct arguments *a, const struct case_list *cases,
                       const struct text *text, const char *records,
                       struct case_list *claimed, struct fsdp_error *error)
{
    const struct adapter_job job = {.command = a->adapter,
                                    .records = records,
                                    .cases = cases,
                                    .text = text,
                                    .timeout_ms = a->timeout_ms * 10,
                                    .quiet = a->quiet,
                                    .claimed = claimed};

    return adapter_run(&job, error);
}

/* The unsharded runs of these cases, which the suite makes. */
static int run_baselines(const struct supervise_job *base,
                         const struct case_list *cases, const char *title,
                         struct fsdp_error *error)
{
    struct supervise_engine said = {.known = false};
    struct supervise_job job = *base;
    struct case_list baselines;
    int status =
        selection_baselines(cases, &baselines) == 0 ? FSDP_OK : FSDP_ERR_NOMEM;

    if (status == FSDP_OK && baselines.n) {
        job.cases = baselines.c;
        job.n_cases = baselines.n;
        job.engine = "unsharded";
        job.mutant = NULL;
        job.world = WORLD_LOCAL;
        job.title = title;
        status = supervise(&job, &said, error);
    }
    manifest_release(&baselines);
    return status;
}

static int run_cases(const struct arguments *a, const char *engine,
                     const struct case_list *cases, const struct text *text,
                     const char *records)
{
    struct case_list claimed = {NULL, 0};
    struct supervise_engine said = {.known = false};
    struct fsdp_error error = {0};
    struct supervise_job job = {.cases = cases->c,
                                .n_cases = cases->n,
                                .records = records,
                                .engine = engine,
                                .mutant = a->mutant,
                                .text = a->text,
                                .world = a->world,
                                .launcher = a->launcher,
                                .timeout_ms = a->timeout_ms,
                                .n_workers = a->jobs,
                                .title = a->quiet ? NULL : engine};
    int status;
    int code = 0;

    /* The engine first: if it cannot be loaded, that is known at once, and
     * whatever it writes, the baselines come from the suite. */
    if (a->adapter) {
        status = run_adapter(a, cases, text, records, &claimed, &error);
    } else {
        status = supervise(&job, &said, &error);
    }
    if (status == FSDP_OK) {
        status = run_baselines(&job, a->adapter ? &claimed : cases,
                               a->quiet ? NULL : "baseline", &error);
    }
    if (status != FSDP_OK) {
        if (!supervise_interrupted()) { /* else command_run says so */
            fprintf(stderr, "fsdp-cts: %s\n",
                    error.message[0] ? error.message
                                     : fsdp_status_text(status));
        }
        code = status == FSDP_ERR_INVALID ? EXIT_USAGE : EXIT_INCOMPLETE;
    }
    manifest_release(&claimed);
    return code;
}

static int run_engine(const struct arguments *a, const char *engine,
                      const struct case_list *cases, const struct text *text)
{
    struct folder folder = {.temporary = false};
    struct fsdp_error error = {0};
    struct name_list storage;
    const char *all[512];
    struct evaluation e = {
        .cases = cases, .text = text, .only = evaluate_only(a, &storage, all)};
    int64_t started = (int64_t)time(NULL);
    char rerun[1024];
    int code;

    if (folder_open(a->records, &folder, &error) != FSDP_OK) {
        fprintf(stderr, "fsdp-cts: %s\n", error.message);
        folder_close(&folder);
        return EXIT_USAGE;
    }
    e.records = folder.path;
    folder_sweep(&folder); /* of a run that was killed */
    code = run_cases(a, engine, cases, text, folder.path);
    if (code == 0 && !a->record_only) {
        make_rerun(a, engine, rerun);
        code = evaluate_and_report(&e, a, rerun, started);
        if (!a->quiet && !supervise_interrupted()) {
            miniature_print(&e);
        }
    }
    folder_sweep(&folder);
    folder_close(&folder);
    return code;
}

int command_run(int argc, char **argv)
{
    struct arguments a;
    struct case_list cases = {NULL, 0};
    struct text text = {NULL, 0, NULL};
    struct fsdp_error error = {0};
    int code = arguments_parse(argc, argv, TAKES, &a);

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
    if (code) {
        return code;
    }
    if (a.engines.n > 1 && (a.records || a.report || a.junit)) {
        fprintf(stderr, "fsdp-cts run: --records, --report and --junit are "
                        "about one engine\n");
        return EXIT_USAGE;
    }
    if (a.adapter && (a.engines.n || a.mutant || a.world != WORLD_LOCAL)) {
        fprintf(stderr, "fsdp-cts run: --adapter is in place of --engine, "
                        "--world and --mutant\n");
        return EXIT_USAGE;
    }
    if (text_load(a.text, &text, &error) != FSDP_OK) {
        fprintf(stderr, "fsdp-cts: %s\n", error.message);
        return EXIT_USAGE;
    }
    code = selection_make(&a, &cases);
    supervise_catch_signals();
    if (a.engines.n == 0) {
        a.engines.name[a.engines.n++] = "ref";
    }
    /* Every engine has its turn; the first that is not conformant decides. */
    for (uint32_t i = 0;
         i < a.engines.n && code != EXIT_USAGE && !supervise_interrupted();
         i++) {
        int one = run_engine(&a, a.engines.name[i], &cases, &text);
        code = code == 0 || one == EXIT_USAGE ? one : code;
    }
    if (supervise_interrupted()) { /* maybe while a verdict was printed */
        fprintf(stderr, "fsdp-cts: interrupted\n");
        code = code == 0 ? EXIT_INCOMPLETE : code;
    }
    manifest_release(&cases);
    text_release(&text);
    return code;
}
