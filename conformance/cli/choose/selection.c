/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selection.c - filters the manifest.
 */
#include "cli/choose/selection.h"
#include "cases/case_graph.h"
#include "cli/choose/selection_script.h"
#include "cli/line/near.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool listed(const struct name_list *list, const char *name)
{
    return list->n == 0 || name_list_matches(list, name);
}

static bool asks_for_ranks(const struct arguments *a, uint32_t ranks)
{
    for (uint32_t i = 0; i < a->n_ranks; i++) {
        if (a->ranks[i] == ranks) {
            return true;
        }
    }
    return false;
}

/* Whether cases of that world size are wanted: by --ranks, or by an id, which
 * has the number of ranks in it. */
static bool names_world(const struct arguments *a, uint32_t ranks)
{
    for (uint32_t i = 0; i < a->cases.n; i++) {
        struct run_case c;

        if (case_of_id(a->cases.name[i], &c) && c.ranks == ranks) {
            return true;
        }
    }
    return asks_for_ranks(a, ranks);
}

static bool selected(const struct arguments *a, const struct run_case *c)
{
    char id[CASE_ID_BYTES];

    case_id(c, id);
    return (a->n_ranks == 0 || asks_for_ranks(a, c->ranks)) &&
           listed(&a->workloads, c->workload) && listed(&a->cases, id) &&
           listed(&a->strategies, case_strategy_name(c->strategy));
}

static int out_of_memory(void)
{
    fprintf(stderr, "fsdp-cts: out of memory\n");
    return EXIT_INCOMPLETE;
}

static int append(struct case_list *to, const struct run_case *c)
{
    struct run_case *grown = realloc(to->c, (to->n + 1u) * sizeof(*grown));

    if (!grown) {
        return FSDP_ERR_NOMEM;
    }
    to->c = grown;
    to->c[to->n++] = *c;
    return FSDP_OK;
}

static int append_selected(const struct arguments *a,
                           const struct case_list *from, struct case_list *to)
{
    for (uint32_t i = 0; i < from->n; i++) {
        if (selected(a, &from->c[i])) {
            FSDP_TRY(append(to, &from->c[i]));
        }
    }
    return FSDP_OK;
}

/* Appends the random cases of so many seeds. */
static int append_seeds(const struct arguments *a, struct case_list *to)
{
    struct run_case c;

    to->c = malloc(a->n_seeds * sizeof(*to->c));
    if (!to->c) {
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < a->n_seeds; i++) {
        case_graph_draw_by(a->drawn_by, (uint64_t)a->first_seed + i, &c);
        if (selected(a, &c)) {
            to->c[to->n++] = c;
        }
    }
    return FSDP_OK;
}

/* Appends a case that was asked for by its id and is in no list: its id says
 * all that it is. */
static int append_by_id(const struct arguments *a, struct case_list *to)
{
    for (uint32_t i = 0; i < a->cases.n; i++) {
        struct run_case c;
        bool known = !case_of_id(a->cases.name[i], &c) || !selected(a, &c);

        for (uint32_t k = 0; k < to->n && !known; k++) {
            char id[CASE_ID_BYTES];

            case_id(&to->c[k], id);
            known = strcmp(id, a->cases.name[i]) == 0;
        }
        if (!known) {
            FSDP_TRY(append(to, &c));
        }
    }
    return FSDP_OK;
}

static int unknown_case(const char *wanted)
{
    struct fsdp_error error = {0};
    struct case_list all = {NULL, 0};
    char near_id[2][CASE_ID_BYTES];
    struct near n = {.wanted = wanted};
    char meant[256];
    uint32_t k = 0;

    (void)manifest_make(&all, &error); /* without it nothing is near */
    for (uint32_t i = 0; i < all.n; i++) {
        case_id(&all.c[i], near_id[k]);
        near_try(&n, near_id[k]);
        k = n.best == near_id[k] ? !k : k; /* the better one is kept */
    }
    manifest_release(&all);
    fprintf(stderr,
            "fsdp-cts: no case '%s' in the selection; see: fsdp-cts list "
            "cases%s\n",
            wanted, near_say(&n, meant));
    return EXIT_USAGE;
}

/* Checks that every case that was asked for by its id is there, and at least
 * one for each pattern. */
