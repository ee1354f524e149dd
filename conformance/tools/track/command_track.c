/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_track.c - `fsdp-cts track`: finds the action and reads its options.
 */
#include "tools/track/command_track.h"
#include "cli/commands.h"

#include <getopt.h>
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

#define AT(field) offsetof(struct track_options, field)

static const struct {
    const char *name, *value, *help;
    size_t at; /* of a text or, without a value, of a flag */
} rows[] = {
    {"history", "FILE", "the history; `add` makes it if it is not there",
     AT(history)},
    {"commit", "SHA", "add: of the results, where they do not say", AT(commit)},
    {"date", "RFC3339", "add: of the results, where they do not say (now)",
     AT(date)},
    {"machine", "TEXT", "add: the hardware, where they do not say (this one)",
     AT(machine)},
    {"better", "lower|higher", "add: of custom benchmarks, which do not say",
     AT(better)},
    {"run", "N", "another run than the newest; see: track runs", AT(run)},
    {"engine", "PATTERN", "accept: of these engines only (*)", AT(engine)},
    {"case", "PATTERN", "accept: of these cases only (*)", AT(name)},
    {"figure", "PATTERN", "accept: of these figures or units only (*)",
     AT(figure)},
    {"reason", "TEXT", "accept: why, for those who read it later", AT(reason)},
    {"format", "NAME", "export: gab-smaller, gab-bigger, bmf or csv",
     AT(format)},
    {"repository", "DIR", "bisect-hint: where git knows the commits (.)",
     AT(repository)},
    {"commit-url", "URL", "report: what a commit's page begins with",
     AT(commit_url)},
    {"json", NULL, "check: print JSON", AT(json)},
    {"markdown", NULL, "check: print Markdown, for a job's summary",
     AT(markdown)},
    {"short", NULL, "selftest: what is called when, of short histories",
     AT(brief)},
    {"quiet", NULL, "no more than the last line", AT(quiet)},
    {"verbose", NULL, "every change", AT(verbose)},
    {"help", NULL, "this text", AT(help)},
};
enum {
    N_ROWS = sizeof(rows) / sizeof(rows[0])
};

static void help(FILE *to)
{
    fprintf(to, "usage: fsdp-cts track ACTION [OPTION ...] [FILE ...]\n\n"
                "Keeps what was measured of every commit, and judges the "
                "newest run.\n\n"
                "examples:\n"
                "  fsdp-cts track add run.jsonl bench.json\n"
                "  fsdp-cts track check --markdown\n\n");
    for (int i = 0; i < N_ACTIONS; i++) {
        fprintf(to, "  %-12s %s\n", actions[i].name, actions[i].help);
    }
    fprintf(to, "\n");
    for (int i = 0; i < N_ROWS; i++) {
        char left[40];

        snprintf(left, sizeof(left), "--%s%s%s", rows[i].name,
                 rows[i].value ? " " : "", rows[i].value ? rows[i].value : "");
        fprintf(to, "  %-24s %s\n", left, rows[i].help);
    }
    fprintf(to, "\nexit: 0 no regression, 1 a regression, 64 usage error, 65 "
                "bad data, 74 input or\noutput failed\n");
}

static int usage(const char *what, const char *which)
{
    fprintf(stderr, "fsdp-cts track: %s%s; see: fsdp-cts track --help\n", what,
            which);
    return EXIT_USAGE;
}

static int take(int row, const char *value, struct track_options *o)
{
    void *const field = (char *)o + rows[row].at;
    char *end;

    if (field == &o->better) {
        o->better = value[0];
        return strcmp(value, "lower") == 0 || strcmp(value, "higher") == 0
                   ? 0
                   : usage("--better must be lower or higher, not ", value);
    }
    if (field == &o->run) {
        o->run = strtoll(value, &end, 10);
        return *end == '\0' && end != value && o->run > 0
                   ? 0
                   : usage("--run must be a number from 1, not ", value);
    }
    if (rows[row].value) {
        *(const char **)field = value;
    } else {
        *(bool *)field = true;
    }
    return 0;
}

static int parse(int argc, char **argv, struct track_options *o)
{
    struct option known[N_ROWS + 1] = {{0}};
    int code;

    for (int i = 0; i < N_ROWS; i++) {
        known[i] = (struct option){
            rows[i].name, rows[i].value ? required_argument : no_argument, NULL,
            256 + i};
    }
    opterr = 0;
    optind = 1;
    while ((code = getopt_long(argc, argv, ":h", known, NULL)) != -1) {
        if (code == '?') {
            return usage("unknown option ", argv[optind - 1]);
        }
        if (code == ':') {
            return usage("an option needs a value: ", argv[optind - 1]);
        }
        if (take(code == 'h' ? N_ROWS - 1 : code - 256, optarg, o)) {
            return EXIT_USAGE;
        }
    }
    o->rest = (const char *const *)(argv + optind);
    o->n_rest = argc - optind;
    return 0;
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

    if (argc > 1 && argv[1][0] != '-') {
        for (int i = 0; i < N_ACTIONS; i++) {
            if (strcmp(actions[i].name, argv[1]) == 0) {
                if (parse(argc - 1, argv + 1, &o)) {
                    return EXIT_USAGE;
                }
                if (o.help) {
                    help(stdout);
                    return 0;
                }
                return run_action(i, &o);
            }
        }
        return usage("unknown action ", argv[1]);
    }
    if (parse(argc, argv, &o)) {
        return EXIT_USAGE;
    }
    if (o.help) {
        help(stdout);
        return 0;
    }
    return usage("which action? ", "add, check, accept, bisect-hint, report, "
                                   "export, compare, runs or selftest");
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
