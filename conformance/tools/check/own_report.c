/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_report.c - what came out, for people and for programs.
 */
#include "tools/check/own_judge.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum {
    PLACE_BYTES = 700,
    COLUMNS = 100,
};

static const char *unit_name(const struct own_set *s, int64_t unit)
{
    const struct own_record *first = &s->rank[0];

    if (unit < 0 || unit >= first->n_units) {
        return NULL;
    }
    return first->unit[unit].name[0] ? first->unit[unit].name : "(root)";
}

/* The unit that has a parameter. */
static int64_t unit_of(const struct own_set *s, int64_t parameter)
{
    const struct own_record *first = &s->rank[0];

    for (uint32_t u = 0; u < first->n_units; u++) {
        for (uint32_t i = 0; i < first->unit[u].n_parameters; i++) {
            if (first->unit[u].parameter[i] == parameter) {
                return u;
            }
        }
    }
    return -1;
}

static const char *parameter_name(const struct own_set *s, int64_t p)
{
    return p < 0 || p >= s->unsharded.n_parameters
               ? NULL
               : s->unsharded.parameter[p].name;
}

/* "step 2, rank 1, unit h.0, h.0.c.weight, element 17: " */
static void say_place(const struct own_set *s, const struct own_finding *f,
                      char text[PLACE_BYTES])
{
    const int64_t unit = f->unit >= 0 ? f->unit : unit_of(s, f->parameter);
    const struct {
        const char *word;
        int64_t number;
        const char *name;
    } part[] = {
        {"step", f->step, NULL},
        {"microbatch", s->unsharded.microbatches > 1 ? f->microbatch : -1,
         NULL},
        {"rank", f->rank, NULL},
        {"unit", -1, unit_name(s, unit)},
        {"parameter", -1, parameter_name(s, f->parameter)},
        {"element", f->element, NULL},
    };
    int n = 0;

    text[0] = '\0';
    for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++) {
        const char *comma = n > 0 ? ", " : "";

        if (part[i].name) {
            n += snprintf(text + n, PLACE_BYTES - (size_t)n, "%s%s %s", comma,
                          part[i].word, part[i].name);
        } else if (part[i].number >= 0) {
            n += snprintf(text + n, PLACE_BYTES - (size_t)n, "%s%s %" PRId64,
                          comma, part[i].word, part[i].number);
        }
    }
    if (n > 0) {
        snprintf(text + n, PLACE_BYTES - (size_t)n, ": ");
    }
}

/* The ids of one outcome, in lines. */
static void list(const struct own_result *r, uint32_t outcome, const char *word)
{
    size_t column = 0;

    if (r->count[outcome] == 0) {
        return;
    }
    for (uint32_t i = 0; i < own_n_requirements; i++) {
        const char *id = own_requirements[i].id;

        if (r->item[i].outcome != outcome) {
            continue;
        }
        if (column == 0 || column + 1 + strlen(id) > COLUMNS) {
            column = (size_t)printf("%s%-8s", column == 0 ? "" : "\n",
                                    column == 0 ? word : "");
        }
        column += (size_t)printf(" %s", id);
    }
    printf("\n");
}

static void print_failure(const struct own_set *s, const struct own_result *r,
                          uint32_t i)
{
    char place[PLACE_BYTES];

    say_place(s, &r->item[i].finding, place);
    printf("FAIL     %s: %s%s\n", own_requirements[i].id, place,
           r->item[i].finding.text);
}

/* The earliest step first: it has what spoiled the others. */
static void print_failures(const struct own_set *s, const struct own_result *r)
{
    for (int64_t step = -1; step < s->unsharded.steps; step++) {
        for (uint32_t i = 0; i < own_n_requirements; i++) {
            if (r->item[i].outcome == OWN_FAIL &&
                r->item[i].finding.step == step) {
                print_failure(s, r, i);
            }
        }
    }
    if (r->first != UINT32_MAX) {
        printf("\nLook first at %s: %s\n", own_requirements[r->first].id,
               own_requirements[r->first].text);
    }
}

static void print_scope(const struct own_set *s, const struct own_result *r)
{
    const struct own_record *first = &s->rank[0];

    printf("%s under %s, %u ranks, %u steps", s->unsharded.library,
           first->wrapper, s->world, s->unsharded.steps);
    if (s->unsharded.microbatches > 1) {
        printf(" of %u microbatches", s->unsharded.microbatches);
    }
    printf(", computed in %s, reduced in %s, %s\n",
           own_dtype_name(s->unsharded.compute),
           own_dtype_name(s->unsharded.reduce), s->unsharded.optimizer);
    printf("%u parameters, %" PRIu64 " elements, %u units\n\n",
           s->unsharded.n_parameters, r->scope.elements, first->n_units);
}