static int check_cases(const struct arguments *a, const struct case_list *list)
{
    for (uint32_t i = 0; i < a->cases.n; i++) {
        const struct name_list one = {.name = {a->cases.name[i]}, .n = 1};
        bool found = false;

        for (uint32_t k = 0; k < list->n && !found; k++) {
            char id[CASE_ID_BYTES];

            case_id(&list->c[k], id);
            found = name_list_matches(&one, id);
        }
        if (!found) {
            return unknown_case(a->cases.name[i]);
        }
    }
    return 0;
}

/* Appends the cases of the golden data, if these are given; otherwise the
 * manifest, and behind it the cases of world sizes that it lacks. */
static int append_listed(const struct arguments *a, struct case_list *out,
                         struct fsdp_error *error)
{
    struct case_list all;
    int status =
        a->fixtures ? manifest_golden(&all, error) : manifest_make(&all, error);

    for (uint32_t k = 1; k <= CASE_MAX_RANKS && status == FSDP_OK; k++) {
        if (!a->fixtures && names_world(a, k)) {
            status = manifest_add_world(k, &all, error);
        }
    }
    if (status == FSDP_OK) {
        status = append_selected(a, &all, out);
    }
    manifest_release(&all);
    return status;
}

/* Whether only hybrid strategies are asked for, in worlds that have no mesh of
 * two dimensions. */
static bool wants_replicas_of_primes(const struct arguments *a)
{
    for (uint32_t i = 0; i < a->strategies.n; i++) {
        if (strncmp(a->strategies.name[i], "hybrid", strlen("hybrid")) != 0) {
            return false;
        }
    }
    for (uint32_t i = 0; i < a->n_ranks; i++) {
        for (uint32_t r = 2; r < a->ranks[i]; r++) {
            if (a->ranks[i] % r == 0) {
                return false;
            }
        }
    }
    return a->strategies.n > 0 && a->n_ranks > 0;
}

/* Keeps every n-th case: neighbours are alike, so that parts take about as
 * long. Which part a case is in says nothing about it: what requirements
 * compare is brought together when all parts are judged. */
static void keep_shard(const struct arguments *a, struct case_list *list)
{
    uint32_t n = 0;

    for (uint32_t i = a->shard - 1; i < list->n; i += a->n_shards) {
        list->c[n++] = list->c[i];
    }
    list->n = n;
}

void selection_only_shards(struct case_list *list)
{
    const uint32_t n = list->n;

    list->n = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct run_case c;

        case_sharded(&list->c[i], &c);
        if (!case_list_has(list, &c)) {
            list->c[list->n++] = c;
        }
    }
}

/* ---- A cover ------------------------------------------------------------ */

/*
 * Chooses as few cases as still have each part of the ids, between the points:
 * of mlp.a.k2.sgd, mlp.a.k2.adamw and mlp.b.k2.adamw the second can go, as the
 * two others have its parts. A sanitizer wants each path once, and not each
 * combination.
 */

/* An id, cut at its points: each part ends with a 0. */
struct cut_id {
    char text[CASE_ID_BYTES];
    uint32_t n_parts;
};

struct seen_parts {
    const char **part; /* pointers into the texts of ids */
    uint32_t n;
};

static void cut_id(const struct run_case *c, struct cut_id *out)
{
    case_id(c, out->text);
    out->n_parts = 1;
    for (char *point = strchr(out->text, '.'); point;
         point = strchr(point + 1, '.')) {
        *point = '\0';
        out->n_parts++;
    }
}

static bool has_part(const struct seen_parts *s, const char *part)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (strcmp(s->part[i], part) == 0) {
            return true;
        }
    }
    return false;
}

/* Adds an id's parts; returns whether one of them is new. */
static bool add_parts(struct seen_parts *s, const struct cut_id *id)
{
    const char *part = id->text;
    const uint32_t before = s->n;

    for (uint32_t i = 0; i < id->n_parts; i++) {
        if (!has_part(s, part)) {
            s->part[s->n++] = part;
        }
        part += strlen(part) + 1;
    }
    return s->n > before;
}

