/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_track.c - `fsdp-cts track`: finds the action and reads its options.
 */
#include "tools/track/command_track.h"
#include "cli/commands.h"

#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    NEEDS_HISTORY = 1,
    NEEDS_ONE = 2,  /* exactly one file */
    NEEDS_MANY = 4, /* one or more files */
};

static const struct {
    const char *name;
    int (*run)(const struct track_options *o);
    unsigned needs;
    const char *help;
} actions[] = {
    {"add", track_command_add, NEEDS_HISTORY | NEEDS_MANY,
     "RESULTS...: stores reports and bench results as one run"},
    {"check", track_command_check, NEEDS_HISTORY,
     "judges the newest run; exits 1 on a regression"},
    {"accept", track_command_accept, NEEDS_HISTORY,
     "makes a run's figures the level, with a reason"},
    {"bisect-hint", track_command_bisect, NEEDS_HISTORY,
     "names the commits between the last good and the first bad run"},
    {"report", track_command_report, NEEDS_HISTORY | NEEDS_ONE,
     "OUT.html: writes one page that needs nothing else"},
    {"export", track_command_export, NEEDS_HISTORY | NEEDS_ONE,
     "OUT: writes gab-smaller, gab-bigger, bmf or csv"},
    {"compare", track_command_compare, NEEDS_MANY,
     "A.json B.json A.json B.json ...: judges bench results in turns"},
    {"runs", track_command_runs, NEEDS_HISTORY, "lists the runs"},
    {"selftest", track_command_selftest, 0,
     "how often change points are right, on made-up histories"},
};
enum {
    N_ACTIONS = sizeof(actions) / sizeof(actions[0])
};

#define AT(field) .at = offsetof(struct track_options, field)

static int take_better(const struct option_row *row, char *value, void *options)
{
    *(char *)option_field(row, options) = value[0];
    return strcmp(value, "lower") == 0 || strcmp(value, "higher") == 0
               ? 0
               : option_wrong(row, value);
}

static const struct option_row rows[] = {
    {"history", "FILE", 0, "the history; `add` makes it if it is not there",
     option_text, AT(history)},
    {"commit", "SHA", 0, "add: of the results, where they do not say",
     option_text, AT(commit)},
    {"date", "RFC3339", 0, "add: of the results, where they do not say (now)",
     option_text, AT(date)},
    {"machine", "TEXT", 0,
     "add: the hardware, where they do not say (this one)", option_text,
     AT(machine)},
    {"better", "lower|higher", 0, "add: of custom benchmarks, which do not say",
     take_better, AT(better), .right = "lower or higher"},
    {"run", "N", 0, "another run than the newest; see: track runs",
     option_number64, AT(run), .least = 1, .most = INT64_MAX,
     .right = "a number from 1"},
    {"engine", "PATTERN", 0, "accept: of these engines only (*)", option_text,
     AT(engine)},
    {"case", "PATTERN", 0, "accept: of these cases only (*)", option_text,
     AT(name)},
    {"figure", "PATTERN", 0, "accept: of these figures or units only (*)",
     option_text, AT(figure)},
    {"reason", "TEXT", 0, "accept: why, for those who read it later",
     option_text, AT(reason)},
    {"format", "NAME", 0, "export: gab-smaller, gab-bigger, bmf or csv",
     option_text, AT(format)},
    {"repository", "DIR", 0, "bisect-hint: where git knows the commits (.)",
     option_text, AT(repository)},
    {"commit-url", "URL", 0, "report: what a commit's page begins with",
     option_text, AT(commit_url)},
    {"json", NULL, 0, "check: print JSON", option_flag, AT(json)},
    {"markdown", NULL, 0, "check: print Markdown, for a job's summary",
     option_flag, AT(markdown)},
    {"short", NULL, 0, "selftest: what is called when, of short histories",
     option_flag, AT(brief)},
    {"quiet", NULL, 0, "no more than the last line", option_flag, AT(quiet)},
    {"verbose", NULL, 0, "every change", option_flag, AT(verbose)},
    {"help", NULL, 0, "this text", option_flag, AT(help)},
};
static const struct option_table table = OPTION_TABLE(rows);

static void help(void)
{
    printf("usage: fsdp-cts track ACTION [OPTION ...] [FILE ...]\n\n"
           "Keeps what was measured of every commit, and judges the "
           "newest run.\n\n"
           "examples:\n"
           "  fsdp-cts track add run.jsonl bench.json\n"
           "  fsdp-cts track check --markdown\n\n");
    for (int i = 0; i < N_ACTIONS; i++) {
        printf("  %-12s %s\n", actions[i].name, actions[i].help);
    }
    printf("\n");
    options_help(&table);
    printf("\nexit: 0 no regression, 1 a regression, 64 usage error, 65 "
           "bad data, 74 input or\noutput failed\n");
}

static int usage(const char *what, const char *which)
{
    return option_refuse("%s%s; see: fsdp-cts track --help", what, which);
}

static int run_action(int which, const struct track_options *o)
{
    unsigned needs = actions[which].needs;

    if (needs & NEEDS_HISTORY && (!o->history || !*o->history)) {
        return usage("which history? --history FILE", "");
    }
    if (needs & NEEDS_ONE && o->n_rest != 1) {
        return usage(actions[which].name, " needs one file");
    }
    if (needs & NEEDS_MANY && o->n_rest == 0) {
        return usage(actions[which].name, " needs files of results");
    }
    if (!(needs & (NEEDS_ONE | NEEDS_MANY)) && o->n_rest > 0) {
        return usage("no file is expected: ", o->rest[0]);
    }
    /* A file that may not grow further is an error of a write. */
    (void)signal(SIGXFSZ, SIG_IGN);
    return actions[which].run(o);
}

int command_track(int argc, char **argv)
{
    struct track_options o = {.engine = "*", .name = "*", .figure = "*"};
    int rest;
    const int code = options_read(&table, argc, argv, &o, &rest);

    if (code != 0) {
        return code;
    }
    if (o.help) {
        help();
        return 0;
    }
    if (rest == argc) {
        return usage("which action? ", "add, check, accept, bisect-hint, "
                                       "report, export, compare, runs or "
                                       "selftest");
    }
    o.rest = (const char *const *)(argv + rest + 1);
    o.n_rest = argc - rest - 1;
    for (int i = 0; i < N_ACTIONS; i++) {
        if (strcmp(actions[i].name, argv[rest]) == 0) {
            return run_action(i, &o);
        }
    }
    return usage("unknown action ", argv[rest]);
}

int track_failed(const struct fsdp_error *error)
{
    fprintf(stderr, "fsdp-cts track: %s\n",
            error->message[0] != '\0' ? error->message
                                      : fsdp_status_text(error->status));
    switch (error->status) {
    case FSDP_ERR_INVALID:
        return EXIT_USAGE;
    case FSDP_ERR_FORMAT:
        return EXIT_BAD_DATA;
    case FSDP_ERR_NOMEM:
        return EXIT_NO_MEMORY;
    default:
        return EXIT_IO;
    }
}
