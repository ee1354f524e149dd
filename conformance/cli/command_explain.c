/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_explain.c - explains a requirement: what it asks, what must be right
 * before it can be told, what waits for it, and how engines get it wrong: the
 * mutants that die of it, each with where it was seen.
 */
#include "cli/commands.h"
#include "mutants/mutant.h"

#include <stdio.h>
#include <string.h>

enum {
    TAKES = 0
};

static void help(void)
{
    printf(
        "usage: fsdp-cts explain REQUIREMENT ... [OPTION ...]\n\n"
        "Says what a requirement asks, what it needs, what waits for it, and "
        "how engines\nget it wrong. A form stands for several: 'memory.*'.\n"
        "\nexample: fsdp-cts explain reduce.scale\n\n");
    arguments_help(TAKES);
}

static void put_words(const char *text, int indent)
{
    printf("%*s", indent, "");
    options_words(text, indent);
}

static bool names(const char *list, const char *id)
{
    const size_t n = strlen(id);
    const char *at = list;

    while (at && (at = strstr(at, id))) {
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n])) {
            return true;
        }
        at += n;
    }
    return false;
}

static void put_dependents(const char *id)
{
    bool any = false;

    for (const struct requirement *const *r = requirement_table(); *r; r++) {
        if (names((*r)->needs, id)) {
            printf("%s    %s\n",
                   any ? ""
                       : "  blocked where it fails, among "
                         "others:\n",
                   (*r)->id);
            any = true;
        }
    }
}

static void put_mutants(const char *id)
{
    bool any = false;

    for (const struct mutant *const *m = mutants; *m; m++) {
        const char *seen = (*m)->evidence ? (*m)->evidence : "";

        if (!names((*m)->kills, id)) {
            continue;
        }
        printf("%s    %s%s%s%s\n", any ? "" : "  engines get it wrong so:\n",
               (*m)->name, *seen ? " (seen in " : "", seen, *seen ? ")" : "");
        put_words((*m)->text, 6);
        any = true;
    }
    if (any) {
        printf("  to see one fail: fsdp-cts run --engine ref --mutant NAME "
               "--requirement %s\n",
               id);
    }
}

static void explain(const struct requirement *r)
{
    printf("%s  %s, level %s, since %s\n", r->id, r->must ? "MUST" : "SHOULD",
           requirement_level_name(r->level), r->since);
    put_words(r->text, 2);
    if (r->claim) {
        printf("  asked of engines that claim %s\n", r->claim);
    }
    if (r->needs) {
        printf("  needs, to be told:\n");
        put_words(r->needs, 4);
    }
    put_dependents(r->id);
    put_mutants(r->id);
}

int command_explain(int argc, char **argv)
{
    struct arguments a;
    const int wrong = arguments_parse(argc, argv, TAKES, &a);
    bool first = true;

    if (wrong) {
        return wrong;
    }
    if (a.help) {
        help();
        return 0;
    }
    if (a.n_rest < 1) {
        fprintf(stderr, "fsdp-cts explain: needs a requirement; see: fsdp-cts "
                        "list requirements\n");
        return EXIT_USAGE;
    }
    for (int i = 0; i < a.n_rest; i++) {
        const struct name_list one = {.name = {a.rest[i]}, .n = 1};
        bool found = false;

        for (const struct requirement *const *r = requirement_table(); *r;
             r++) {
            if (name_list_matches(&one, (*r)->id)) {
                printf("%s", first ? "" : "\n");
                explain(*r);
                first = false;
                found = true;
            }
        }
        if (!found) {
            return option_unknown("requirement", a.rest[i],
                                  "; see: fsdp-cts list requirements",
                                  arguments_requirement);
        }
    }
    return 0;
}
