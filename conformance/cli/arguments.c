/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arguments.c - one table of options for all commands: a row says who takes an
 * option, how its value is read, and where it goes in struct arguments.
 */
#include "cli/arguments.h"
#include "judge/report/special_file.h"
#include "models/workload.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

struct option_row {
    const char *name, *value; /* value: what --help calls it; NULL: none */
    unsigned takes;           /* 0: every command */
    const char *help;
    /* Reads a value; 0, or EXIT_USAGE after a line on stderr. */
    int (*take)(const struct option_row *row, char *value,
                struct arguments *out);
    size_t at;                       /* of what it sets in struct arguments */
    uint32_t least, most;            /* of a number */
    bool (*known)(const char *name); /* of a list; NULL: any name is */
    const char *choices;             /* said where a name is not known */
};

#define AT(field) offsetof(struct arguments, field)

static void *field_of(const struct option_row *row, struct arguments *out)
{
    return (char *)out + row->at;
}

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

/* A number in the row's bounds; false: text is none. */
static bool read_number(const struct option_row *row, const char *text,
                        uint32_t *out)
{
    char *end;
    unsigned long n;

    errno = 0;
    n = strtoul(text, &end, 10);
    if (errno || end == text || *end || text[0] == '-' || text[0] == '+' ||
        n < row->least || n > row->most) {
        return false;
    }
    *out = (uint32_t)n;
    return true;
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
    snprintf(partial, sizeof(partial), "%s.partial", path);
    f = fopen(partial, "we");
    if (!f) {
        return usage("cannot write %s: %s", path, strerror(errno));
    }
    fclose(f);
    unlink(partial);
    return 0;
}

static int unknown_name(const struct option_row *row, const char *value)
{
    fprintf(stderr, "fsdp-cts: unknown %s '%s'%s\n", row->name, value,
            row->choices);
    return EXIT_USAGE;
}

static int take_flag(const struct option_row *row, char *value,
                     struct arguments *out)
{
    bool *const flag = field_of(row, out);

    (void)value;
    *flag = true;
    return 0;
}

static int take_text(const struct option_row *row, char *value,
                     struct arguments *out)
{
    const char **const text = field_of(row, out);

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

static int take_list(const struct option_row *row, char *value,
                     struct arguments *out)
{
    struct name_list *const list = field_of(row, out);

    if (split(value, list)) {
        return EXIT_USAGE;
    }
    for (uint32_t i = 0; i < list->n && row->known; i++) {
        if (!row->known(list->name[i])) {
            return unknown_name(row, list->name[i]);
        }
    }
    return 0;
}

static int take_number(const struct option_row *row, char *value,
                       struct arguments *out)
{
    if (read_number(row, value, field_of(row, out))) {
        return 0;
    }
    fprintf(stderr, "fsdp-cts: --%s '%s': must be a number from %u to %u\n",
            row->name, value, row->least, row->most);
    return EXIT_USAGE;
}

static int take_milliseconds(const struct option_row *row, char *value,
                             struct arguments *out)
{
    return read_number(row, value, field_of(row, out))
               ? 0
               : usage("--timeout-ms '%s'%s", value, "");
}

static int take_seconds(const struct option_row *row, char *value,
                        struct arguments *out)
{
    uint32_t seconds;

    if (!read_number(row, value, &seconds)) {
        return usage("--timeout '%s': must be seconds, 1 to 86400%s", value,
                     "");
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
            return usage("no random number: %s%s", strerror(errno), "");
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
        if (read_number(&of, value, &out->shard) &&
            read_number(&of, slash + 1, &out->n_shards) &&
            out->shard <= out->n_shards) {
            return 0;
        }
        *slash = '/';
    }
    return usage("--shard is one of several, as 1/3 to 3/3, not '%s'%s", value,
                 "");
}

static int take_ranks(const struct option_row *row, char *value,
                      struct arguments *out)
{
    struct name_list list = {.n = 0};

