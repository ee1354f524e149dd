/* SPDX-License-Identifier: Apache-2.0 */
/* arguments_internal.h - shared by arguments*.c, and by nobody else. */
#ifndef FSDP_CTS_ARGUMENTS_INTERNAL_H
#define FSDP_CTS_ARGUMENTS_INTERNAL_H

#include "cli/line/arguments.h"

#include <stddef.h>

struct option_row {
    const char *name, *value; /* value: what --help calls it; NULL: none */
    unsigned takes;           /* 0: every command */
    const char *help;
    /* Reads a value; 0, or EXIT_USAGE after a line on stderr. */
    int (*take)(const struct option_row *row, char *value,
                struct arguments *out);
    size_t at;            /* of what it sets in struct arguments */
    uint32_t least, most; /* of a number */
    /* Of a name: the i-th that there is; NULL behind the last. */
    const char *(*nth)(uint32_t i);
    const char *choices; /* said where a name is not known */
};

/* Where the row's value goes. */
void *arguments_field(const struct option_row *row, struct arguments *out);
/* A line on stderr; EXIT_USAGE. */
int arguments_usage(const char *format, const char *value, const char *right);
/* A number in the row's bounds; false: text is none. */
bool arguments_number(const struct option_row *row, const char *text,
                      uint32_t *out);

/* Readers of names: a list of them; engines, which may be paths; a mutant;
 * numbers of ranks; one name or, where the row has `most`, its number. */
int arguments_take_list(const struct option_row *row, char *value,
                        struct arguments *out);
int arguments_take_engines(const struct option_row *row, char *value,
                           struct arguments *out);
int arguments_take_mutant(const struct option_row *row, char *value,
                          struct arguments *out);
int arguments_take_ranks(const struct option_row *row, char *value,
                         struct arguments *out);
int arguments_take_name(const struct option_row *row, char *value,
                        struct arguments *out);

/* The i-th of the names that there are; NULL behind the last. */
const char *arguments_engine(uint32_t i);
const char *arguments_workload(uint32_t i);
const char *arguments_world(uint32_t i);

#endif
