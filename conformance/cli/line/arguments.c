/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arguments.c - one table of options for all commands: a row says who takes an
 * option, how its value is read, and where it goes in struct arguments.
 */
#include "cli/line/arguments.h"

#include "cases/case_graph.h"
#include "cli/line/arguments_internal.h"
#include "cli/line/near.h"
#include "judge/report/special_file.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define AT(field) offsetof(struct arguments, field)

static int cannot_write(const char *path, int why)
{
    (void)arguments_usage("cannot write %s: %s", path, strerror(why));
    return EXIT_OUTPUT;
}

/* A path that cannot be written must be known before hours of work. */
static int check_writable(const char *path)
{
    char partial[4096];
    struct stat s;
    FILE *f;

    if (stat(path, &s) == 0 && S_ISDIR(s.st_mode)) {
        return cannot_write(path, EISDIR);
    }
    if (special_file(path)) { /* a pipe is opened once, by who writes to it */
        return access(path, W_OK) == 0 ? 0 : cannot_write(path, errno);
    }
    snprintf(partial, sizeof(partial), "%s.partial", path);
    f = fopen(partial, "we");
    if (!f) {
        return cannot_write(path, errno);
    }
    fclose(f);
    unlink(partial);
    return 0;
}

static int take_flag(const struct option_row *row, char *value,
                     struct arguments *out)
{
    bool *const flag = arguments_field(row, out);

    (void)value;
    *flag = true;
    return 0;
}

static int take_text(const struct option_row *row, char *value,
                     struct arguments *out)
{
    const char **const text = arguments_field(row, out);

    *text = value;
    return 0;
}

/* A file that will be written. */
static int take_output(const struct option_row *row, char *value,
                       struct arguments *out)
{
    (void)take_text(row, value, out);
    return check_writable(value);
}

static int take_number(const struct option_row *row, char *value,
                       struct arguments *out)
{
    if (arguments_number(row, value, arguments_field(row, out))) {
        return 0;
    }
    fprintf(stderr, "fsdp-cts: --%s '%s': must be a number from %u to %u\n",
            row->name, value, row->least, row->most);
    return EXIT_USAGE;
}

/* Is kept as one more, so that 0 is none. */
static int take_rank(const struct option_row *row, char *value,
                     struct arguments *out)
{
    const int code = take_number(row, value, out);

    *(uint32_t *)arguments_field(row, out) += code == 0;
    return code;
}

static int take_milliseconds(const struct option_row *row, char *value,
                             struct arguments *out)
{
    return arguments_number(row, value, arguments_field(row, out))
               ? 0
               : arguments_usage("--timeout-ms '%s'%s", value, "");
}

static int take_seconds(const struct option_row *row, char *value,
                        struct arguments *out)
{
    uint32_t seconds;

    if (!arguments_number(row, value, &seconds)) {
        return arguments_usage("--timeout '%s': must be seconds, 1 to 86400%s",
                               value, "");
    }
    out->timeout_ms = seconds * 1000;
    return 0;
}

static int take_first_seed(const struct option_row *row, char *value,
                           struct arguments *out)
{
    out->from_a_seed = true;
    return take_number(row, value, out);
}

int arguments_fresh_seed(struct arguments *out, const char *option)
{
    do {
        if (getrandom(&out->seed, sizeof(out->seed), 0) != sizeof(out->seed)) {
            return arguments_usage("no random number: %s%s", strerror(errno),
                                   "");
        }
    } while (out->seed == 0);
    fprintf(stderr, "fsdp-cts: --%s %u\n", option, out->seed);
    return 0;
}

static int take_fresh_seed(const struct option_row *row, char *value,
                           struct arguments *out)
{
    (void)row;
    (void)value;
    return arguments_fresh_seed(out, "seed");
}

/* "2/3": the second of three. */
static int take_shard(const struct option_row *row, char *value,
                      struct arguments *out)
{
    const struct option_row of = {.least = 1, .most = row->most};
    char *slash = strchr(value, '/');

