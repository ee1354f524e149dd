/* SPDX-License-Identifier: Apache-2.0 */
/*
 * help_pages.h - what --help says, in the forms that other programs want:
 * completions of shells and a manual page.
 */
#ifndef FSDP_CTS_HELP_PAGES_H
#define FSDP_CTS_HELP_PAGES_H

#include <stdbool.h>

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help; /* NULL: not for people */
};

/* Prints completions for "bash", "zsh" or "fish", or a manual page for "man",
 * of these commands, each of which is asked for its --help. False: there is no
 * such form; nothing was printed. *code is the exit code else. */
bool help_pages(const char *form, const struct command *all, int n, int *code);

#endif
