/* SPDX-License-Identifier: Apache-2.0 */
/*
 * help_pages.h - makes completions of shells and a manual page from what --help
 * says.
 */
#ifndef FSDP_CTS_HELP_PAGES_H
#define FSDP_CTS_HELP_PAGES_H

#include <stdbool.h>

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help; /* NULL: the command is not shown to people */
};

/* Prints completions for "bash", "zsh" or "fish", or a manual page for "man",
 * of these commands, each of which is asked for its --help. False: there is no
 * such form, and nothing was printed. If true, *code is the exit code. */
bool help_pages(const char *form, const struct command *all, int n, int *code);

#endif