/* Ids with the most parts can cover the most, and are looked at first. */
static void choose_cover(const struct cut_id *id, uint32_t n,
                         struct seen_parts *s, bool *kept)
{
    for (uint32_t parts = CASE_ID_BYTES; parts > 0; parts--) {
        for (uint32_t i = 0; i < n; i++) {
            if (id[i].n_parts == parts) {
                kept[i] = add_parts(s, &id[i]);
            }
        }
    }
}

/* Keeps some cases of a list that is not empty, in their order: their ids have
 * all parts that the ids of the list have, and each kept case has one that
 * those chosen before it lack. FSDP_OK, or FSDP_ERR_NOMEM: the list is as
 * before. */
static int cover(struct case_list *list)
{
    const uint32_t n = list->n;
    struct cut_id *id = calloc(n, sizeof(*id));
    bool *kept = calloc(n, sizeof(*kept));
    struct seen_parts s = {NULL, 0};
    size_t parts = 0;
    int status = FSDP_ERR_NOMEM;

    for (uint32_t i = 0; id && i < n; i++) {
        cut_id(&list->c[i], &id[i]);
        parts += id[i].n_parts;
    }
    s.part = calloc(parts + 1, sizeof(*s.part));
    if (id && kept && s.part) {
        choose_cover(id, n, &s, kept);
        list->n = 0;
        for (uint32_t i = 0; i < n; i++) {
            if (kept[i]) {
                list->c[list->n++] = list->c[i];
            }
        }
        status = FSDP_OK;
    }
    free(s.part);
    free(kept);
    free(id);
    return status;
}

/* ---- What is asked for ----------------------------------------------------
 */

/* Returns exit code 64 if options about seeds do not go together, and says
 * why. */
static int check_seeds(const struct arguments *a)
{
    if (a->from_a_seed && !a->n_seeds) {
        fprintf(stderr, "fsdp-cts: --first-seed is the first of --seeds N\n");
        return EXIT_USAGE;
    }
    if (!a->script && a->n_seeds &&
        !(a->workloads.n == 1 &&
          strcmp(a->workloads.name[0], CASE_GRAPH) == 0)) {
        fprintf(stderr, "fsdp-cts: --seeds is for --workload graph\n");
        return EXIT_USAGE;
    }
    return 0;
}

int selection_make(const struct arguments *a, struct case_list *out)
{
    struct fsdp_error error = {0};
    int status;

    *out = (struct case_list){NULL, 0};
    if (check_seeds(a)) {
        return EXIT_USAGE;
    }
    if (a->script) {
        return selection_of_script(a, out);
    }
    status = a->among     ? append_selected(a, a->among, out)
             : a->n_seeds ? append_seeds(a, out)
                          : append_listed(a, out, &error);
    if (status == FSDP_OK && !a->among) {
        status = append_by_id(a, out);
    }
    if (error.status != FSDP_OK) {
        fprintf(stderr, "fsdp-cts: %s\n", error.message);
        return EXIT_INCOMPLETE;
    }
    if (status != FSDP_OK) {
        return out_of_memory();
    }
    if (check_cases(a, out)) {
        return EXIT_USAGE;
    }
    for (uint32_t i = 0; i < out->n && a->seed; i++) {
        if (!case_is_graph(&out->c[i])) { /* there it says which model */
            out->c[i].seed = a->seed;
        }
    }
    if (a->cover && out->n && cover(out) != FSDP_OK) {
        return out_of_memory();
    }
    if (a->n_shards > out->n) {
        fprintf(stderr, "fsdp-cts: %u cases have no %u parts\n", out->n,
                a->n_shards);
        return EXIT_USAGE;
    }
    if (a->n_shards) {
        keep_shard(a, out);
    }
    if (out->n == 0) {
        fprintf(stderr,
                "fsdp-cts: no case has all of what was asked for%s; see: "
                "fsdp-cts list cases\n",
                wants_replicas_of_primes(a)
                    ? " (a hybrid strategy needs a number of replicas, from 2 "
                      "on, that divides the number of ranks)"
                    : "");
        return EXIT_USAGE;
    }
    return 0;
}

bool selection_is_whole(const struct arguments *a,
                        const struct case_list *cases)
{
    return cases->n == manifest_count && !a->fixtures && !a->script &&
           !a->n_seeds && !a->cases.n && !a->workloads.n && !a->strategies.n &&
           !a->n_ranks && !a->requirements.n && a->level >= N_LEVELS;
}
