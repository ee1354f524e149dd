/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_options.c - checks which options of `run` go together, and with which
 * cases.
 */
#include "cli/choose/run_options.h"

#include "cli/line/exit_codes.h"
#include "cli/line/on_path.h"

#include <stdio.h>

/* A combination of options that is wrong, and the text that says what would be
 * right. */
struct rule {
    bool broken;
    const char *says;
};

static int check(const struct rule *rule, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (rule[i].broken) {
            fprintf(stderr, "fsdp-cts run: %s\n", rule[i].says);
            return EXIT_USAGE;
        }
    }
    return 0;
}

/* ---- Options ---- */

static int check_program(const char *option, const char *words)
{
    char program[1024] = "";

    (void)sscanf(words, "%1023s", program);
    if (!is_on_path(program)) {
        fprintf(stderr, "fsdp-cts run: %s needs '%s', which is not there\n",
                option, program);
        return EXIT_USAGE;
    }
    return 0;
}

/* Whether options are given that drawn scripts have no use for. */
static bool goes_without_scripts(const struct arguments *a)
{
    return a->script || a->fixtures || a->n_seeds || a->n_shards ||
           a->cases.n + a->workloads.n + a->strategies.n + a->n_ranks +
                   a->requirements.n >
               0 ||
           a->records || a->report || a->junit || a->trace || a->pictures ||
           a->record_only || a->dry_run || a->cover || a->world == WORLD_MPI;
}

int run_options_check(const struct arguments *a)
{
    const bool one = a->engines.n == 1;
    /* The ranks are not processes of ours, so that no program can be put on
     * them. */
    const bool apart =
        a->adapter || a->world != WORLD_LOCAL || a->isolate || a->n_scripts;
    const struct rule rule[] = {
        {a->adapter &&
             (a->engines.n || a->mutant || a->trace || a->world != WORLD_LOCAL),
         "--adapter is in place of --engine, --world, --mutant and --trace"},
        /* Requirements compare cases of one part with those of others. */
        {a->n_shards && (!a->records || a->report || a->junit),
         "--shard keeps records and judges nothing: it needs --records, and "
         "verify takes all parts"},
        {a->trace && !one, "--trace is about one engine; see: --engine"},
        {a->pictures && !one && !a->adapter,
         "--pictures is about one engine; see: --engine"},
        {a->fail_fast &&
             (a->adapter || a->record_only || a->n_shards || a->n_scripts),
         "--fail-fast judges the cases of engines as they end: it goes with "
         "none of --adapter, --record-only, --shard and --scripts"},
        {a->wrap && a->debug, "--debug and --wrap are one or the other"},
        {a->wrap && apart,
         "--wrap is about ranks of the local world that have their rights: it "
         "goes with none of --adapter, --world, --isolate and --scripts"},
        {a->debug && apart,
         "--debug is about ranks of the local world that have their rights: it "
         "goes with none of --adapter, --world, --isolate and --scripts"},
        {a->debug && !one, "--debug is about one engine; see: --engine"},
        {a->isolate && a->no_isolate, "--isolate and --no-isolate say the "
                                      "opposite of each other: give one"},
        {a->sample_ranks && (a->adapter || a->n_scripts),
         "--sample-ranks is about what this program records: it goes with none "
         "of --adapter and --scripts"},
        {a->n_scripts && goes_without_scripts(a),
         "--scripts N draws cases of its own, and keeps nothing: of the other "
         "options it takes --engine, --adapter, --mutant, --seed, --jobs, "
         "--timeout, --text and --quiet; for more: --script ID; to see them: "
         "fsdp-cts list scripts --draw N"},
    };
    const int code = check(rule, sizeof(rule) / sizeof(rule[0]));

    if (code == 0 && (a->wrap || a->debug)) {
        return a->wrap ? check_program("--wrap", a->wrap)
                       : check_program("--debug", "gdb");
    }
    return code;
}

/* ---- Options that are about so many cases or ranks ---- */

static int check_rank(const struct arguments *a, const struct run_case *c)
{
    char id[CASE_ID_BYTES];

    if (a->debug > c->ranks) {
        fprintf(stderr,
                "fsdp-cts run: --debug %u: the case has ranks 0 to %u\n",
                a->debug - 1, c->ranks - 1);
        return EXIT_USAGE;
    }
    if (a->sample_ranks > c->ranks) {
        case_id(c, id);
        fprintf(stderr, "fsdp-cts run: --sample-ranks %u: %s has %u ranks\n",
                a->sample_ranks, id, c->ranks);
        return EXIT_USAGE;
    }
    return 0;
}

int run_options_check_cases(const struct arguments *a,
                            const struct case_list *cases)
{
    const bool one = cases->n == 1;
    const struct rule rule[] = {
        {a->trace && !one, "--trace is about one case; see: --case"},
        {a->pictures && !one, "--pictures is about one case; see: --case"},
        {a->debug && !one, "--debug is about one case; see: --case"},
    };
    int code = check(rule, sizeof(rule) / sizeof(rule[0]));

    for (uint32_t i = 0; i < cases->n && code == 0; i++) {
        code = check_rank(a, &cases->c[i]);
    }
    return code;
}
