/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arguments.c - one table of options for all commands.
 */
#include "cli/arguments.h"
#include "kit/special_file.h"
#include "workloads/workload.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum option_code {
    OPTION_ENGINE = 256,
    OPTION_ADAPTER,
    OPTION_WORLD,
    OPTION_LAUNCHER,
    OPTION_RANKS,
    OPTION_WORKLOAD,
    OPTION_STRATEGY,
    OPTION_CASE,
    OPTION_LEVEL,
    OPTION_REQUIREMENT,
    OPTION_RECORDS,
    OPTION_REPORT,
    OPTION_JUNIT,
    OPTION_TEXT,
    OPTION_TIMEOUT,
    OPTION_JOBS,
    OPTION_MUTANT,
    OPTION_PARTIAL_OK,
    OPTION_JSON,
    OPTION_QUIET,
    OPTION_VERBOSE,
    OPTION_BATCH,
    OPTION_TIMEOUT_MS,
    OPTION_RECORD_ONLY,
    OPTION_REPORT_ONLY,
    OPTION_SEEDS,
    OPTION_FIRST_SEED,
    OPTION_TRACE,
    OPTION_PICTURES,
    OPTION_TRACE_EVENTS,
    OPTION_WRITE,
    OPTION_CHECK,
    OPTION_FIXTURES,
    OPTION_SEED,
    OPTION_FRESH_SEED,
    OPTION_ABOUT,
    OPTION_BUNDLE,
    OPTION_EXPLANATIONS,
    OPTION_PARTIAL,
    OPTION_WITHOUT_RECORDS,
};

struct option_row {
    const char *name, *value; /* value: what --help calls it; NULL: none */
    int code;
    unsigned takes; /* 0: every command */
    const char *help;
};

static const struct option_row rows[] = {
    {"engine", "NAME|PATH.so", OPTION_ENGINE, TAKES_ENGINE,
     "the engines to judge, with commas (run: ref,impl); see: list engines"},
    {"adapter", "CMD", OPTION_ADAPTER, TAKES_RUN,
     "a program that plays the engine and writes records (docs/adapters.md)"},
    {"world", "local|threads|mpi", OPTION_WORLD, TAKES_WORLD,
     "how ranks run (local: a process each)"},
    {"launcher", "CMD", OPTION_LAUNCHER, TAKES_WORLD,
     "starts an MPI world ('mpirun -n {K}')"},
    {"timeout", "SECONDS", OPTION_TIMEOUT, TAKES_WORLD,
     "a case without progress for so long has hung (20; an adapter: 200)"},
    {"jobs", "N", OPTION_JOBS, TAKES_WORLD,
     "workers at a time, 1 to 64 (one a processor)"},
    {"ranks", "K,...", OPTION_RANKS, TAKES_SELECTION,
     "only these world sizes; 1 to 64"},
    {"workload", "W,...", OPTION_WORKLOAD, TAKES_SELECTION,
     "only these workloads; see: list workloads"},
    {"strategy", "S,...", OPTION_STRATEGY, TAKES_SELECTION,
     "only these strategies, as full-shard"},
    {"case", "ID,...", OPTION_CASE, TAKES_SELECTION,
     "only these cases; see: list cases"},
    {"seeds", "N", OPTION_SEEDS, TAKES_SELECTION,
     "instead: N random cases of --workload graph"},
    {"first-seed", "S", OPTION_FIRST_SEED, TAKES_SELECTION,
     "the first of their seeds (1)"},
    {"seed", "N", OPTION_SEED, TAKES_SEED,
     "the selected cases with this seed of their data"},
    {"fresh-seed", NULL, OPTION_FRESH_SEED, TAKES_SEED,
     "the same with a seed that nobody knows beforehand; says which"},
    {"level", "L", OPTION_LEVEL, TAKES_JUDGE,
     "only requirements up to this level, by number or name"},
    {"requirement", "ID,...", OPTION_REQUIREMENT, TAKES_JUDGE,
     "only these requirements; see: list requirements"},
    {"report", "FILE.jsonl", OPTION_REPORT, TAKES_REPORT,
     "write the report: a JSON object a line"},
    {"report-only", NULL, OPTION_REPORT_ONLY, TAKES_REPORT_ONLY,
     "whatever the verdict: exit 0 once the report is written"},
    {"junit", "FILE.xml", OPTION_JUNIT, TAKES_JUDGE,
     "write the report in JUnit's form"},
    {"partial-ok", NULL, OPTION_PARTIAL_OK, TAKES_JUDGE,
     "exit 0 if all of a selection passes, 77 if none is claimed"},
    {"record-only", NULL, OPTION_RECORD_ONLY, TAKES_RUN,
     "run and keep records, do not judge; exit 0 if all cases ran"},
    {"trace", "FILE.json", OPTION_TRACE, TAKES_RUN,
     "write what ran when, of one case; for Perfetto"},
    {"pictures", "DIR", OPTION_PICTURES, TAKES_RUN,
     "draw a step of one case: DIR/step.svg and DIR/memory.svg"},
    {"records", "DIR", OPTION_RECORDS, TAKES_RECORDS,
     "keep the records in this folder (in none: they go with the run)"},
    {"fixtures", "DIR", OPTION_FIXTURES, TAKES_GOLDEN,
     "the cases and the unsharded runs of these golden data"},
    {"write", "DIR", OPTION_WRITE, TAKES_FIXTURES, "make them"},
    {"check", "DIR", OPTION_CHECK, TAKES_FIXTURES,
     "make them again and compare"},
    {"bundle", "DIR", OPTION_BUNDLE, TAKES_SUBMIT, "the folder to make"},
    {"about", "FILE.json", OPTION_ABOUT, TAKES_SUBMIT,
     "who submits what, run how and where (docs/submissions.md)"},
    {"explanations", "FILE.json", OPTION_EXPLANATIONS, TAKES_SUBMIT,
     "of all that fails: whose it is, and why"},
    {"partial", NULL, OPTION_PARTIAL, TAKES_SUBMIT,
     "of the cases that have records; else all that are claimed must"},
    {"without-records", NULL, OPTION_WITHOUT_RECORDS, TAKES_SUBMIT,
     "the report alone, which proves nothing"},
    {"text", "FILE", OPTION_TEXT, TAKES_TEXT,
     "the text that gpt learns (the one that ships with the suite)"},
    {"mutant", "NAME", OPTION_MUTANT, TAKES_MUTANT,
     "make the engine wrong in this way; see: list mutants"},
    {"json", NULL, OPTION_JSON, TAKES_JSON, "print JSON"},
    {"batch", "FILE", OPTION_BATCH, TAKES_WORKER, "cases to run"},
    {"trace-events", NULL, OPTION_TRACE_EVENTS, TAKES_WORKER, "take times"},
    {"timeout-ms", "N", OPTION_TIMEOUT_MS, TAKES_WORKER, "watchdog"},
    {"quiet", NULL, OPTION_QUIET, 0, "no progress, no tables"},
    {"verbose", NULL, OPTION_VERBOSE, TAKES_JUDGE,
     "every case, requirement and different failure"},
    {"help", NULL, 'h', 0, "this text"},
};
enum {
    N_ROWS = sizeof rows / sizeof rows[0]
};

