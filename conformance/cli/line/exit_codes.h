/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exit_codes.h - what the exit codes of all commands mean, in one table: for
 * --help, for the pages, and for the test that compares them.
 */
#ifndef FSDP_CTS_EXIT_CODES_H
#define FSDP_CTS_EXIT_CODES_H

#include <stdio.h>

/* Exit codes; the first three are enum judge_verdict. */
enum {
    EXIT_CONFORMANT = 0,
    EXIT_NOT_CONFORMANT = 1,
    EXIT_INCOMPLETE = 2,
    EXIT_USAGE = 64,
    EXIT_BAD_DATA = 65,
    EXIT_OUTPUT = 74,  /* an output that was asked for could not be written */
    EXIT_SKIPPED = 77, /* the engine claims none of the selected cases */
};

struct exit_code {
    int code;
    const char *text; /* a line */
};

enum {
    N_EXIT_CODES = 7
};
extern const struct exit_code exit_codes[N_EXIT_CODES]; /* by code */

void exit_codes_print(FILE *to);

#endif
