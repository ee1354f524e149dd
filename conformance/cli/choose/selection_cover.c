/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selection_cover.c - as few cases as still have each part of the ids.
 *
 * Of mlp.a.k2.sgd, mlp.a.k2.adamw and mlp.b.k2.adamw the second can go: its
 * parts are in the two others. A sanitizer wants each path once, and not each
 * combination.
 */
#include "cli/choose/selection_cover.h"

#include <stdlib.h>
#include <string.h>

/* An id, cut at its points: each part ends with a 0. */
struct cut_id {
    char text[CASE_ID_BYTES];
    uint32_t n_parts;
};

struct seen {
    const char **part; /* into texts */
    uint32_t n;
};

static void cut(const struct run_case *c, struct cut_id *out)
{
    case_id(c, out->text);
    out->n_parts = 1;
    for (char *point = strchr(out->text, '.'); point;
         point = strchr(point + 1, '.')) {
        *point = '\0';
        out->n_parts++;
    }
}

static bool has(const struct seen *s, const char *part)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (strcmp(s->part[i], part) == 0) {
            return true;
        }
    }
    return false;
}

/* Adds an id's parts; whether one of them was not there. */
static bool add(struct seen *s, const struct cut_id *id)
{
    const char *part = id->text;
    const uint32_t before = s->n;

    for (uint32_t i = 0; i < id->n_parts; i++) {
        if (!has(s, part)) {
            s->part[s->n++] = part;
        }
        part += strlen(part) + 1;
    }
    return s->n > before;
}

/* The ids of most parts have the most to give, and choose first. */
static void choose(const struct cut_id *id, uint32_t n, struct seen *s,
                   bool *kept)
{
    for (uint32_t parts = CASE_ID_BYTES; parts > 0; parts--) {
        for (uint32_t i = 0; i < n; i++) {
            if (id[i].n_parts == parts) {
                kept[i] = add(s, &id[i]);
            }
        }
    }
}

int selection_cover(struct case_list *list)
{
    const uint32_t n = list->n;
    struct cut_id *id = calloc(n, sizeof(*id));
    bool *kept = calloc(n, sizeof(*kept));
    struct seen s = {NULL, 0};
    size_t parts = 0;
    int status = FSDP_ERR_NOMEM;

    for (uint32_t i = 0; id && i < n; i++) {
        cut(&list->c[i], &id[i]);
        parts += id[i].n_parts;
    }
    s.part = malloc(parts * sizeof(*s.part));
    if (id && kept && s.part) {
        choose(id, n, &s, kept);
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