/* Prints how much was compared "in every bit". */
static void print_looked_at(const struct own_set *s, const struct own_result *r)
{
    if (own_is_zero(s)) {
        printf(
            "\nNot shown: how often and how much is gathered and reduced, and "
            "memory. ZeRO has no\nunits that could be counted.");
    }
    printf("\n%" PRIu64 " tensors were compared in every bit. ",
           r->scope.tensors);
    if (s->world == 2) {
        printf("Of reduced gradients all elements were\ncompared, and %" PRIu64
               " of %" PRIu64 " added up again in any order. No tolerance was "
               "used.\n",
               r->scope.added, r->scope.added_all);
    } else {
        printf("Of reduced gradients %" PRIu64 " of %" PRIu64
               "\nelements were added up again in any order; the unsharded run "
               "goes on with the sharded\nrun's sums, as those of %u depend on "
               "their order. No tolerance was used.\n",
               r->scope.added, r->scope.added_all, s->world);
    }
}

void own_print(const struct own_set *s, const struct own_result *r,
               const char *name)
{
    printf("%s: ", name);
    print_scope(s, r);
    list(r, OWN_PASS, "pass");
    list(r, OWN_NOT_APPLICABLE, "n/a");
    list(r, OWN_BLOCKED, "blocked");
    print_failures(s, r);
    if (r->count[OWN_BLOCKED] == 0) {
        print_looked_at(s, r);
    }
    printf(
        "Of %u checks that pass %u were asked again of a damaged record, and "
        "%u noticed.\n%s\n",
        r->count[OWN_PASS], r->damaged, r->proved,
        own_verdict_name(r->verdict));
}

/* ---- JSON ---- */

static void set_number(json_t *to, const char *key, int64_t n)
{
    if (n >= 0) {
        (void)json_object_set_new(to, key, json_integer(n));
    }
}

static void set_text(json_t *to, const char *key, const char *text)
{
    if (text) {
        (void)json_object_set_new(to, key, json_string(text));
    }
}

static json_t *finding_of(const struct own_set *s, const struct own_finding *f)
{
    json_t *to = json_object();

    set_number(to, "step", f->step);
    set_number(to, "microbatch", f->microbatch);
    set_number(to, "rank", f->rank);
    set_text(to, "unit",
             unit_name(s, f->unit >= 0 ? f->unit : unit_of(s, f->parameter)));
    set_text(to, "parameter", parameter_name(s, f->parameter));
    set_number(to, "element", f->element);
    set_text(to, "text", f->text);
    return to;
}

bool own_print_json(const struct own_set *s, const struct own_result *r,
                    const char *name)
{
    json_t *items = json_array();
    json_t *root;
    bool written;

    for (uint32_t i = 0; i < own_n_requirements; i++) {
        json_t *item = json_object();

        set_text(item, "id", own_requirements[i].id);
        set_text(item, "outcome", own_outcome_name(r->item[i].outcome));
        if (r->item[i].outcome == OWN_FAIL) {
            (void)json_object_set_new(item, "finding",
                                      finding_of(s, &r->item[i].finding));
        }
        (void)json_array_append_new(items, item);
    }
    root = json_pack(
        "{s:i, s:s, s:s, s:s, s:i, s:i, s:i, s:s, s:s, s:I, s:I, s:I, s:I, "
        "s:o, "
        "s:s}",
        "check", OWN_VERSION, "name", name, "library", s->unsharded.library,
        "wrapper", s->rank[0].wrapper, "ranks", (int)s->world, "steps",
        (int)s->unsharded.steps, "microbatches", (int)s->unsharded.microbatches,
        "compute", own_dtype_name(s->unsharded.compute), "reduce",
        own_dtype_name(s->unsharded.reduce), "elements",
        (json_int_t)r->scope.elements, "tensors", (json_int_t)r->scope.tensors,
        "added", (json_int_t)r->scope.added, "added_of",
        (json_int_t)r->scope.added_all, "requirements", items, "verdict",
        own_verdict_name(r->verdict));
    written = root && json_dumpf(root, stdout, JSON_INDENT(1)) == 0;
    if (written) {
        printf("\n");
    }
    json_decref(root);
    return written;
}
