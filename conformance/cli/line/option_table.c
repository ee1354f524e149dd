/* SPDX-License-Identifier: Apache-2.0 */
/*
 * option_table.c - reads a command line by a table, and prints it as --help.
 */
#include "cli/line/option_table.h"
#include "cli/line/near.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_CODE = 256, /* getopt's code of the first row: no character */
    LEFT = 31,        /* columns of --help before its words */
    WIDE = 76
};

/* ---- What is wrong ---- */

int option_refuse(const char *format, ...)
{
    va_list values;

    fprintf(stderr, "fsdp-cts: ");
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fprintf(stderr, "\n");
    return EXIT_USAGE;
}

int option_wrong(const struct option_row *row, const char *value)
{
    char bounds[64];

    snprintf(bounds, sizeof(bounds), "a number from %" PRIu64 " to %" PRIu64,
             row->least, row->most);
    return option_refuse("--%s '%.200s': must be %s", row->name, value,
                         row->right ? row->right : bounds);
}

int option_unknown(const char *what, const char *value, const char *right,
                   const char *(*nth)(uint32_t i))
{
    struct near n = {.wanted = value};
    char meant[256];

    fprintf(stderr, "fsdp-cts: unknown %s '%s'%s", what, value,
            right ? right : "");
    for (uint32_t i = 0; nth(i); i++) {
        near_try(&n, nth(i));
        if (!right) {
            fprintf(stderr, "%s%s",
                    i == 0       ? ": "
                    : nth(i + 1) ? ", "
                                 : " or ",
                    nth(i));
        }
    }
    fprintf(stderr, "%s\n", near_say(&n, meant));
    return EXIT_USAGE;
}

/* ---- Readers of values ---- */

void *option_field(const struct option_row *row, void *options)
{
    return (char *)options + row->at;
}

bool option_digits(const char *text, uint64_t *out, const char **end)
{
    char *rest = NULL;

    if (text[0] < '0' || text[0] > '9') {
        return false;
    }
    errno = 0;
    *out = strtoull(text, &rest, 10);
    *end = rest;
    return errno == 0;
}

bool option_in_bounds(const struct option_row *row, const char *text,
                      uint64_t *out)
{
    const char *end;
    uint64_t n;

    if (!option_digits(text, &n, &end) || *end != '\0' || n < row->least ||
        n > row->most) {
        return false;
    }
    *out = n;
    return true;
}

int option_flag(const struct option_row *row, char *value, void *options)
{
    (void)value;
    *(bool *)option_field(row, options) = true;
    return 0;
}

int option_text(const struct option_row *row, char *value, void *options)
{
    *(const char **)option_field(row, options) = value;
    return 0;
}

int option_number(const struct option_row *row, char *value, void *options)
{
    uint64_t n;

    if (!option_in_bounds(row, value, &n)) {
        return option_wrong(row, value);
    }
    *(uint32_t *)option_field(row, options) = (uint32_t)n;
    return 0;
}

int option_number64(const struct option_row *row, char *value, void *options)
{
    return option_in_bounds(row, value, option_field(row, options))
               ? 0
               : option_wrong(row, value);
}

int option_name(const struct option_row *row, char *value, void *options)
{
    uint32_t *const out = option_field(row, options);
    uint64_t n;

    if (row->most > 0 && option_in_bounds(row, value, &n)) {
        *out = (uint32_t)n;
        return 0;
    }
    for (uint32_t i = 0; row->nth(i); i++) {
        if (strcmp(row->nth(i), value) == 0) {
            *out = i;
            return 0;
        }
    }
    return option_unknown(row->name, value, row->right, row->nth);
}

/* ---- The table ---- */

static bool is_taken(const struct option_row *row, const struct option_table *t)
{
    return !row->takes || (row->takes & t->takes);
}

static int unknown_option(const struct option_table *t, const char *typed,
                          const char *command)
{
    const char *bare = typed + strspn(typed, "-");
    char name[64];
    struct near n = {.wanted = name};

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(bare, "="), bare);
    for (size_t i = 0; i < t->n; i++) {
        if (is_taken(&t->row[i], t)) {
            near_try(&n, t->row[i].name);
        }
    }
    return option_refuse("unknown option '%.200s'; see: fsdp-cts %s --help"
                         "%s%s%s",
                         typed, command, n.best ? "; did you mean '--" : "",
                         n.best ? n.best : "", n.best ? "'?" : "");
}

/* Says what getopt has found wrong, with `why`, about the word before optind or
 * about optopt: a letter, or the code of a row. */
static int refuse(int why, const struct option_table *t, char **argv)
{
    const char letter[] = {'-', (char)optopt, '\0'};

    if (why == ':') {
        return option_refuse("option '%.200s' needs a value; see: fsdp-cts %s "
                             "--help",
                             argv[optind - 1], argv[0]);
    }
    if (optopt >= FIRST_CODE) {
        return option_refuse("option '--%s' takes no value; see: fsdp-cts %s "
                             "--help",
                             t->row[optopt - FIRST_CODE].name, argv[0]);
    }
    return unknown_option(t, optopt ? letter : argv[optind - 1], argv[0]);
}

static int read_all(const struct option_table *t, const struct option *known,
                    int argc, char **argv, void *options)
{
    int code;

    opterr = 0;
    optind = 1;
    while ((code = getopt_long(argc, argv, ":h", known, NULL)) != -1) {
        if (code == '?' || code == ':') {
            return refuse(code, t, argv);
        }
        const struct option_row *const row =
            &t->row[code == 'h' ? t->n - 1 : (size_t)code - FIRST_CODE];
        if (row->given > 0) {
            *(bool *)((char *)options + row->given) = true;
        }
        code = row->take(row, optarg, options);
        if (code != 0) {
            return code;
        }
    }
    return 0;
}

int options_read(const struct option_table *t, int argc, char **argv,
                 void *options, int *rest)
{
    struct option *const known = calloc(t->n + 1, sizeof(*known));
    int code;

    if (!known) {
        return option_refuse("out of memory");
    }
    for (size_t i = 0, n = 0; i < t->n; i++) {
        if (is_taken(&t->row[i], t)) {
            known[n++] = (struct option){t->row[i].name,
                                         t->row[i].value ? required_argument
                                                         : no_argument,
                                         NULL, FIRST_CODE + (int)i};
        }
    }
    code = read_all(t, known, argc, argv, options);
    free(known);
    *rest = optind;
    return code;
}

void options_words(const char *text, int indent)
{
    int column = indent;

    while (*(text += strspn(text, " "))) {
        const int n = (int)strcspn(text, " ");

        if (column > indent && column + 1 + n > WIDE) {
            printf("\n%*s", indent, "");
            column = indent;
        }
        column += printf("%s%.*s", column > indent ? " " : "", n, text);
        text += n;
    }
    printf("\n");
}

void options_help(const struct option_table *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct option_row *const row = &t->row[i];
        char left[40];

        if (is_taken(row, t)) {
            snprintf(left, sizeof(left), "--%s%s%s", row->name,
                     row->value ? " " : "", row->value ? row->value : "");
            printf("  %-*s ", LEFT - 3, left);
            options_words(row->help, LEFT);
        }
    }
}
