/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_bench.c - how fast: operators, collectives, whole steps.
 */
#include "cli/commands.h"
#include "cli/line/arguments.h"
#include "cli/line/version.h"
#include "models/text.h"
#include "run/play/engine_claims.h"
#include "run/worker/engine_load.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_life.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct request {
    struct bench_plan plan;
    const char *engines[BENCH_MAX_ENGINES];
    const char *json, *commit;
    bool help;
};

static const struct {
    const char *name;
    int (*run)(struct bench_plan *plan);
} parts[] = {{"operators", bench_operators}, {"collectives", bench_collectives},
             {"steps", bench_steps},         {"gpu", bench_gpu},
             {"shares", bench_shares},       {"cluster", bench_cluster}};
enum {
    N_PARTS = sizeof(parts) / sizeof(parts[0]),
    N_USUAL = N_PARTS - 1 /* without any named, these are measured */
};

#define AT(field) .at = offsetof(struct request, field)

/* The words of a list; the value is changed at its commas. */
static int take_engines(const struct option_row *row, char *value,
                        void *options)
{
    struct request *const r = options;
    char *rest = NULL;

    r->plan.n_engines = 0;
    for (char *word = strtok_r(value, ",", &rest); word;
         word = strtok_r(NULL, ",", &rest)) {
        if (r->plan.n_engines == BENCH_MAX_ENGINES) {
            return option_wrong(row, word);
        }
        r->engines[r->plan.n_engines++] = word;
    }
    return r->plan.n_engines ? 0 : option_wrong(row, "");
}

static int take_ranks(const struct option_row *row, char *value, void *options)
{
    struct bench_plan *const plan = &((struct request *)options)->plan;
    char *rest = NULL;

    plan->n_ranks = 0;
    for (char *word = strtok_r(value, ",", &rest); word;
         word = strtok_r(NULL, ",", &rest)) {
        uint64_t n;

        if (plan->n_ranks == BENCH_MAX_RANKS_GIVEN ||
            !option_in_bounds(row, word, &n)) {
            return option_wrong(row, word);
        }
        plan->ranks[plan->n_ranks++] = (uint32_t)n;
    }
    return plan->n_ranks ? 0 : option_wrong(row, "");
}

static const struct option_row rows[] = {
    {"engine", "NAME,...", 0, "engines (impl,ref); or paths of plug-ins",
     .take = take_engines, .right = "one of up to 8 engines"},
    {"ranks", "N,...", 0, "sizes of worlds (1,2)", .take = take_ranks,
     .least = 1, .most = 64, .right = "up to 8 numbers from 1 to 64"},
    {"samples", "N", 0, "of each result (12)", option_number,
     AT(plan.report.samples), .least = 1, .most = 10000},
    {"filter", "TEXT", 0, "only results whose names contain it", option_text,
     AT(plan.report.filter)},
    {"without", "TEXT", 0, "none whose names contain it", option_text,
     AT(plan.report.without)},
    {"alone", NULL, 0, "steps: not the model without an engine beside",
     option_flag, AT(plan.alone)},
    {"sgd", NULL, 0,
     "steps: with SGD in place of AdamW, for an engine that knows no other; "
     "names end with it",
     option_flag, AT(plan.sgd)},
    {"small", NULL, 0,
     "gpu, shares: small shapes of a GPU, to try it; measures nothing",
     option_flag, AT(plan.small)},
    {"cluster", "FILE", 0, "cluster: writes the last one that was measured",
     option_text, AT(plan.cluster)},
    {"mpi", NULL, 0, "cluster: in the world that mpirun has started",
     option_flag, AT(plan.mpi)},
    {"json", "FILE", 0, "writes all samples (docs/performance.md)", option_text,
     AT(json)},
    {"commit", "TEXT", 0, "for the file, instead of what was built",
     option_text, AT(commit)},
    {"help", NULL, 0, "this text", option_flag, AT(help)},
};
static const struct option_table table = OPTION_TABLE(rows);