static int usage(const char *format, const char *value, const char *right)
{
    fprintf(stderr, "fsdp-cts: ");
    /* Formats are this file's own. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    fprintf(stderr, format, value, right);
#pragma GCC diagnostic pop
    fprintf(stderr, "\n");
    return EXIT_USAGE;
}

static int split(char *value, struct name_list *out)
{
    char *rest = value;
    char *word;

    while ((word = strtok_r(rest, ",", &rest))) {
        if (out->n == ARGUMENTS_MAX) {
            return usage("%s%s", "a list has more than 64 values", "");
        }
        out->name[out->n++] = word;
    }
    out->name[out->n] = NULL;
    return out->n ? 0 : usage("%s%s", "a list is empty", "");
}

static bool number(const char *text, unsigned long least, unsigned long most,
                   uint32_t *out)
{
    char *end;
    unsigned long n;

    errno = 0;
    n = strtoul(text, &end, 10);
    if (errno || end == text || *end || text[0] == '-' || text[0] == '+' ||
        n < least || n > most) {
        return false;
    }
    *out = (uint32_t)n;
    return true;
}

static int parse_ranks(char *value, struct arguments *out)
{
    struct name_list list = {.n = 0};

    if (split(value, &list)) {
        return EXIT_USAGE;
    }
    for (uint32_t i = 0; i < list.n; i++) {
        if (!number(list.name[i], 1, WORLD_MAX_RANKS,
                    &out->ranks[out->n_ranks])) {
            return usage("--ranks '%s': must be numbers from 1 to 64%s",
                         list.name[i], "");
        }
        out->n_ranks += out->n_ranks + 1 < ARGUMENTS_MAX;
    }
    return 0;
}

static int parse_world(const char *value, struct arguments *out)
{
    static const char *const names[] = {"local", "threads", "mpi"};

    for (uint32_t i = 0; i < 3; i++) {
        if (strcmp(names[i], value) == 0) {
            out->world = i;
            return 0;
        }
    }
    return usage("unknown world '%s': local, threads or mpi%s", value, "");
}

static int parse_level(const char *value, struct arguments *out)
{
    if (number(value, 0, N_LEVELS - 1, &out->level)) {
        return 0;
    }
    for (uint32_t i = 0; i < N_LEVELS; i++) {
        if (strcmp(requirement_level_name(i), value) == 0) {
            out->level = i;
            return 0;
        }
    }
    return usage("unknown level '%s': 0 to 8, or a name as in: list "
                 "requirements%s",
                 value, "");
}

static int check_workloads(const struct name_list *list)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (!workload_find(list->name[i])) {
            return usage("unknown workload '%s'; see: fsdp-cts list "
                         "workloads%s",
                         list->name[i], "");
        }
    }
    return 0;
}

static int check_strategies(const struct name_list *list)
{
    for (uint32_t i = 0; i < list->n; i++) {
        uint32_t ignored;
        if (!case_value(case_strategy_name, list->name[i], &ignored)) {
            return usage("unknown strategy '%s': full-shard, shard-grad-op, "
                         "no-shard, hybrid-shard or hybrid-shard-zero2%s",
                         list->name[i], "");
        }
    }
    return 0;
}

static int check_requirements(const struct name_list *list)
{
    for (uint32_t i = 0; i < list->n; i++) {
        const struct requirement *const *r = requirements;
        while (*r && strcmp((*r)->id, list->name[i]) != 0) {
            r++;
        }
        if (!*r) {
            return usage("unknown requirement '%s'; see: fsdp-cts list "
                         "requirements%s",
                         list->name[i], "");
        }
    }
    return 0;
}

/* A path that cannot be written must be known before hours of work. */
static int check_writable(const char *path)
{
    char partial[4096];
    struct stat s;
    FILE *f;

    if (stat(path, &s) == 0 && S_ISDIR(s.st_mode)) {
        return usage("cannot write %s: %s", path, strerror(EISDIR));
    }
    if (special_file(path)) { /* a pipe is opened once, by who writes to it */
        return access(path, W_OK) == 0
                   ? 0
                   : usage("cannot write %s: %s", path, strerror(errno));
    }
    snprintf(partial, sizeof partial, "%s.partial", path);
    f = fopen(partial, "we");
    if (!f) {
        return usage("cannot write %s: %s", path, strerror(errno));
    }
    fclose(f);
    unlink(partial);
    return 0;
}

static int fresh_seed(struct arguments *out)
{
    do {
        if (getrandom(&out->seed, sizeof out->seed, 0) != sizeof out->seed) {
            return usage("no random number: %s%s", strerror(errno), "");
        }
    } while (out->seed == 0);
    fprintf(stderr, "fsdp-cts: --seed %u\n", out->seed);
    return 0;
}

static int take(int code, char *value, struct arguments *out)
{
    uint32_t seconds;

    switch (code) {
    case OPTION_ENGINE:
        return split(value, &out->engines);
    case OPTION_WRITE:
        out->write = value;
        return 0;
    case OPTION_CHECK:
        out->check = value;
        return 0;
    case OPTION_FIXTURES:
        out->fixtures = value;
        return 0;
    case OPTION_SEED:
        return number(value, 1, UINT32_MAX, &out->seed)
                   ? 0
                   : usage("--seed '%s': must be a number from 1 to "
                           "4294967295%s",
                           value, "");
    case OPTION_FRESH_SEED:
        return fresh_seed(out);
    case OPTION_ABOUT:
        out->about = value;
        return 0;
    case OPTION_BUNDLE:
        out->bundle = value;
        return 0;
    case OPTION_EXPLANATIONS:
        out->explanations = value;
        return 0;
    case OPTION_PARTIAL:
        out->partial = true;
        return 0;
    case OPTION_WITHOUT_RECORDS:
        out->without_records = true;
        return 0;
    case OPTION_ADAPTER:
        out->adapter = value;
        return 0;
    case OPTION_WORLD:
        return parse_world(value, out);
    case OPTION_LAUNCHER:
        out->launcher = value;
        return 0;
    case OPTION_RANKS:
        return parse_ranks(value, out);
    case OPTION_WORKLOAD:
        return split(value, &out->workloads) || check_workloads(&out->workloads)
                   ? EXIT_USAGE
                   : 0;
    case OPTION_STRATEGY:
        return split(value, &out->strategies) ||
                       check_strategies(&out->strategies)
                   ? EXIT_USAGE
                   : 0;
    case OPTION_CASE:
        return split(value, &out->cases);
    case OPTION_LEVEL:
        return parse_level(value, out);
    case OPTION_REQUIREMENT:
        return split(value, &out->requirements) ||
                       check_requirements(&out->requirements)
                   ? EXIT_USAGE
                   : 0;
    case OPTION_RECORDS:
        out->records = value;
        return 0;
    case OPTION_REPORT:
        out->report = value;
        return check_writable(value);
    case OPTION_JUNIT:
        out->junit = value;
        return check_writable(value);
    case OPTION_TRACE:
        out->trace = value;
        return check_writable(value);
    case OPTION_PICTURES:
        out->pictures = value;
        return 0;
    case OPTION_TRACE_EVENTS:
        out->trace_events = true;
        return 0;
    case OPTION_TEXT:
        out->text = value;
        return 0;
    case OPTION_TIMEOUT:
        if (!number(value, 1, 86400, &seconds)) {
            return usage("--timeout '%s': must be seconds, 1 to 86400%s", value,
                         "");
        }
        out->timeout_ms = seconds * 1000;
        return 0;
    case OPTION_JOBS:
        return number(value, 1, 64, &out->jobs)
                   ? 0
                   : usage("--jobs '%s': must be a number from 1 to 64%s",
                           value, "");
    case OPTION_MUTANT:
        out->mutant = value;
        return 0;
    case OPTION_BATCH:
        out->batch = value;
        return 0;
    case OPTION_TIMEOUT_MS:
        return number(value, 1, 86400000, &out->timeout_ms)
                   ? 0
                   : usage("--timeout-ms '%s'%s", value, "");
    case OPTION_SEEDS:
        return number(value, 1, 1000000, &out->n_seeds)
                   ? 0
                   : usage("--seeds '%s': must be a number from 1 to 1000000%s",
                           value, "");
    case OPTION_FIRST_SEED:
        out->from_a_seed = true;
        return number(value, 0, UINT32_MAX, &out->first_seed)
                   ? 0
                   : usage("--first-seed '%s': must be a number from 0 to "
                           "4294967295%s",
                           value, "");
    case OPTION_PARTIAL_OK:
        out->partial_ok = true;
        return 0;
    case OPTION_RECORD_ONLY:
        out->record_only = true;
        return 0;
    case OPTION_REPORT_ONLY:
        out->report_only = true;
        return 0;
    case OPTION_JSON:
        out->json = true;
        return 0;
    case OPTION_QUIET:
        out->quiet = true;
        return 0;
    case OPTION_VERBOSE:
        out->verbose = true;
        return 0;
    default:
        out->help = true;
        return 0;
    }
}

int arguments_parse(int argc, char **argv, unsigned takes,
                    struct arguments *out)
{
    struct option known[N_ROWS + 1] = {{0}};
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int code;

    *out = (struct arguments){.launcher = "mpirun -n {K}",
                              .level = N_LEVELS,
                              .timeout_ms = 20000,
                              .first_seed = 1,
                              .jobs = processors < 1    ? 1
                                      : processors > 64 ? 64
                                                        : (uint32_t)processors};
    for (int i = 0, n = 0; i < N_ROWS; i++) {
        if (!rows[i].takes || (rows[i].takes & takes)) {
            known[n++] = (struct option){
                rows[i].name, rows[i].value ? required_argument : no_argument,
                NULL, rows[i].code};
        }
    }
    opterr = 0;
    optind = 1;
    while ((code = getopt_long(argc, argv, ":h", known, NULL)) != -1) {
        if (code == '?') {
            return usage("unknown option '%s'; see: fsdp-cts %s --help",
                         argv[optind - 1], argv[0]);
        }
        if (code == ':') {
            return usage("option '%s' needs a value; see: fsdp-cts %s --help",
                         argv[optind - 1], argv[0]);
        }
        if (take(code, optarg, out)) {
            return EXIT_USAGE;
        }
    }
    out->rest = (const char *const *)(argv + optind);
    out->n_rest = argc - optind;
    return 0;
}

void arguments_help(unsigned takes)
{
    for (int i = 0; i < N_ROWS; i++) {
        char left[40];
        if (rows[i].takes && !(rows[i].takes & takes)) {
            continue;
        }
        snprintf(left, sizeof left, "--%s%s%s", rows[i].name,
                 rows[i].value ? " " : "", rows[i].value ? rows[i].value : "");
        printf("  %-28s %s\n", left, rows[i].help);
    }
}
