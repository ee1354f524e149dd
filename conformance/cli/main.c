/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - fsdp-cts: finds the command.
 */
#include "cli/commands.h"
#include "cli/line/arguments.h"
#include "cli/line/exit_codes.h"
#include "cli/line/help_pages.h"
#include "cli/line/near.h"
#include "cli/line/version.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int command_completion(int argc, char **argv);

static const struct command commands[] = {
    {"run", command_run, "run engines through the suite and judge them"},
    {"init", command_init, "write an engine to start from"},
    {"list", command_list,
     "list requirements, cases, scripts, workloads, engines, mutants ..."},
    {"explain", command_explain,
     "say what a requirement demands, and how engines get it wrong"},
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
     "show what is in a safetensors file or a checkpoint"},
    {"track", command_track, "keep what was measured, and judge what changed"},
    {"fixtures", command_fixtures,
     "write golden data, or prove that they are what ref makes"},
    {"check", command_check,
     "judge a PyTorch model of your own: is it trained as without sharding"},
    {"probe", command_probe,
     "read what probes logged of an unchanged program, and judge it"},
    {"plan", command_plan,
     "say what a model would need at any number of ranks, without a run"},
    {"count", command_count,
     "count collectives and bytes of an engine at any number of ranks"},
    {"completion", command_completion,
     "print completions for bash, zsh or fish, or the manual page"},
    {"worker", command_worker, NULL},
};
enum {
    N_COMMANDS = sizeof(commands) / sizeof(commands[0])
};

static void main_help(FILE *to)
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
                "is.\n");
    exit_codes_print(to);
}

/* Returns the exit code. Output that a full disk has swallowed must not end
 * with 0; a reader that has seen enough and closed its end of a pipe is no such
 * failure. */
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
    struct near n = {.wanted = name};
    char meant[256];

    fprintf(stderr, "fsdp-cts: unknown command '%s'; there are:", name);
    for (int i = 0; i < N_COMMANDS; i++) {
        if (commands[i].help) {
            fprintf(stderr, " %s", commands[i].name);
            near_try(&n, commands[i].name);
        }
    }
    fprintf(stderr, "%s\n", near_say(&n, meant));
    return EXIT_USAGE;
}

static int command_completion(int argc, char **argv)
{
    int code = EXIT_USAGE;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        printf("usage: fsdp-cts completion bash|zsh|fish|man\n\n"
               "Prints the completions of a shell, or the manual page: of all "
               "commands, from what\ntheir --help says.\n\n"
               "examples: source <(fsdp-cts completion bash)\n"
               "          fsdp-cts completion fish "
               ">~/.config/fish/completions/fsdp-cts.fish\n"
               "          fsdp-cts completion man | man -l -\n");
        return 0;
    }
    if (argc != 2 || !help_pages(argv[1], commands, N_COMMANDS, &code)) {
        fprintf(stderr, "fsdp-cts completion: needs one of bash, zsh, fish, "
                        "man\n");
    }
    return code;
}

/* `help COMMAND` is `COMMAND --help`. */
static int show_help(const char *name)
{
    char option[] = "--help";
    char command[16];
    char *words[] = {command, option, NULL};
    int i = name ? find(name) : N_COMMANDS;

    if (!name) {
        main_help(stdout);
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
        main_help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        return finish(show_help(argc > 2 ? argv[2] : NULL));
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf("fsdp-cts %s\n", version_text());
        return finish(0);
    }
    i = find(argv[1]);
    return i < N_COMMANDS ? finish(commands[i].run(argc - 1, argv + 1))
                          : unknown(argv[1]);
}
