/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_track.h - options and exit codes that the actions of `fsdp-cts track`
 * share.
 */
#ifndef FSDP_CTS_COMMAND_TRACK_H
#define FSDP_CTS_COMMAND_TRACK_H

#include "cli/line/arguments.h"
#include "tools/track/track_judge.h"

#include <stdio.h>

/* Beside those of arguments.h: sysexits.h's EX_OSERR and EX_IOERR. */
enum {
    EXIT_REGRESSION = 1,
    EXIT_NO_MEMORY = 71,
    EXIT_IO = 74
};

struct track_options {
    const char *history, *commit, *date, *machine, *format, *repository;
    const char *engine, *name, *figure, *reason; /* of accept: patterns */
    char better;                                 /* 'l', 'h' or 0 */
    int64_t run;                                 /* 0: the newest */
    const char *commit_url;                      /* for links on the page */
    bool quiet, verbose, help;
    bool json, markdown; /* for check */
    bool brief;          /* for selftest: short histories */
    const char *const *rest;
    int n_rest;
};

/* Prints a failure in one line, and returns its exit code. */
int track_failed(const struct fsdp_error *error);

/* "3f2a1c9 (run 51, 2026-11-21)" */
enum {
    TRACK_RUN_BYTES = 64
};
const char *track_run_text(const struct track_verdict *v, int64_t run,
                           char out[TRACK_RUN_BYTES]);
/* "mlp... collectives.all-gather: 320 -> 360 (+40, 1 in each of 40 steps)" */
enum {
    TRACK_CHANGE_BYTES = 640
};
const char *track_change_text(const struct track_verdict *v,
                              const struct track_change *c,
                              char out[TRACK_CHANGE_BYTES]);

/* The actions; each returns an exit code. */
int track_command_add(const struct track_options *o);
int track_command_check(const struct track_options *o);
int track_command_accept(const struct track_options *o);
int track_command_bisect(const struct track_options *o);
int track_command_report(const struct track_options *o);
int track_command_export(const struct track_options *o);
int track_command_compare(const struct track_options *o);
int track_command_runs(const struct track_options *o);
int track_command_selftest(const struct track_options *o);

#endif