    if (slash) {
        *slash = '\0';
        if (arguments_number(&of, value, &out->shard) &&
            arguments_number(&of, slash + 1, &out->n_shards) &&
            out->shard <= out->n_shards) {
            return 0;
        }
        *slash = '/';
    }
    return arguments_usage(
        "--shard is one of several, as 1/3 to 3/3, not '%s'%s", value, "");
}

static const struct option_row rows[] = {
    {"engine", "NAME|PATH.so", TAKES_ENGINE,
     "the engines to judge, separated by commas (run: ref,impl); see: list "
     "engines",
     .take = arguments_take_engines, .at = AT(engines), .nth = arguments_engine,
     .choices = "; there are: ref, impl, unsharded, or the path of a .so"},
    {"adapter", "CMD", TAKES_RUN,
     "a program that plays the engine and writes records (docs/adapters.md)",
     .take = take_text, .at = AT(adapter)},
    {"world", "local|threads|mpi", TAKES_WORLD,
     "how ranks run (local: a process each)", .take = arguments_take_name,
     .at = AT(world), .nth = arguments_world,
     .choices = ": local, threads or mpi"},
    {"launcher", "CMD", TAKES_WORLD, "starts an MPI world ('mpirun -n {K}')",
     .take = take_text, .at = AT(launcher)},
    {"timeout", "SECONDS", TAKES_WORLD,
     "a case that makes no progress for so long has hung (20; an adapter: 200)",
     .take = take_seconds, .at = AT(timeout_ms), .least = 1, .most = 86400},
    {"jobs", "N", TAKES_WORLD,
     "how many workers at a time, 1 to 64 (one for each processor)",
     .take = take_number, .at = AT(jobs), .least = 1, .most = 64},
    {"ranks", "K,...", TAKES_SELECTION, "only these world sizes; 1 to 512",
     .take = arguments_take_ranks, .least = 1, .most = WORLD_MAX_RANKS},
    {"workload", "W,...", TAKES_SELECTION,
     "only these workloads; see: list workloads", .take = arguments_take_list,
     .at = AT(workloads), .nth = arguments_workload,
     .choices = "; see: fsdp-cts list workloads"},
    {"strategy", "S,...", TAKES_SELECTION,
     "only these strategies, such as full-shard", .take = arguments_take_list,
     .at = AT(strategies), .nth = arguments_strategy,
     .choices = ": full-shard, shard-grad-op, no-shard, hybrid-shard or "
                "hybrid-shard-zero2"},
    {"case", "ID,...", TAKES_SELECTION,
     "only these cases; patterns are taken, too: mlp.*.k2.*",
     .take = arguments_take_list, .at = AT(cases)},
    {"cover", NULL, TAKES_SELECTION,
     "of these only so many that each part of their ids is in one",
     .take = take_flag, .at = AT(cover)},
    {"script", "TEXT|FILE", TAKES_SELECTION,
     "instead: this script (docs/formats.md), on the case that it names, or a "
     "selected one",
     .take = take_text, .at = AT(script)},
    {"seeds", "N", TAKES_SELECTION,
     "instead: N random cases of --workload graph", .take = take_number,
     .at = AT(n_seeds), .least = 1, .most = 1000000},
    {"first-seed", "S", TAKES_SELECTION, "the first of their seeds (1)",
     .take = take_first_seed, .at = AT(first_seed), .least = 0,
     .most = UINT32_MAX},
    {"drawn-by", "N", TAKES_SELECTION,
     "what such seeds drew with generator N, 1 to 3 (3)", .take = take_number,
     .at = AT(drawn_by), .least = 1, .most = CASE_GRAPH_GENERATOR},
    {"scripts", "N", TAKES_SCRIPTS,
     "instead: N scripts, drawn by lot (docs/scripts.md)", .take = take_number,
     .at = AT(n_scripts), .least = 1, .most = 1000000},
    {"script-seed", "N", TAKES_SCRIPTS,
     "the first seed of the scripts that a whole run draws (a fresh one)",
     .take = take_number, .at = AT(script_seed), .least = 1,
     .most = UINT32_MAX},
    {"seed", "N", TAKES_SEED, "give the data of the selected cases this seed",
     .take = take_number, .at = AT(seed), .least = 1, .most = UINT32_MAX},
    {"draw", "N", TAKES_DRAW, "instead: N scripts that are drawn",
     .take = take_number, .at = AT(n_scripts), .least = 1, .most = 1000000},
    {"seed", "S", TAKES_DRAW, "the first of their seeds (0)",
     .take = take_number, .at = AT(seed), .least = 0, .most = UINT32_MAX},
    {"fresh-seed", NULL, TAKES_SEED,
     "the same with a seed that nobody knows beforehand; prints it",
     .take = take_fresh_seed},
    {"level", "L", TAKES_JUDGE,
     "only requirements up to this level, by number or name",
     .take = arguments_take_name, .at = AT(level), .most = N_LEVELS - 1,
     .nth = arguments_level,
     .choices = ": 0 to 8, or a name as in: list requirements"},
    {"requirement", "ID,...", TAKES_JUDGE,
     "only these; patterns are taken, too: memory.*; see: list requirements",
     .take = arguments_take_list, .at = AT(requirements),
     .nth = arguments_requirement,
     .choices = "; see: fsdp-cts list requirements"},
    {"report", "FILE.jsonl", TAKES_REPORT,
     "write the report: a JSON object a line", .take = take_output,
     .at = AT(report)},
    {"report-only", NULL, TAKES_REPORT_ONLY,
     "exit 0 once the report is written, whatever the verdict",
     .take = take_flag, .at = AT(report_only)},
    {"junit", "FILE.xml", TAKES_JUDGE, "write the report in JUnit's form",
     .take = take_output, .at = AT(junit)},
    {"html", "FILE.html", TAKES_HTML,
     "write a page for a browser, which needs no other file",
     .take = take_output, .at = AT(html)},
    {"against", "FILE.jsonl", TAKES_PAGE,
     "the page compares with this earlier report", .take = take_text,
     .at = AT(against)},
    {"strict", NULL, TAKES_JUDGE,
     "exit 2 for a selection even if all of it passes: it has no verdict",
     .take = take_flag, .at = AT(strict)},
    {"partial-ok", NULL, TAKES_JUDGE,
     "exit 0 also for a whole run whose engine lacks a claim of the core, if "
     "all else passes",
     .take = take_flag, .at = AT(partial_ok)},
    {"from", "REPORT", TAKES_RUN,
     "the cases of this report and, without --engine, those of its engines "
     "that are the suite's",
     .take = take_text, .at = AT(from)},
    {"failed", NULL, TAKES_RUN,
     "with --from: only cases in which something failed", .take = take_flag,
     .at = AT(failed)},
    {"last-failed", NULL, TAKES_RUN,
     "only what failed when --report was last written; all, if nothing did",
     .take = take_flag, .at = AT(last_failed)},
    {"fail-fast", NULL, TAKES_RUN,
     "stop at the first case that fails; cases are judged as they end",
     .take = take_flag, .at = AT(fail_fast)},
    {"dry-run", NULL, TAKES_RUN, "print the ids of the cases, and run none",
     .take = take_flag, .at = AT(dry_run)},
    {"record-only", NULL, TAKES_RUN,
     "run and keep records, do not judge; exit 0 if all cases ran",
     .take = take_flag, .at = AT(record_only)},
    {"shard", "I/N", TAKES_RUN,
     "record one of N parts of the cases, for verify to judge together",
     .take = take_shard, .most = 1000},
    {"sample-ranks", "N", TAKES_RUN | TAKES_WORKER,
     "record whole parameters of only N ranks, drawn by the seed",
     .take = take_number, .at = AT(sample_ranks), .least = 1,
     .most = WORLD_MAX_RANKS},
    {"times", NULL, TAKES_RUN, "say where the time of the run went",
     .take = take_flag, .at = AT(times)},
    {"isolate", NULL, TAKES_RUN,
     "let the kernel refuse ranks what no engine needs, and report attempts",
     .take = take_flag, .at = AT(isolate)},
    {"no-isolate", NULL, TAKES_RUN,
     "do not isolate; a whole run does it by itself", .take = take_flag,
     .at = AT(no_isolate)},
    {"debug", "RANK", TAKES_RUN,
     "run gdb on this rank of the one case: the others wait, and nothing has "
     "a deadline",
     .take = take_rank, .at = AT(debug), .most = WORLD_MAX_RANKS - 1},
    {"wrap", "CMD", TAKES_RUN,
     "run ranks under this, such as 'valgrind --error-exitcode=9'; its exit "
     "code counts",
     .take = take_text, .at = AT(wrap)},
    {"trace", "FILE.json", TAKES_RUN,
     "write what ran when in one case, for Perfetto", .take = take_output,
     .at = AT(trace)},
    {"pictures", "DIR", TAKES_RUN | TAKES_PAGE,
     "draw one case into this folder, as SVG files for documents",
     .take = take_text, .at = AT(pictures)},
    {"records", "DIR", TAKES_RECORDS,
     "keep the records in this folder (else they go when the run ends)",
     .take = take_text, .at = AT(records)},
    {"records", "DIR", TAKES_PAGE,
     "the run's records, from which the page draws curves, collectives, "
     "tensors",
     .take = take_text, .at = AT(records)},
    {"fixtures", "DIR", TAKES_GOLDEN,
     "the cases and the unsharded runs of these golden data", .take = take_text,
     .at = AT(fixtures)},
    {"write", "DIR", TAKES_FIXTURES, "make them", .take = take_text,
     .at = AT(write)},
    {"check", "DIR", TAKES_FIXTURES, "make them again and compare",
     .take = take_text, .at = AT(check)},
    {"bundle", "DIR", TAKES_SUBMIT, "the folder to make", .take = take_text,
     .at = AT(bundle)},
    {"about", "FILE.json", TAKES_SUBMIT,
     "who submits what, and how and where it was run (docs/submissions.md)",
     .take = take_text, .at = AT(about)},
    {"explanations", "FILE.json", TAKES_SUBMIT,
     "for everything that fails: whose fault it is, and why", .take = take_text,
     .at = AT(explanations)},
    {"partial", NULL, TAKES_SUBMIT,
     "bundle only cases that have records; else all that are claimed must",
     .take = take_flag, .at = AT(partial)},
    {"without-records", NULL, TAKES_SUBMIT,
     "the report alone, which proves nothing", .take = take_flag,
     .at = AT(without_records)},
    {"releases", NULL, TAKES_RELEASES,
     "a table of releases instead, with what fails in each", .take = take_flag,
     .at = AT(releases)},
    {"text", "FILE", TAKES_TEXT,
     "the text that gpt learns (the one that ships with the suite)",
     .take = take_text, .at = AT(text)},
    {"mutant", "NAME", TAKES_MUTANT,
     "make the engine wrong in this way; see: list mutants",
     .take = arguments_take_mutant, .nth = arguments_mutant,
     .choices = "; see: fsdp-cts list mutants"},
    {"json", NULL, TAKES_JSON, "print JSON", .take = take_flag, .at = AT(json)},
    {"engine", "NAME|PATH.so", TAKES_WORKER, "as it is: no list",
     .take = take_text, .at = AT(engines.name[0])},
    {"batch", "FILE", TAKES_WORKER, "cases to run", .take = take_text,
     .at = AT(batch)},
    {"words", "FD", TAKES_WORKER, "where to say it", .take = take_number,
     .at = AT(words), .least = 3, .most = 3},
    {"outputs", "N", TAKES_WORKER, "descriptors for ranks", .take = take_number,
     .at = AT(outputs), .most = WORLD_MAX_RANKS},
    {"wrapped", NULL, TAKES_WORKER, "in another program", .take = take_flag,
     .at = AT(wrapped)},
    {"debug-rank", "N", TAKES_WORKER, "waits for a debugger",
     .take = take_number, .at = AT(debug), .least = 1, .most = WORLD_MAX_RANKS},
    {"isolated", NULL, TAKES_WORKER, "limit ranks", .take = take_flag,
     .at = AT(isolated)},
    {"trace-events", NULL, TAKES_WORKER, "take times", .take = take_flag,
     .at = AT(trace_events)},
    {"timeout-ms", "N", TAKES_WORKER, "watchdog", .take = take_milliseconds,
     .at = AT(timeout_ms), .least = 1, .most = 86400000},
    {"quiet", NULL, 0, "no progress, no tables", .take = take_flag,
     .at = AT(quiet)},
    {"verbose", NULL, TAKES_JUDGE,
     "list every case, requirement and different failure; the miniature's "
     "table",
     .take = take_flag, .at = AT(verbose)},
    {"help", NULL, 0, "this text", .take = take_flag, .at = AT(help)},
};
enum {
    N_ROWS = sizeof(rows) / sizeof(rows[0]),
    FIRST_CODE = 256 /* getopt's code of the first row: no character */
};

