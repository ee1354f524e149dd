/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - fsdp-cts: finds the command.
 */
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/version.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help; /* NULL: not for people */
} commands[] = {
    {"run", command_run, "run engines through the suite and judge them"},
    {"init", command_init, "write an engine to start from"},
    {"list", command_list,
     "list requirements, cases, scripts, workloads, engines, mutants ..."},
    {"verify", command_verify, "judge records that were kept by run"},
    {"report", command_report, "show a report again, or a part of it"},
    {"summary", command_summary, "print a report for a pipeline's page"},
    {"submit", command_submit, "bundle records, report and how to rerun them"},
    {"results", command_results, "print the tables that bundles make"},
    {"mutants", command_mutants,
     "run engines that are wrong in one way; print the kill matrix"},
    {"bench", command_bench,
     "measure operators, collectives and whole steps of engines"},
    {"consolidate", command_consolidate,
     "make a full checkpoint of a sharded one"},
    {"inspect", command_inspect,
     "say what a safetensors file or a checkpoint has"},
    {"track", command_track, "keep what was measured, and judge what changed"},
    {"fixtures", command_fixtures,
     "write golden data, or prove that they are what ref makes"},
    {"probe", command_probe,
     "read what probes logged of a program as it is, and judge it"},
    {"plan", command_plan,
     "say what a model would need at any number of ranks, without a run"},
    {"worker", command_worker, NULL},
};
enum {
    N_COMMANDS = sizeof(commands) / sizeof(commands[0])
};

static void help(FILE *to)
{
    fprintf(to,
            "fsdp-cts %s - conformance tests for Fully Sharded Data Parallel\n"
            "\nusage: fsdp-cts COMMAND [OPTION ...]\n\n",
            version_text());
    for (int i = 0; i < N_COMMANDS; i++) {
        if (commands[i].help) {
            fprintf(to, "  %-11s %s\n", commands[i].name, commands[i].help);
        }
    }
    fprintf(to, "\nfsdp-cts COMMAND --help says more; --version: which this "
                "is.\n"
                "exit: 0 conformant, 1 not conformant, 2 incomplete, 64 usage "
                "error, 65 bad data,\n"
                "74 output could not be written, 77 skipped (--partial-ok)\n");
}

/* What a full disk has swallowed must not end with 0. A reader that has seen
 * enough and closed its end of a pipe is none of that. */
static int finish(int code)
{
    struct stat s;

    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return code;
    }
    if (fstat(STDOUT_FILENO, &s) == 0 &&
        (S_ISFIFO(s.st_mode) || S_ISSOCK(s.st_mode))) {
        return code;
    }
    fprintf(stderr, "fsdp-cts: standard output could not be written\n");
    return code == EXIT_CONFORMANT || code == EXIT_SKIPPED ? EXIT_OUTPUT : code;
}

/* The place of a command in the table; N_COMMANDS: there is none. */
static int find(const char *name)
{
    int i = 0;

    while (i < N_COMMANDS && strcmp(name, commands[i].name) != 0) {
        i++;
    }
    return i;
}

static int unknown(const char *name)
{
    fprintf(stderr, "fsdp-cts: unknown command '%s'; there are:", name);
    for (int i = 0; i < N_COMMANDS; i++) {
        if (commands[i].help) {
            fprintf(stderr, " %s", commands[i].name);
        }
    }
    fprintf(stderr, "\n");
    return EXIT_USAGE;
}

/* `help COMMAND` is `COMMAND --help`. */
static int show_help(const char *name)
{
    char option[] = "--help";
    char command[16];
    char *words[] = {command, option, NULL};
    int i = name ? find(name) : N_COMMANDS;

    if (!name) {
        help(stdout);
        return 0;
    }
    if (i == N_COMMANDS) {
        return unknown(name);
    }
    snprintf(command, sizeof(command), "%s", name);
    return commands[i].run(2, words);
}

int main(int argc, char **argv)
{
    int i;

    if (argc < 2) {
        help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        return finish(show_help(argc > 2 ? argv[2] : NULL));
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("fsdp-cts %s\n", version_text());
        return finish(0);
    }
    i = find(argv[1]);
    return i < N_COMMANDS ? finish(commands[i].run(argc - 1, argv + 1))
                          : unknown(argv[1]);
}