    if (split(value, &list)) {
        return EXIT_USAGE;
    }
    for (uint32_t i = 0; i < list.n; i++) {
        if (!read_number(row, list.name[i], &out->ranks[out->n_ranks])) {
            return usage("--ranks '%s': must be numbers from 1 to 64%s",
                         list.name[i], "");
        }
        out->n_ranks += out->n_ranks + 1 < ARGUMENTS_MAX;
    }
    return 0;
}

static int take_world(const struct option_row *row, char *value,
                      struct arguments *out)
{
    for (uint32_t i = 0; i < N_WORLDS; i++) {
        if (strcmp(world_names[i], value) == 0) {
            out->world = i;
            return 0;
        }
    }
    return unknown_name(row, value);
}

static int take_level(const struct option_row *row, char *value,
                      struct arguments *out)
{
    if (read_number(row, value, &out->level)) {
        return 0;
    }
    for (uint32_t i = 0; i < N_LEVELS; i++) {
        if (strcmp(requirement_level_name(i), value) == 0) {
            out->level = i;
            return 0;
        }
    }
    return unknown_name(row, value);
}

static bool is_workload(const char *name)
{
    return workload_find(name) != NULL;
}

static bool is_strategy(const char *name)
{
    uint32_t ignored;

    return case_value(case_strategy_name, name, &ignored);
}

static bool is_requirement(const char *name)
{
    const struct requirement *const *r = requirement_table();

    while (*r && strcmp((*r)->id, name) != 0) {
        r++;
    }
    return *r != NULL;
}

static const struct option_row rows[] = {
    {"engine", "NAME|PATH.so", TAKES_ENGINE,
     "the engines to judge, with commas (run: ref,impl); see: list engines",
     .take = take_list, .at = AT(engines)},
    {"adapter", "CMD", TAKES_RUN,
     "a program that plays the engine and writes records (docs/adapters.md)",
     .take = take_text, .at = AT(adapter)},
    {"world", "local|threads|mpi", TAKES_WORLD,
     "how ranks run (local: a process each)", .take = take_world,
     .choices = ": local, threads or mpi"},
    {"launcher", "CMD", TAKES_WORLD, "starts an MPI world ('mpirun -n {K}')",
     .take = take_text, .at = AT(launcher)},
    {"timeout", "SECONDS", TAKES_WORLD,
     "a case without progress for so long has hung (20; an adapter: 200)",
     .take = take_seconds, .at = AT(timeout_ms), .least = 1, .most = 86400},
    {"jobs", "N", TAKES_WORLD, "workers at a time, 1 to 64 (one a processor)",
     .take = take_number, .at = AT(jobs), .least = 1, .most = 64},
    {"ranks", "K,...", TAKES_SELECTION, "only these world sizes; 1 to 64",
     .take = take_ranks, .least = 1, .most = WORLD_MAX_RANKS},
    {"workload", "W,...", TAKES_SELECTION,
     "only these workloads; see: list workloads", .take = take_list,
     .at = AT(workloads), .known = is_workload,
     .choices = "; see: fsdp-cts list workloads"},
    {"strategy", "S,...", TAKES_SELECTION,
     "only these strategies, as full-shard", .take = take_list,
     .at = AT(strategies), .known = is_strategy,
     .choices = ": full-shard, shard-grad-op, no-shard, hybrid-shard or "
                "hybrid-shard-zero2"},
    {"case", "ID,...", TAKES_SELECTION, "only these cases; see: list cases",
     .take = take_list, .at = AT(cases)},
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
    {"scripts", "N", TAKES_SCRIPTS,
     "instead: N scripts that are drawn (docs/scripts.md)", .take = take_number,
     .at = AT(n_scripts), .least = 1, .most = 1000000},
    {"script-seed", "N", TAKES_SCRIPTS,
     "draw those of a whole run from this seed on (one that nobody knows)",
     .take = take_number, .at = AT(script_seed), .least = 1,
     .most = UINT32_MAX},
    {"seed", "N", TAKES_SEED, "the selected cases with this seed of their data",
     .take = take_number, .at = AT(seed), .least = 1, .most = UINT32_MAX},
    {"draw", "N", TAKES_DRAW, "instead: N scripts that are drawn",
     .take = take_number, .at = AT(n_scripts), .least = 1, .most = 1000000},
    {"seed", "S", TAKES_DRAW, "the first of their seeds (0)",
     .take = take_number, .at = AT(seed), .least = 0, .most = UINT32_MAX},
    {"fresh-seed", NULL, TAKES_SEED,
     "the same with a seed that nobody knows beforehand; says which",
     .take = take_fresh_seed},
    {"level", "L", TAKES_JUDGE,
     "only requirements up to this level, by number or name",
     .take = take_level, .at = AT(level), .most = N_LEVELS - 1,
     .choices = ": 0 to 8, or a name as in: list requirements"},
    {"requirement", "ID,...", TAKES_JUDGE,
     "only these requirements; see: list requirements", .take = take_list,
     .at = AT(requirements), .known = is_requirement,
     .choices = "; see: fsdp-cts list requirements"},
    {"report", "FILE.jsonl", TAKES_REPORT,
     "write the report: a JSON object a line", .take = take_output,
     .at = AT(report)},
    {"report-only", NULL, TAKES_REPORT_ONLY,
     "whatever the verdict: exit 0 once the report is written",
     .take = take_flag, .at = AT(report_only)},
    {"junit", "FILE.xml", TAKES_JUDGE, "write the report in JUnit's form",
     .take = take_output, .at = AT(junit)},
    {"partial-ok", NULL, TAKES_JUDGE,
     "exit 0 if all of a selection passes, 77 if none is claimed",
     .take = take_flag, .at = AT(partial_ok)},
    {"record-only", NULL, TAKES_RUN,
     "run and keep records, do not judge; exit 0 if all cases ran",
     .take = take_flag, .at = AT(record_only)},
    {"shard", "I/N", TAKES_RUN,
     "record one of N parts of the cases, for verify to judge together",
     .take = take_shard, .most = 1000},
    {"times", NULL, TAKES_RUN, "say where the time of the run went",
     .take = take_flag, .at = AT(times)},
    {"trace", "FILE.json", TAKES_RUN,
     "write what ran when, of one case; for Perfetto", .take = take_output,
     .at = AT(trace)},
    {"pictures", "DIR", TAKES_RUN,
     "draw a step of one case: DIR/step.svg and DIR/memory.svg",
     .take = take_text, .at = AT(pictures)},
    {"records", "DIR", TAKES_RECORDS,
     "keep the records in this folder (in none: they go with the run)",
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
     "who submits what, run how and where (docs/submissions.md)",
     .take = take_text, .at = AT(about)},
    {"explanations", "FILE.json", TAKES_SUBMIT,
     "of all that fails: whose it is, and why", .take = take_text,
     .at = AT(explanations)},
    {"partial", NULL, TAKES_SUBMIT,
     "of the cases that have records; else all that are claimed must",
     .take = take_flag, .at = AT(partial)},
    {"without-records", NULL, TAKES_SUBMIT,
     "the report alone, which proves nothing", .take = take_flag,
     .at = AT(without_records)},
    {"text", "FILE", TAKES_TEXT,
     "the text that gpt learns (the one that ships with the suite)",
     .take = take_text, .at = AT(text)},
    {"mutant", "NAME", TAKES_MUTANT,
     "make the engine wrong in this way; see: list mutants", .take = take_text,
     .at = AT(mutant)},
    {"json", NULL, TAKES_JSON, "print JSON", .take = take_flag, .at = AT(json)},
    {"batch", "FILE", TAKES_WORKER, "cases to run", .take = take_text,
     .at = AT(batch)},
    {"words", "FD", TAKES_WORKER, "where to say it", .take = take_number,
     .at = AT(words), .least = 3, .most = 3},
    {"outputs", "N", TAKES_WORKER, "descriptors for ranks", .take = take_number,
     .at = AT(outputs), .most = WORLD_MAX_RANKS},
    {"trace-events", NULL, TAKES_WORKER, "take times", .take = take_flag,
     .at = AT(trace_events)},
    {"timeout-ms", "N", TAKES_WORKER, "watchdog", .take = take_milliseconds,
     .at = AT(timeout_ms), .least = 1, .most = 86400000},
    {"quiet", NULL, 0, "no progress, no tables", .take = take_flag,
     .at = AT(quiet)},
    {"verbose", NULL, TAKES_JUDGE,
     "every case, requirement and different failure", .take = take_flag,
     .at = AT(verbose)},
    {"help", NULL, 0, "this text", .take = take_flag, .at = AT(help)},
};
enum {
    N_ROWS = sizeof(rows) / sizeof(rows[0]),
    FIRST_CODE = 256 /* getopt's code of the first row: no character */
};

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
                NULL, FIRST_CODE + i};
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
        if (code == 'h') {
            out->help = true;
        } else if (rows[code - FIRST_CODE].take(&rows[code - FIRST_CODE],
                                                optarg, out)) {
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
        snprintf(left, sizeof(left), "--%s%s%s", rows[i].name,
                 rows[i].value ? " " : "", rows[i].value ? rows[i].value : "");
        printf("  %-28s %s\n", left, rows[i].help);
    }
}

struct supervise_job arguments_job(const struct arguments *a)
{
    return (struct supervise_job){.text = a->text,
                                  .mutant = a->mutant,
                                  .world = a->world,
                                  .launcher = a->launcher,
                                  .timeout_ms = a->timeout_ms,
                                  .n_workers = a->jobs,
                                  .trace = a->trace != NULL};
}