static bool is_taken(const struct option_row *row, unsigned takes)
{
    return !row->takes || (row->takes & takes);
}

static int unknown_option(const char *option, const char *command,
                          unsigned takes)
{
    const char *bare = option + strspn(option, "-");
    char name[64];
    struct near n = {.wanted = name};

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(bare, "="), bare);
    for (int i = 0; i < N_ROWS; i++) {
        if (is_taken(&rows[i], takes)) {
            near_try(&n, rows[i].name);
        }
    }
    fprintf(stderr,
            "fsdp-cts: unknown option '%s'; see: fsdp-cts %s --help%s%s%s\n",
            option, command, n.best ? "; did you mean '--" : "",
            n.best ? n.best : "", n.best ? "'?" : "");
    return EXIT_USAGE;
}

int arguments_parse(int argc, char **argv, unsigned takes,
                    struct arguments *out)
{
    struct option known[N_ROWS + 1] = {{0}};
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int code;

    *out = (struct arguments){.launcher = "mpirun -n {K}",
                              .level = N_LEVELS,
                              .timeout_ms = ARGUMENTS_TIMEOUT_MS,
                              .first_seed = 1,
                              .drawn_by = CASE_GRAPH_GENERATOR,
                              .jobs = processors < 1    ? 1
                                      : processors > 64 ? 64
                                                        : (uint32_t)processors};
    for (int i = 0, n = 0; i < N_ROWS; i++) {
        if (is_taken(&rows[i], takes)) {
            known[n++] = (struct option){
                rows[i].name, rows[i].value ? required_argument : no_argument,
                NULL, FIRST_CODE + i};
        }
    }
    opterr = 0;
    optind = 1;
    while ((code = getopt_long(argc, argv, ":h", known, NULL)) != -1) {
        if (code == '?') {
            return unknown_option(argv[optind - 1], argv[0], takes);
        }
        if (code == ':') {
            return arguments_usage(
                "option '%s' needs a value; see: fsdp-cts %s --help",
                argv[optind - 1], argv[0]);
        }
        if (code == 'h') {
            out->help = true;
            continue;
        }
        code =
            rows[code - FIRST_CODE].take(&rows[code - FIRST_CODE], optarg, out);
        if (code) {
            return code;
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
        if (!is_taken(&rows[i], takes)) {
            continue;
        }
        snprintf(left, sizeof(left), "--%s%s%s", rows[i].name,
                 rows[i].value ? " " : "", rows[i].value ? rows[i].value : "");
        printf("  %-28s %s\n", left, rows[i].help);
    }
}

struct supervise_job arguments_job(const struct arguments *a)
{
    /* A day is no deadline; and a wrapper may be slow, as an adapter may. */
    const uint32_t day = 24 * 3600 * 1000;
    const uint32_t timeout_ms = a->debug  ? day
                                : a->wrap ? a->timeout_ms * 10
                                          : a->timeout_ms;

    return (struct supervise_job){.text = a->text,
                                  .mutant = a->mutant,
                                  .world = a->world,
                                  .launcher = a->launcher,
                                  .timeout_ms = timeout_ms,
                                  .n_workers = a->jobs,
                                  .isolate = a->isolate,
                                  .sample = a->sample_ranks,
                                  .wrap = a->wrap,
                                  .debug = a->debug,
                                  .trace = a->trace != NULL};
}
