/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arguments.c - the options of the suite's own commands in one table: a row
 * says which commands take it.
 */
#include "cli/line/arguments.h"

#include "cases/case_graph.h"
#include "cli/line/arguments_internal.h"
#include "judge/report/special_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define AT(field) offsetof(struct arguments, field)

static int cannot_write(const char *path, int why)
{
    (void)option_refuse("cannot write %s: %s", path, strerror(why));
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
    if (special_file(path)) { /* a pipe is opened only once, to write to it */
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

/* Takes the path of a file that will be written. */
static int take_output(const struct option_row *row, char *value, void *options)
{
    (void)option_text(row, value, options);
    return check_writable(value);
}

/* Takes a rank; kept as one more, so that 0 is none. */
static int take_rank(const struct option_row *row, char *value, void *options)
{
    const int code = option_number(row, value, options);

    *(uint32_t *)option_field(row, options) += code == 0;
    return code;
}

static int take_seconds(const struct option_row *row, char *value,
                        void *options)
{
    const int code = option_number(row, value, options);

    *(uint32_t *)option_field(row, options) *= 1000;
    return code;
}

int arguments_fresh_seed(struct arguments *out, const char *option)
{
    do {
        if (getrandom(&out->seed, sizeof(out->seed), 0) != sizeof(out->seed)) {
            return option_refuse("no random number: %s", strerror(errno));
        }
    } while (out->seed == 0);
    fprintf(stderr, "fsdp-cts: --%s %u\n", option, out->seed);
    return 0;
}

static int take_fresh_seed(const struct option_row *row, char *value,
                           void *options)
{
    (void)row;
    (void)value;
    return arguments_fresh_seed(options, "seed");
}

/* "2/3": the second of three. */
static int take_shard(const struct option_row *row, char *value, void *options)
{
    struct arguments *const out = options;
    const char *end;
    uint64_t i;
    uint64_t n;

    if (!option_digits(value, &i, &end) || *end != '/' ||
        !option_digits(end + 1, &n, &end) || *end != '\0' || i < 1 || i > n ||
        n > row->most) {
        return option_wrong(row, value);
    }
    out->shard = (uint32_t)i;
    out->n_shards = (uint32_t)n;
    return 0;
}

static const struct option_row rows[] = {
    {"engine", "NAME|PATH.so", TAKES_ENGINE,
     "the engines to judge, separated by commas (run: ref,impl); see: list "
     "engines",
     .take = arguments_take_engines, .at = AT(engines), .nth = arguments_engine,
     .right = "; there are: ref, impl, unsharded, or the path of a .so"},
    {"adapter", "CMD", TAKES_RUN,
     "a program that plays the engine and writes records (docs/adapters.md)",
     .take = option_text, .at = AT(adapter)},
    {"world", "local|threads|mpi", TAKES_WORLD,
     "how ranks run (local: a process each)", .take = option_name,
     .at = AT(world), .nth = arguments_world},
    {"launcher", "CMD", TAKES_WORLD, "starts an MPI world ('mpirun -n {K}')",
     .take = option_text, .at = AT(launcher)},
    {"timeout", "SECONDS", TAKES_WORLD,
     "a case that makes no progress for so long has hung (20; an adapter: 200)",
     .take = take_seconds, .at = AT(timeout_ms), .least = 1, .most = 86400,
     .right = "seconds, 1 to 86400"},
    {"jobs", "N", TAKES_WORLD,
     "how many workers at a time, 1 to 64 (one for each processor)",
     .take = option_number, .at = AT(jobs), .least = 1, .most = 64},
    {"ranks", "K,...", TAKES_SELECTION, "only these world sizes; 1 to 512",
     .take = arguments_take_ranks, .least = 1, .most = WORLD_MAX_RANKS},
    {"workload", "W,...", TAKES_SELECTION,
     "only these workloads; see: list workloads", .take = arguments_take_list,
     .at = AT(workloads), .nth = arguments_workload,
     .right = "; see: fsdp-cts list workloads"},
    {"strategy", "S,...", TAKES_SELECTION,
     "only these strategies, such as full-shard", .take = arguments_take_list,
     .at = AT(strategies), .nth = arguments_strategy},
    {"case", "ID,...", TAKES_SELECTION,
     "only these cases; patterns are taken, too: mlp.*.k2.*",
     .take = arguments_take_list, .at = AT(cases)},
    {"cover", NULL, TAKES_SELECTION,
     "of these only so many that each part of their ids is in one",
     .take = option_flag, .at = AT(cover)},
    {"script", "TEXT|FILE", TAKES_SELECTION,
     "instead: this script (docs/formats.md), on the case that it names, or a "
     "selected one",
     .take = option_text, .at = AT(script)},
    {"seeds", "N", TAKES_SELECTION,
     "instead: N random cases of --workload graph", .take = option_number,
     .at = AT(n_seeds), .least = 1, .most = 1000000},
    {"first-seed", "S", TAKES_SELECTION, "the first of their seeds (1)",
     .take = option_number, .at = AT(first_seed), .given = AT(from_a_seed),
     .least = 0, .most = UINT32_MAX},
    {"drawn-by", "N", TAKES_SELECTION,
     "what such seeds drew with generator N, 1 to 3 (3)", .take = option_number,
     .at = AT(drawn_by), .least = 1, .most = CASE_GRAPH_GENERATOR},
    {"scripts", "N", TAKES_SCRIPTS,
     "instead: N scripts, drawn by lot (docs/scripts.md)",
     .take = option_number, .at = AT(n_scripts), .least = 1, .most = 1000000},
    {"script-seed", "N", TAKES_SCRIPTS,
     "the first seed of the scripts that a whole run draws (a fresh one)",
     .take = option_number, .at = AT(script_seed), .least = 1,
     .most = UINT32_MAX},
    {"seed", "N", TAKES_SEED, "give the data of the selected cases this seed",
     .take = option_number, .at = AT(seed), .least = 1, .most = UINT32_MAX},
    {"draw", "N", TAKES_DRAW, "instead: N scripts that are drawn",
     .take = option_number, .at = AT(n_scripts), .least = 1, .most = 1000000},
    {"seed", "S", TAKES_DRAW, "the first of their seeds (0)",
     .take = option_number, .at = AT(seed), .least = 0, .most = UINT32_MAX},
    {"fresh-seed", NULL, TAKES_SEED,
     "the same with a seed that nobody knows beforehand; prints it",
     .take = take_fresh_seed},
    {"level", "L", TAKES_JUDGE,
     "only requirements up to this level, by number or name",
     .take = option_name, .at = AT(level), .most = N_LEVELS - 1,
     .nth = arguments_level,
     .right = ": 0 to 8, or a name as in: list requirements"},
    {"requirement", "ID,...", TAKES_JUDGE,
     "only these; patterns are taken, too: memory.*; see: list requirements",
     .take = arguments_take_list, .at = AT(requirements),
     .nth = arguments_requirement,
     .right = "; see: fsdp-cts list requirements"},
    {"report", "FILE.jsonl", TAKES_REPORT,
     "write the report: a JSON object a line", .take = take_output,
     .at = AT(report)},
    {"report-only", NULL, TAKES_REPORT_ONLY,
     "exit 0 once the report is written, whatever the verdict",
     .take = option_flag, .at = AT(report_only)},
    {"junit", "FILE.xml", TAKES_JUDGE, "write the report in JUnit's form",
     .take = take_output, .at = AT(junit)},
    {"html", "FILE.html", TAKES_HTML,
     "write a page for a browser, which needs no other file",
     .take = take_output, .at = AT(html)},
    {"against", "FILE.jsonl", TAKES_PAGE,
     "the page compares with this earlier report", .take = option_text,
     .at = AT(against)},
    {"strict", NULL, TAKES_JUDGE,
     "exit 2 for a selection even if all of it passes: it has no verdict",
     .take = option_flag, .at = AT(strict)},
    {"partial-ok", NULL, TAKES_JUDGE,
     "exit 0 also for a whole run whose engine lacks a claim of the core, if "
     "all else passes",
     .take = option_flag, .at = AT(partial_ok)},
    {"from", "REPORT", TAKES_RUN,
     "the cases of this report and, without --engine, those of its engines "
     "that are the suite's",
     .take = option_text, .at = AT(from)},
    {"failed", NULL, TAKES_RUN,
     "with --from: only cases in which something failed", .take = option_flag,
     .at = AT(failed)},
    {"last-failed", NULL, TAKES_RUN,
     "only what failed when --report was last written; all, if nothing did",
     .take = option_flag, .at = AT(last_failed)},
    {"fail-fast", NULL, TAKES_RUN,
     "stop at the first case that fails; cases are judged as they end",
     .take = option_flag, .at = AT(fail_fast)},
    {"dry-run", NULL, TAKES_RUN, "print the ids of the cases, and run none",
     .take = option_flag, .at = AT(dry_run)},
    {"record-only", NULL, TAKES_RUN,
     "run and keep records, do not judge; exit 0 if all cases ran",
     .take = option_flag, .at = AT(record_only)},
    {"shard", "I/N", TAKES_RUN,
     "record one of N parts of the cases, for verify to judge together",
     .take = take_shard, .most = 1000,
     .right = "one of several, as 1/3 to 3/3"},
    {"sample-ranks", "N", TAKES_RUN | TAKES_WORKER,
     "record whole parameters of only N ranks, drawn by the seed",
     .take = option_number, .at = AT(sample_ranks), .least = 1,
     .most = WORLD_MAX_RANKS},
    {"times", NULL, TAKES_RUN, "say where the time of the run went",
     .take = option_flag, .at = AT(times)},
    {"isolate", NULL, TAKES_RUN,
     "let the kernel refuse ranks what no engine needs, and report attempts",
     .take = option_flag, .at = AT(isolate)},
    {"no-isolate", NULL, TAKES_RUN,
     "do not isolate; a whole run does it by itself", .take = option_flag,
     .at = AT(no_isolate)},
    {"debug", "RANK", TAKES_RUN,
     "run gdb on this rank of the one case: the others wait, and nothing has "
     "a deadline",
     .take = take_rank, .at = AT(debug), .most = WORLD_MAX_RANKS - 1},
    {"wrap", "CMD", TAKES_RUN,
     "run ranks under this, such as 'valgrind --error-exitcode=9'; its exit "
     "code counts",
     .take = option_text, .at = AT(wrap)},
    {"trace", "FILE.json", TAKES_RUN,
     "write what ran when in one case, for Perfetto", .take = take_output,
     .at = AT(trace)},
    {"pictures", "DIR", TAKES_RUN | TAKES_PAGE,
     "draw one case into this folder, as SVG files for documents",
     .take = option_text, .at = AT(pictures)},
    {"records", "DIR", TAKES_RECORDS,
     "keep the records in this folder (else they go when the run ends)",
     .take = option_text, .at = AT(records)},
    {"records", "DIR", TAKES_PAGE,
     "the run's records, from which the page draws curves, collectives, "
     "tensors",
     .take = option_text, .at = AT(records)},
    {"fixtures", "DIR", TAKES_GOLDEN,
     "the cases and the unsharded runs of these golden data",
     .take = option_text, .at = AT(fixtures)},
    {"write", "DIR", TAKES_FIXTURES, "make them", .take = option_text,
     .at = AT(write)},
    {"check", "DIR", TAKES_FIXTURES, "make them again and compare",
     .take = option_text, .at = AT(check)},
    {"bundle", "DIR", TAKES_SUBMIT, "the folder to make", .take = option_text,
     .at = AT(bundle)},
    {"about", "FILE.json", TAKES_SUBMIT,
     "who submits what, and how and where it was run (docs/submissions.md)",
     .take = option_text, .at = AT(about)},
    {"explanations", "FILE.json", TAKES_SUBMIT,
     "for everything that fails: whose fault it is, and why",
     .take = option_text, .at = AT(explanations)},
    {"partial", NULL, TAKES_SUBMIT,
     "bundle only cases that have records; else all that are claimed must",
     .take = option_flag, .at = AT(partial)},
    {"without-records", NULL, TAKES_SUBMIT,
     "the report alone, which proves nothing", .take = option_flag,
     .at = AT(without_records)},
    {"releases", NULL, TAKES_RELEASES,
     "a table of releases instead, with what fails in each",
     .take = option_flag, .at = AT(releases)},
    {"text", "FILE", TAKES_TEXT,
     "the text that gpt learns (the one that ships with the suite)",
     .take = option_text, .at = AT(text)},
    {"mutant", "NAME", TAKES_MUTANT,
     "make the engine wrong in this way; see: list mutants",
     .take = arguments_take_mutant, .nth = arguments_mutant,
     .right = "; see: fsdp-cts list mutants"},
    {"json", NULL, TAKES_JSON, "print JSON", .take = option_flag,
     .at = AT(json)},
    {"engine", "NAME|PATH.so", TAKES_WORKER, "as it is: no list",
     .take = option_text, .at = AT(engines.name[0])},
    {"batch", "FILE", TAKES_WORKER, "cases to run", .take = option_text,
     .at = AT(batch)},
    {"words", "FD", TAKES_WORKER, "where to say it", .take = option_number,
     .at = AT(words), .least = 3, .most = 3},
    {"outputs", "N", TAKES_WORKER, "descriptors for ranks",
     .take = option_number, .at = AT(outputs), .most = WORLD_MAX_RANKS},
    {"wrapped", NULL, TAKES_WORKER, "in another program", .take = option_flag,
     .at = AT(wrapped)},
    {"debug-rank", "N", TAKES_WORKER, "waits for a debugger",
     .take = option_number, .at = AT(debug), .least = 1,
     .most = WORLD_MAX_RANKS},
    {"isolated", NULL, TAKES_WORKER, "limit ranks", .take = option_flag,
     .at = AT(isolated)},
    {"trace-events", NULL, TAKES_WORKER, "take times", .take = option_flag,
     .at = AT(trace_events)},
    {"timeout-ms", "N", TAKES_WORKER, "watchdog", .take = option_number,
     .at = AT(timeout_ms), .least = 1, .most = 86400000},
    {"quiet", NULL, 0, "no progress, no tables", .take = option_flag,
     .at = AT(quiet)},
    {"verbose", NULL, TAKES_JUDGE,
     "list every case, requirement and different failure; the miniature's "
     "table",
     .take = option_flag, .at = AT(verbose)},
    {"help", NULL, 0, "this text", .take = option_flag, .at = AT(help)},
};

static struct option_table table_of(unsigned takes)
{
    struct option_table table = OPTION_TABLE(rows);

    table.takes = takes;
    return table;
}

int arguments_parse(int argc, char **argv, unsigned takes,
                    struct arguments *out)
{
    const struct option_table table = table_of(takes);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int rest;
    int code;

    *out = (struct arguments){.launcher = "mpirun -n {K}",
                              .level = N_LEVELS,
                              .timeout_ms = ARGUMENTS_TIMEOUT_MS,
                              .first_seed = 1,
                              .drawn_by = CASE_GRAPH_GENERATOR,
                              .jobs = processors < 1    ? 1
                                      : processors > 64 ? 64
                                                        : (uint32_t)processors};
    code = options_read(&table, argc, argv, out, &rest);
    out->rest = (const char *const *)(argv + rest);
    out->n_rest = argc - rest;
    return code;
}

void arguments_help(unsigned takes)
{
    const struct option_table table = table_of(takes);

    options_help(&table);
}

struct supervise_job arguments_job(const struct arguments *a)
{
    /* With a debugger the time is a day; and a wrapper may be slow, as an
     * adapter may. */
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
