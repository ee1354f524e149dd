/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arguments_names.c - options whose values are names, or several of them:
 * patterns, and what was meant where there is no such name.
 */
#include "cli/line/arguments_internal.h"
#include "cli/line/near.h"
#include "models/workload.h"
#include "mutants/mutant.h"
#include "run/worker/engine_load.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *arguments_field(const struct option_row *row, struct arguments *out)
{
    return (char *)out + row->at;
}

int arguments_usage(const char *format, const char *value, const char *right)
{
    fprintf(stderr, "fsdp-cts: ");
    /* Formats are this file's own. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    fprintf(stderr, format, value, right);
#pragma GCC diagnostic pop
    fprintf(stderr, "\n");
    return EXIT_USAGE;
}

/* A number in the row's bounds; false: text is none. */
bool arguments_number(const struct option_row *row, const char *text,
                      uint32_t *out)
{
    char *end;
    unsigned long n;

    errno = 0;
    n = strtoul(text, &end, 10);
    if (errno || end == text || *end || text[0] == '-' || text[0] == '+' ||
        n < row->least || n > row->most) {
        return false;
    }
    *out = (uint32_t)n;
    return true;
}

/* The next value of a list, in place: up to a comma, unless a backslash stands
 * before that. NULL: the list has ended. */
static char *next_value(char **rest)
{
    char *begin = *rest;
    char *to = begin;
    char *from = begin;

    if (!begin) {
        return NULL;
    }
    for (; *from && *from != ','; from++) {
        from += from[0] == '\\' && from[1] == ',';
        *to++ = *from;
    }
    *rest = *from ? from + 1 : NULL;
    *to = '\0';
    return begin;
}

static int split(const struct option_row *row, char *value,
                 struct name_list *out)
{
    char *rest = value;
    char *word;

    while ((word = next_value(&rest))) {
        if (!*word) {
            return arguments_usage("--%s: a value of the list is empty%s",
                                   row->name, "");
        }
        if (out->n == ARGUMENTS_MAX) {
            return arguments_usage("--%s: more than 64 values%s", row->name,
                                   "");
        }
        if (name_list_has(out, word)) {
            return arguments_usage("--%s: '%s' is there twice", row->name,
                                   word);
        }
        out->name[out->n++] = word;
    }
    out->name[out->n] = NULL;
    return 0;
}

bool name_list_has(const struct name_list *list, const char *name)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (strcmp(list->name[i], name) == 0) {
            return true;
        }
    }
    return false;
}

bool name_is_pattern(const char *name)
{
    return strpbrk(name, "*?[") != NULL;
}

bool name_list_matches(const struct name_list *list, const char *name)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (name_is_pattern(list->name[i])
                ? fnmatch(list->name[i], name, 0) == 0
                : strcmp(list->name[i], name) == 0) {
            return true;
        }
    }
    return false;
}

int arguments_unknown(const char *what, const char *value, const char *choices,
                      const char *(*nth)(uint32_t i))
{
    struct near n = {.wanted = value};
    char meant[256];

    for (uint32_t i = 0; nth(i); i++) {
        near_try(&n, nth(i));
    }
    fprintf(stderr, "fsdp-cts: unknown %s '%s'%s%s\n", what, value, choices,
            near_say(&n, meant));
    return EXIT_USAGE;
}

static int unknown_name(const struct option_row *row, const char *value)
{
    return arguments_unknown(row->name, value, row->choices, row->nth);
}

/* Whether it is one of the row's names, or a pattern of some. */
static bool is_known(const struct option_row *row, const char *name)
{
    struct name_list one = {.name = {name}, .n = 1};
    uint32_t i = 0;

    while (row->nth(i) && !name_list_matches(&one, row->nth(i))) {
        i++;
    }
    return row->nth(i) != NULL;
}

int arguments_take_list(const struct option_row *row, char *value,
                        struct arguments *out)
{
    struct name_list *const list = arguments_field(row, out);
    const uint32_t before = list->n;

    if (split(row, value, list)) {
        return EXIT_USAGE;
    }
    for (uint32_t i = before; i < list->n && row->nth; i++) {
        if (!is_known(row, list->name[i])) {
            return unknown_name(row, list->name[i]);
        }
    }
    return 0;
}

/* An engine that is not there is known before any process is started; whether
 * a file is an engine, the worker that loads it says. */
int arguments_take_engines(const struct option_row *row, char *value,
                           struct arguments *out)
{
    const uint32_t before = out->engines.n;

    /* A path that has commas, and that is there as it stands, is no list. */
    if (strchr(value, '/') && strchr(value, ',') && !strchr(value, '\\') &&
        access(value, F_OK) == 0 && before < ARGUMENTS_MAX) {
        out->engines.name[out->engines.n++] = value;
        out->engines.name[out->engines.n] = NULL;
    } else if (split(row, value, &out->engines)) {
        return EXIT_USAGE;
    }
    for (uint32_t i = before; i < out->engines.n; i++) {
        const char *name = out->engines.name[i];

        if (!engine_is_path(name) && !is_known(row, name)) {
            return unknown_name(row, name);
        }
        if (strchr(name, '/') && access(name, F_OK) != 0) {
            return arguments_usage("engine %s: %s", name, strerror(errno));
        }
    }
    return 0;
}

int arguments_take_ranks(const struct option_row *row, char *value,
                         struct arguments *out)
{
    struct name_list list = {.n = 0};
    char most[16];

    if (split(row, value, &list)) {
        return EXIT_USAGE;
    }
    snprintf(most, sizeof(most), "%u", (unsigned)row->most);
    for (uint32_t i = 0; i < list.n; i++) {
        if (!arguments_number(row, list.name[i], &out->ranks[out->n_ranks])) {
            return arguments_usage(
                "--ranks '%s': must be numbers from 1 to %s, which is "
                "what a world has room for (more: fsdp-cts "
                "count, of bytes alone)",
                list.name[i], most);
        }
        out->n_ranks += out->n_ranks < ARGUMENTS_MAX;
    }
    return 0;
}

int arguments_take_mutant(const struct option_row *row, char *value,
                          struct arguments *out)
{
    out->mutant = value;
    return is_known(row, value) && !name_is_pattern(value)
               ? 0
               : unknown_name(row, value);
}

int arguments_take_name(const struct option_row *row, char *value,
                        struct arguments *out)
{
    uint32_t *const number = arguments_field(row, out);

    if (row->most && arguments_number(row, value, number)) {
        return 0;
    }
    for (uint32_t i = 0; row->nth(i); i++) {
        if (strcmp(row->nth(i), value) == 0) {
            *number = i;
            return 0;
        }
    }
    return unknown_name(row, value);
}

const char *arguments_engine(uint32_t i)
{
    return engine_list[i].name;
}

const char *arguments_mutant(uint32_t i)
{
    return mutants[i] ? mutants[i]->name : NULL;
}

const char *arguments_workload(uint32_t i)
{
    return workloads[i] ? workloads[i]->name : NULL;
}

const char *arguments_strategy(uint32_t i)
{
    return case_strategy_name(i);
}

const char *arguments_requirement(uint32_t i)
{
    const struct requirement *const *r = requirement_table();

    for (uint32_t k = 0; *r && k < i; k++) {
        r++;
    }
    return *r ? (*r)->id : NULL;
}

const char *arguments_world(uint32_t i)
{
    return i < N_WORLDS ? world_names[i] : NULL;
}

const char *arguments_level(uint32_t i)
{
    return i < N_LEVELS ? requirement_level_name(i) : NULL;
}
