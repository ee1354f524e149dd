/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command_list.c - lists what exists: requirements, cases, what a driver does
 * in each (scripts), workloads, engines, mutants, claims. docs/requirements.md
 * and the tables of claims are made of its output.
 */
#include "cases/case_claims.h"
#include "cli/choose/selection.h"
#include "cli/commands.h"
#include "cli/line/arguments.h"
#include "models/workload.h"
#include "mutants/mutant.h"
#include "run/worker/engine_load.h"
#include "script/script_mask.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One row, as text or as an element of a JSON array. Keys and values are in
 * pairs; the first value is the id. */
struct row {
    const char *key[8], *value[8];
    int n;
};

static void add_key(struct row *r, const char *key, const char *value)
{
    r->key[r->n] = key;
    r->value[r->n++] = value ? value : "";
}

static int print(json_t *array, const struct row *r, const char *line)
{
    json_t *o;

    if (!array) {
        printf("%s\n", line);
        return 0;
    }
    o = json_object();
    for (int i = 0; i < r->n; i++) {
        if (json_object_set_new(o, r->key[i], json_string(r->value[i]))) {
            json_decref(o);
            return -1;
        }
    }
    return json_array_append_new(array, o);
}

static int list_requirements(json_t *array, const struct arguments *a)
{
    (void)a;
    for (const struct requirement *const *p = requirement_table(); *p; p++) {
        const struct requirement *q = *p;
        char line[512];
        struct row r = {.n = 0};
        add_key(&r, "id", q->id);
        add_key(&r, "text", q->text);
        add_key(&r, "must", q->must ? "MUST" : "SHOULD");
        add_key(&r, "level", requirement_level_name(q->level));
        add_key(&r, "since", q->since);
        add_key(&r, "needs", q->needs);
        add_key(&r, "claim", q->claim);
        snprintf(line, sizeof(line), "%-34s %-6s %-9s %s", q->id,
                 q->must ? "MUST" : "SHOULD", requirement_level_name(q->level),
                 q->text);
        if (print(array, &r, line)) {
            return EXIT_INCOMPLETE;
        }
    }
    return 0;
}

static int list_cases(json_t *array, const struct arguments *a)
{
    struct case_list cases;
    int code = selection_make(a, &cases);

    for (uint32_t i = 0; !code && i < cases.n; i++) {
        char id[CASE_ID_BYTES];
        struct row r = {.n = 0};
        case_id(&cases.c[i], id);
        add_key(&r, "id", id);
        if (print(array, &r, id)) {
            code = EXIT_INCOMPLETE;
        }
    }
    manifest_release(&cases);
    return code;
}

/* Prints the id as a comment of the script, so that it can be cut out and
 * used. */
static int list_text(json_t *array, const char *key, const char *id,
                     const char *text)
{
    char line[CASE_ID_BYTES + 8];
    struct row r = {.n = 0};
    int code;

    add_key(&r, key, id);
    add_key(&r, "script", text);
    snprintf(line, sizeof(line), "# %s", id);
    code = !text || print(array, &r, line) ? EXIT_INCOMPLETE : 0;
    if (!code && !array) {
        printf("%s\n", text);
    }
    return code;
}

static int list_script(json_t *array, const struct run_case *c)
{
    char id[CASE_ID_BYTES];
    char *text = script_of_case(c, false);
    int code;

    case_id(c, id);
    code = list_text(array, "case", id, text);
    free(text);
    return code;
}

static int list_drawn(json_t *array, uint64_t seed)
{
    struct fsdp_error error = {0};
    struct script_mask all;
    struct script s;
    char id[SCRIPT_ID_BYTES];
    int code = EXIT_INCOMPLETE;

    if (script_draw(seed, &s, &error) == FSDP_OK) {
        char *text = script_text(&s);

        script_mask_all(&s, &all);
        script_id(seed, &s, &all, id);
        code = list_text(array, "id", id, text);
        free(text);
    }
    script_release(&s);
    return code;
}

static int list_scripts(json_t *array, const struct arguments *a)
{
    struct case_list cases;
    int code = 0;

    for (uint32_t i = 0; !code && i < a->n_scripts; i++) {
        code = list_drawn(array, (uint64_t)a->seed + i);
    }
    if (code || a->n_scripts) {
        return code;
    }
    code = selection_make(a, &cases);
    for (uint32_t i = 0; !code && i < cases.n; i++) {
        code = list_script(array, &cases.c[i]);
    }
    manifest_release(&cases);
    return code;
}

static int list_workloads(json_t *array, const struct arguments *a)
{
    (void)a;
    for (const struct workload *const *w = workloads; *w; w++) {
        char sizes[128] = "";
        char line[512];
        struct row r = {.n = 0};
        for (const char *const *s = (*w)->sizes; *s; s++) {
            size_t used = strlen(sizes);
            snprintf(sizes + used, sizeof(sizes) - used, "%s%s",
                     used ? " " : "", *s);
        }
        add_key(&r, "name", (*w)->name);
        add_key(&r, "summary", (*w)->summary);
        add_key(&r, "sizes", sizes);
        snprintf(line, sizeof(line), "%-8s %s (sizes: %s)", (*w)->name,
                 (*w)->summary, sizes);
        if (print(array, &r, line)) {
            return EXIT_INCOMPLETE;
        }
    }
    return 0;
}