static void help(void)
{
    printf(
        "usage: fsdp-cts bench [operators] [collectives] [steps] [gpu] "
        "[shares]\n"
        "                      [OPTION ...]\n"
        "\n"
        "Measures; without a part, these five. Everything is measured beside\n"
        "something else in turns, so the ratios mean more than the rates.\n"
        "`shares` says where the time of those steps went, of steps of its\n"
        "own, since taking times costs time: attention, gemm, rest,\n"
        "communication that is exposed, idle; and communication in all.\n"
        "\n"
        "`fsdp-cts bench cluster` describes this machine as plan's --cluster\n"
        "wants it, and times steps of the first engine there.\n"
        "\n"
        "example:\n"
        "  fsdp-cts bench steps --engine impl --filter gpt-256 --samples 30\n"
        "\n");
    options_help(&table);
    printf("\nexit: 0 measured, 1 something failed, 64 usage error\n");
}

static const char *part_name(uint32_t i)
{
    return i < N_PARTS ? parts[i].name : NULL;
}

static int choose(int n, char **names, bool *chosen)
{
    for (int i = 0; i < n; i++) {
        int part = 0;

        while (part < N_PARTS && strcmp(names[i], parts[part].name) != 0) {
            part++;
        }
        if (part == N_PARTS) {
            return option_unknown("part", names[i], NULL, part_name);
        }
        chosen[part] = true;
    }
    return 0;
}

/* "impl", or what a plug-in calls itself. */
static int load(struct request *r)
{
    struct bench_plan *plan = &r->plan;

    FSDP_TRY(engine_load("ref", &plan->plain, &plan->error));
    for (uint32_t e = 0; e < plan->n_engines; e++) {
        FSDP_TRY(
            engine_load(r->engines[e], &plan->engine[e].engine, &plan->error));
        FSDP_TRY(
            engine_trains(r->engines[e], plan->engine[e].engine, &plan->error));
        plan->engine[e].label = plan->engine[e].engine->name;
        if (engine_claims(plan->engine[e].engine, "serial")) {
            snprintf(plan->error.message, sizeof(plan->error.message),
                     "engine %.60s plays all ranks in one process: there is "
                     "nothing to compare",
                     r->engines[e]);
            return FSDP_ERR_UNSUPPORTED;
        }
    }
    return FSDP_OK;
}

static int measure(struct request *r, const bool *chosen)
{
    struct bench_failure failure = {0};
    bool all = true;

    for (int i = 0; i < N_PARTS; i++) {
        all = all && !chosen[i];
    }
    FSDP_TRY(bench_places(&r->plan));
    for (int i = 0; i < N_PARTS; i++) {
        if ((all && i < N_USUAL) || chosen[i]) {
            bench_failed(&r->plan, &failure, parts[i].run(&r->plan));
        }
    }
    /* Results are written even if another measurement failed. */
    bench_failed(
        &r->plan, &failure,
        bench_write(&r->plan.report, r->json, r->commit, &r->plan.error));
    return bench_first_failure(&r->plan, &failure);
}

int command_bench(int argc, char **argv)
{
    struct request r = {
        .plan = {.report = {.samples = 12, .terminal = isatty(2) != 0},
                 .n_engines = 2,
                 .ranks = {1, 2},
                 .n_ranks = 2},
        .engines = {"impl", "ref"},
        .commit = version_commit()};
    bool chosen[N_PARTS] = {false};
    struct text text = {0};
    int status;
    int rest;
    int code = options_read(&table, argc, argv, &r, &rest);

    if (r.help && code == 0) {
        help();
        return 0;
    }
    code = code ? code : choose(argc - rest, argv + rest, chosen);
    if (code) {
        return code;
    }
    status = text_load(NULL, &text, &r.plan.error);
    r.plan.text = text.bytes;
    r.plan.text_bytes = text.n;
    if (status == FSDP_OK) {
        status = load(&r);
        code = status == FSDP_OK ? 0 : EXIT_USAGE; /* no engine to measure */
    }
    if (status == FSDP_OK) {
        status = measure(&r, chosen);
    }
    if (status != FSDP_OK) {
        fprintf(stderr, "fsdp-cts bench: %s\n",
                r.plan.error.message[0] ? r.plan.error.message
                                        : fsdp_status_text(status));
    }
    bench_release(&r.plan.report);
    text_release(&text);
    return status == FSDP_OK ? 0 : code ? code : 1;
}
