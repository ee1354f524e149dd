/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arguments_names.c - reads options whose values are names, or several of them:
 * patterns, and the name that may have been meant by an unknown one.
 */
#include "cli/line/arguments_internal.h"
#include "models/workload.h"
#include "mutants/mutant.h"
#include "run/worker/engine_load.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>
#include <unistd.h>

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
            return option_refuse("--%s: a value of the list is empty",
                                 row->name);
        }
        if (out->n == ARGUMENTS_MAX) {
            return option_refuse("--%s: more than 64 values", row->name);
        }
        if (name_list_has(out, word)) {
            return option_refuse("--%s: '%s' is there twice", row->name, word);
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

/* Whether a name is one of the row's names, or a pattern that matches one. */
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
                        void *options)
{
    struct name_list *const list = option_field(row, options);
    const uint32_t before = list->n;

    if (split(row, value, list)) {
        return EXIT_USAGE;
    }
    for (uint32_t i = before; i < list->n && row->nth; i++) {
        if (!is_known(row, list->name[i])) {
            return option_unknown(row->name, list->name[i], row->right,
                                  row->nth);
        }
    }
    return 0;
}

/* A missing engine is refused before any process is started; whether a file is
 * an engine is found by the worker that loads it. */
int arguments_take_engines(const struct option_row *row, char *value,
                           void *options)
{
    struct arguments *const out = options;
    const uint32_t before = out->engines.n;

    /* A path with commas that exists as it stands is no list. */
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
            return option_unknown(row->name, name, row->right, row->nth);
        }
        if (strchr(name, '/') && access(name, F_OK) != 0) {
            return option_refuse("engine %s: %s", name, strerror(errno));
        }
    }
    return 0;
}

int arguments_take_ranks(const struct option_row *row, char *value,
                         void *options)
{
    struct arguments *const out = options;
    struct name_list list = {.n = 0};
    uint64_t n;

    if (split(row, value, &list)) {
        return EXIT_USAGE;
    }
    for (uint32_t i = 0; i < list.n; i++) {
        if (!option_in_bounds(row, list.name[i], &n)) {
            return option_refuse(
                "--%s '%s': must be numbers from %u to %u, which is what a "
                "world has room for (more: fsdp-cts count, of bytes alone)",
                row->name, list.name[i], (unsigned)row->least,
                (unsigned)row->most);
        }
        out->ranks[out->n_ranks] = (uint32_t)n;
        out->n_ranks += out->n_ranks < ARGUMENTS_MAX;
    }
    return 0;
}

int arguments_take_mutant(const struct option_row *row, char *value,
                          void *options)
{
    struct arguments *const out = options;

    out->mutant = value;
    return is_known(row, value) && !name_is_pattern(value)
               ? 0
               : option_unknown(row->name, value, row->right, row->nth);
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