static int list_engines(json_t *array, const struct arguments *a)
{
    (void)a;
    for (const struct engine_entry *e = engine_list; e->name; e++) {
        char line[256];
        struct row r = {.n = 0};
        add_key(&r, "name", e->name);
        add_key(&r, "summary", e->summary);
        snprintf(line, sizeof(line), "%-10s %s", e->name, e->summary);
        if (print(array, &r, line)) {
            return EXIT_INCOMPLETE;
        }
    }
    return 0;
}

static int list_mutants(json_t *array, const struct arguments *a)
{
    (void)a;
    for (const struct mutant *const *p = mutants; *p; p++) {
        const struct mutant *m = *p;
        char line[1024];
        struct row r = {.n = 0};
        add_key(&r, "name", m->name);
        add_key(&r, "text", m->text);
        add_key(&r, "evidence", m->evidence);
        add_key(&r, "kills", m->kills);
        snprintf(line, sizeof(line), "%-28s %s\n%28s killed by: %s", m->name,
                 m->text, "", m->kills);
        if (print(array, &r, line)) {
            return EXIT_INCOMPLETE;
        }
    }
    return 0;
}

static int list_claims(json_t *array, const struct arguments *a)
{
    static const char *const groups[] = {[CLAIM_CORE] = "core",
                                         [CLAIM_ENGINE] = "engine",
                                         [CLAIM_ADAPTER] = "adapter"};

    (void)a;
    for (const struct claim *q = known_claims; q->name; q++) {
        char name[64];
        char line[512];
        struct row r = {.n = 0};
        snprintf(name, sizeof(name), "%s%s", q->name, q->begins ? "W" : "");
        add_key(&r, "name", name);
        add_key(&r, "group", groups[q->group]);
        add_key(&r, "text", q->text);
        snprintf(line, sizeof(line), "%-18s %-7s %s", name, groups[q->group],
                 q->text);
        if (print(array, &r, line)) {
            return EXIT_INCOMPLETE;
        }
    }
    return 0;
}

/* Lists names alone. */
static int list_names(json_t *array, const char *(*nth)(uint32_t i))
{
    for (uint32_t i = 0; nth(i); i++) {
        struct row r = {.n = 0};

        add_key(&r, "name", nth(i));
        if (print(array, &r, nth(i))) {
            return EXIT_INCOMPLETE;
        }
    }
    return 0;
}

static int list_levels(json_t *array, const struct arguments *a)
{
    (void)a;
    return list_names(array, arguments_level);
}

static int list_strategies(json_t *array, const struct arguments *a)
{
    (void)a;
    return list_names(array, arguments_strategy);
}

static const struct {
    const char *name;
    int (*list)(json_t *array, const struct arguments *a);
} lists[] = {
    {"requirements", list_requirements},
    {"cases", list_cases},
    {"scripts", list_scripts},
    {"workloads", list_workloads},
    {"engines", list_engines},
    {"mutants", list_mutants},
    {"claims", list_claims},
    {"levels", list_levels},
    {"strategies", list_strategies},
};
enum {
    N_LISTS = sizeof(lists) / sizeof(lists[0])
};

static const char *list_name(uint32_t i)
{
    return i < N_LISTS ? lists[i].name : NULL;
}

static int list(const struct arguments *a, const char *what)
{
    json_t *array = a->json ? json_array() : NULL;
    int code = EXIT_USAGE;
    int i = 0;

    while (i < N_LISTS && strcmp(lists[i].name, what) != 0) {
        i++;
    }
    if (i == N_LISTS) {
        code = option_unknown("list", what, "; see: fsdp-cts list --help",
                              list_name);
    } else {
        code = lists[i].list(array, a);
    }
    if (array && code == 0) {
        json_dumpf(array, stdout, JSON_INDENT(1));
        printf("\n");
    }
    json_decref(array);
    return code;
}

int command_list(int argc, char **argv)
{
    const unsigned takes = TAKES_SELECTION | TAKES_DRAW | TAKES_JSON;
    struct arguments a;

    const int wrong = arguments_parse(argc, argv, takes, &a);
    if (wrong) {
        return wrong;
    }
    if (a.help) {
        printf("usage: fsdp-cts list WHAT [OPTION ...]\n\n"
               "Lists what there is:");
        for (int i = 0; i < N_LISTS; i++) {
            printf(" %s", lists[i].name);
        }
        printf(".\n\nexample: fsdp-cts list cases --case 'gpt.*.k2.*'\n\n");
        arguments_help(takes);
        return 0;
    }
    if (a.n_rest != 1) {
        fprintf(stderr, "fsdp-cts list: needs one of");
        for (int i = 0; i < N_LISTS; i++) {
            fprintf(stderr, "%s %s", i ? "," : "", lists[i].name);
        }
        fprintf(stderr, "\n");
        return EXIT_USAGE;
    }
    if (a.n_scripts && strcmp(a.rest[0], "scripts") != 0) {
        fprintf(stderr,
                "fsdp-cts list: --draw is of scripts: fsdp-cts list "
                "scripts --draw %u\n",
                a.n_scripts);
        return EXIT_USAGE;
    }
    if (a.seed && !a.n_scripts) {
        fprintf(stderr, "fsdp-cts list: --seed is the first of --draw N\n");
        return EXIT_USAGE;
    }
    return list(&a, a.rest[0]);
}
