/* SPDX-License-Identifier: Apache-2.0 */
/*
 * option_table.h - the options of a command as a table: a row says how an
 * option is called, how its value is read and where that goes. One reader, one
 * form of errors and one --help for all commands.
 */
#ifndef FSDP_CTS_OPTION_TABLE_H
#define FSDP_CTS_OPTION_TABLE_H

#include "cli/line/exit_codes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct option_row {
    const char *name, *value; /* value: what --help calls it; NULL: none */
    unsigned takes;           /* bits: the commands that take it; 0: all
                                 commands */
    const char *help;
    /* Reads a value into the command's struct of options; 0, or an exit code
     * after a line on stderr. */
    int (*take)(const struct option_row *row, char *value, void *options);
    size_t at;            /* offset in that struct of the value */
    size_t given;         /* offset of a bool that becomes true as well; 0:
                             there is none */
    uint64_t least, most; /* bounds of a number */
    /* For names: the i-th name that exists; NULL behind the last. */
    const char *(*nth)(uint32_t i);
    /* For names: the text that follows an unknown one, in place of all that
     * exist. For other values: what they must be, where bounds do not say
     * it. */
    const char *right;
};

struct option_table {
    const struct option_row *row; /* the last is --help, which is -h, too */
    size_t n;
    unsigned takes; /* rows without one of these bits are left out */
};
#define OPTION_TABLE(rows)                          \
    {                                               \
        (rows), sizeof(rows) / sizeof((rows)[0]), 0 \
    }

/* Reads argv behind the command's name, argv[0]. Words that are no options are
 * moved behind the options, and *rest becomes the place of the first. What is
 * kept of a value points into argv. 0, or an exit code after a line on
 * stderr. */
int options_read(const struct option_table *t, int argc, char **argv,
                 void *options, int *rest);
void options_help(const struct option_table *t);
/* Prints words behind `indent` columns that were printed already, and begins
 * each further line with as many spaces. */
void options_words(const char *text, int indent);

/* Functions for `take`. They set a bool to true; read a text; a number in the
 * row's bounds, of 32 and of 64 bits; a name, as its number, or, if the row has
 * `most`, a number in its bounds as well. */
int option_flag(const struct option_row *row, char *value, void *options);
int option_text(const struct option_row *row, char *value, void *options);
int option_number(const struct option_row *row, char *value, void *options);
int option_number64(const struct option_row *row, char *value, void *options);
int option_name(const struct option_row *row, char *value, void *options);

/* For a command's own such functions: where the value goes; a number, which
 * begins with a digit and ends at *end; whether a text is a number in the row's
 * bounds. */
void *option_field(const struct option_row *row, void *options);
bool option_digits(const char *text, uint64_t *out, const char **end);
bool option_in_bounds(const struct option_row *row, const char *text,
                      uint64_t *out);

/* Each of these prints a line on stderr and returns EXIT_USAGE: any text; that
 * a value is not what it must be; that there is no such thing, what there is
 * (NULL: the names of nth), and which of the names may have been meant. */
int option_refuse(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
int option_wrong(const struct option_row *row, const char *value);
int option_unknown(const char *what, const char *value, const char *right,
                   const char *(*nth)(uint32_t i));

#endif
