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

enum {
    MOST_SAMPLES = 10000,
    MOST_RANKS = 64
};

struct request {
    struct bench_plan plan;
    const char *engines[BENCH_MAX_ENGINES];
    const char *json, *commit;
};

static const struct {
    const char *name;
    int (*run)(struct bench_plan *plan);
} parts[] = {{"operators", bench_operators}, {"collectives", bench_collectives},
             {"steps", bench_steps},         {"gpu", bench_gpu},
             {"shares", bench_shares},       {"cluster", bench_cluster}};
enum {
    N_PARTS = sizeof(parts) / sizeof(parts[0]),
    N_USUAL = N_PARTS - 1 /* who asks for none gets these */
};

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
        "\n"
        "  --engine NAME,...  engines (impl,ref); or paths of plug-ins\n"
        "  --ranks N,...      sizes of worlds (1,2)\n"
        "  --samples N        of each result (12)\n"
        "  --filter TEXT      only results whose names contain it\n"
        "  --without TEXT     none whose names contain it\n"
        "  --alone            steps: not the model without an engine beside\n"
        "  --sgd              steps: with SGD in place of AdamW, for an\n"
        "                     engine that knows no other; names end with it\n"
        "  --small            gpu, shares: small shapes of a GPU, to try it;\n"
        "                     measures nothing\n"
        "  --cluster FILE     cluster: writes the last one that was measured\n"
        "  --mpi              cluster: in the world that mpirun has started\n"
        "  --json FILE        writes all samples (docs/performance.md)\n"
        "  --commit TEXT      for the file, instead of what was built\n"
        "  --help\n"
        "\n"
        "exit: 0 measured, 1 something failed, 64 usage error\n");
}

static int usage(const char *what, const char *which)
{
    fprintf(stderr, "fsdp-cts bench: %s '%.80s'; see fsdp-cts bench --help\n",
            what, which);
    return EXIT_USAGE;
}

static bool number(const char *text, uint32_t most, uint32_t *out)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);

    *out = (uint32_t)n;
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && n >= 1 &&
           n <= most;
}

/* The words of a list; the argument is changed at its commas. */
static int parse_engines(char *list, struct request *r)
{
    char *rest = NULL;

    r->plan.n_engines = 0;
    for (char *word = strtok_r(list, ",", &rest); word;
         word = strtok_r(NULL, ",", &rest)) {
        if (r->plan.n_engines == BENCH_MAX_ENGINES) {
            return usage("too many engines at", word);
        }
        r->engines[r->plan.n_engines++] = word;
    }
    return r->plan.n_engines ? 0 : usage("no engine in", "");
}

static int parse_ranks(char *list, struct request *r)
{
    char *rest = NULL;

    r->plan.n_ranks = 0;
    for (char *word = strtok_r(list, ",", &rest); word;
         word = strtok_r(NULL, ",", &rest)) {
        if (r->plan.n_ranks == BENCH_MAX_RANKS_GIVEN ||
            !number(word, MOST_RANKS, &r->plan.ranks[r->plan.n_ranks])) {
            return usage("--ranks wants up to 8 numbers from 1 to 64, not",
                         word);
        }
        r->plan.n_ranks++;
    }
    return r->plan.n_ranks ? 0 : usage("no rank in", "");
}

static int parse_option(const char *name, char *value, struct request *r)
{
    struct bench_report *report = &r->plan.report;

    if (!value) {
        return usage("a value is missing behind, or there is no", name);
    }
    if (strcmp(name, "--engine") == 0) {
        return parse_engines(value, r);
    }
    if (strcmp(name, "--ranks") == 0) {
        return parse_ranks(value, r);
    }
    if (strcmp(name, "--samples") == 0) {
        return number(value, MOST_SAMPLES, &report->samples)
                   ? 0
                   : usage("--samples wants 1 to 10000, not", value);
    }
    if (strcmp(name, "--filter") == 0) {
        report->filter = value;
    } else if (strcmp(name, "--without") == 0) {
        report->without = value;
    } else if (strcmp(name, "--cluster") == 0) {
        r->plan.cluster = value;
    } else if (strcmp(name, "--json") == 0) {
        r->json = value;
    } else if (strcmp(name, "--commit") == 0) {
        r->commit = value;
    } else {
        return usage("unknown option", name);
    }
    return 0;
}

static int parse(int argc, char **argv, struct request *r, bool *chosen)
{
    for (int i = 1; i < argc; i++) {
        int part = 0;
        while (part < N_PARTS && strcmp(argv[i], parts[part].name) != 0) {
            part++;
        }
        if (part < N_PARTS) {
            chosen[part] = true;
        } else if (strcmp(argv[i], "--alone") == 0) {
            r->plan.alone = true;
        } else if (strcmp(argv[i], "--sgd") == 0) {
            r->plan.sgd = true;
        } else if (strcmp(argv[i], "--mpi") == 0) {
            r->plan.mpi = true;
        } else if (strcmp(argv[i], "--small") == 0) {
            r->plan.small = true;
        } else if (argv[i][0] != '-') {
            return usage(
                "there are operators, collectives, steps, gpu, shares and "
                "cluster, no",
                argv[i]);
        } else {
            int code =
                parse_option(argv[i], i + 1 < argc ? argv[i + 1] : NULL, r);
            if (code) {
                return code;
            }
            i++;
        }
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
    /* What was measured is written, whatever failed beside it. */
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
    int code;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            help();
            return 0;
        }
    }
    code = parse(argc, argv, &r, chosen);
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
