/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exit_codes.h - what the exit codes of all commands mean, in one table: for
 * --help, for the pages, and for the test that compares them.
 */
#ifndef FSDP_CTS_EXIT_CODES_H
#define FSDP_CTS_EXIT_CODES_H

#include <stdio.h>

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
