/* SPDX-License-Identifier: Apache-2.0 */
/*
 * requirement_set.c - the table of requirements as a whole: whether it is
 * well formed, and in which order it can be judged.
 */
#include "judge/requirement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *requirement_level_name(uint32_t level)
{
    static const char *const names[N_LEVELS] = {
        [LEVEL_RUN] = "run",       [LEVEL_LAYOUT] = "layout",
        [LEVEL_GATHER] = "gather", [LEVEL_GRADIENT] = "gradient",
        [LEVEL_REDUCE] = "reduce", [LEVEL_STEP] = "step",
        [LEVEL_COMM] = "comm",     [LEVEL_MEMORY] = "memory",
        [LEVEL_ERRORS] = "errors",
    };

    return level < N_LEVELS ? names[level] : NULL;
}

uint32_t requirement_count(const struct requirement *const *table)
{
    uint32_t n = 0;

    while (table[n]) {
        n++;
    }
    return n;
}

/* The first requirement with that id; the table need not be sorted. */
static uint32_t first_index(const struct requirement *const *table,
                            const char *id)
{
    uint32_t i = 0;

    while (table[i] && strcmp(table[i]->id, id) != 0) {
        i++;
    }
    return i;
}

/* The index of an id in a table of n rows; n: it has no such id. Most tables
 * are sorted by id. */
static uint32_t index_of(const struct requirement *const *table, uint32_t n,
                         const char *id)
{
    uint32_t low = 0;
    uint32_t high = n;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const int order = strcmp(table[middle]->id, id);

        if (order == 0) {
            return middle;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return first_index(table, id);
}

uint32_t requirement_index(const struct requirement *const *table,
                           const char *id)
{
    return index_of(table, requirement_count(table), id);
}

bool requirement_next_need(const char **at, char id[REQUIREMENT_ID_BYTES])
{
    const char *s = *at;
    size_t n;

    if (!s) {
        return false;
    }
    s += strspn(s, " ");
    n = strcspn(s, " ");
    if (n == 0 || n >= REQUIREMENT_ID_BYTES) {
        return false;
    }
    *at = s + n;
    memcpy(id, s, n);
    id[n] = '\0';
    return true;
}

bool requirement_speaks_of(const struct requirement *q, const struct expect *e)
{
    const bool bits =
        e->profile == EXPECT_F32_FMA || workload_is_exact(e->c->data);

    return q->profile == PROFILE_ANY || bits == (q->profile == PROFILE_BITS);
}

bool requirement_applies(const struct requirement *q, const struct expect *e)
{
    return (!q->applies || q->applies(e)) &&
           (!q->check || !q->check->applies || q->check->applies(q, e));
}

bool requirement_holds(const struct requirement *q, const struct expect *e,
                       const struct record *r, struct finding *f)
{
    return q->holds ? q->holds(e, r, f) : q->check->holds(q, e, r, f);
}

bool requirement_spoil(const struct requirement *q, const struct expect *e,
                       struct record *r)
{
    return q->spoil ? q->spoil(e, r) : q->check->spoil(q, e, r);
}

int requirement_find_needs(const struct requirement *const *table,
                           struct requirement_needs *out)
{
    const uint32_t n = requirement_count(table);
    char id[REQUIREMENT_ID_BYTES];
    size_t room = 1;
    uint32_t done = 0;

    for (uint32_t i = 0; i < n; i++) {
        room += table[i]->needs ? strlen(table[i]->needs) : 0;
    }
    out->first = calloc((size_t)n + 1, sizeof(*out->first));
    out->index = calloc(room, sizeof(*out->index));
    if (!out->first || !out->index) {
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < n; i++) {
        const char *at = table[i]->needs;

        while (requirement_next_need(&at, id)) {
            const uint32_t need = index_of(table, n, id);

            if (need < n) {
                out->index[done++] = need;
            }
        }
        out->first[i + 1] = done;
    }
    return FSDP_OK;
}

void requirement_release_needs(struct requirement_needs *needs)
{
    free(needs->first);
    free(needs->index);
    *needs = (struct requirement_needs){NULL, NULL};
}

/* Whether everything that row i needs has been placed already. */
static bool is_ready(const struct requirement_needs *needs, uint32_t i,
                     const bool *placed)
{
    for (uint32_t k = needs->first[i]; k < needs->first[i + 1]; k++) {
        if (!placed[needs->index[k]]) {
            return false;
        }
    }
    return true;
}

int requirement_order(const struct requirement_needs *needs, uint32_t n,
                      uint32_t *order)
{
    uint32_t done = 0;
    uint32_t before;
    bool *placed = calloc((size_t)n + 1, sizeof(*placed));

    if (!placed) {
        return FSDP_ERR_NOMEM;
    }
    do {
        before = done;
        for (uint32_t i = 0; i < n; i++) {
            if (!placed[i] && is_ready(needs, i, placed)) {
                placed[i] = true;
                order[done++] = i;
            }
        }
    } while (done > before);
    free(placed);
    return done == n ? FSDP_OK : FSDP_ERR_FORMAT;
}

/* Words of lower case letters, joined by '-'; parts of words, joined by '.'.
 * A word may end in digits ("state0") but may not be a number. */
static bool is_slug(const char *id)
{
    size_t length = strlen(id);
    bool dot = false, begins = true;

    if (length == 0 || length >= REQUIREMENT_ID_BYTES) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        bool letter = id[i] >= 'a' && id[i] <= 'z';
        bool digit = id[i] >= '0' && id[i] <= '9';
        bool joint = id[i] == '.' || id[i] == '-';

        if (begins ? !letter : !letter && !digit && !joint) {
            return false;
        }
        begins = joint;
        dot = dot || id[i] == '.';
    }
    return dot && !begins;
}

static const char *check_fields(const struct requirement *q)
{
    size_t text = q->text ? strlen(q->text) : 0;

    if (!is_slug(q->id)) {
        return "the id is no slug (area.words-without-ordinals)";
    }
    if (text < 2 || q->text[text - 1] != '.' || q->text[text - 2] == '.') {
        return "the text is no sentence that ends with one '.'";
    }
    if (!q->since || q->since[0] == '\0') {
        return "no version in `since`";
    }
    if (q->must > 1) {
        return "must is neither 0 nor 1";
    }
    if (q->level >= N_LEVELS) {
        return "the level is out of range";
    }
    if ((!q->applies && (!q->check || !q->check->applies)) ||
        (!q->holds && (!q->check || !q->check->holds)) ||
        (!q->spoil && (!q->check || !q->check->spoil))) {
        return "applies, holds and spoil are all required";
    }
    return NULL;
}

static const char *check_needs(const struct requirement *const *table,
                               const struct requirement *q)
{
    const char *at = q->needs;
    char id[REQUIREMENT_ID_BYTES];

    while (requirement_next_need(&at, id)) {
        const struct requirement *need = table[first_index(table, id)];

        if (!need) {
            return "it needs a requirement that does not exist";
        }
        if (q->must == 1 && need->must == 0) {
            return "a MUST needs a SHOULD, which then would decide";
        }
    }
    if (at && at[strspn(at, " ")] != '\0') {
        return "it needs an id that is too long";
    }
    return NULL;
}

int requirement_set_check(const struct requirement *const *table, char *why,
                          uint32_t why_bytes)
{
    uint32_t n = requirement_count(table);
    struct requirement_needs needs = {NULL, NULL};
    uint32_t *order;
    int status;

    for (uint32_t i = 0; i < n; i++) {
        const char *fault = "an id is missing";

        if (table[i]->id) {
            fault = first_index(table, table[i]->id) != i
                        ? "the id occurs twice"
                        : check_fields(table[i]);
        }
        if (!fault) {
            fault = check_needs(table, table[i]);
        }
        if (fault) {
            snprintf(why, why_bytes, "requirement %s: %s",
                     table[i]->id ? table[i]->id : "?", fault);
            return FSDP_ERR_FORMAT;
        }
    }
    order = calloc((size_t)n + 1, sizeof(*order));
    status = order ? requirement_find_needs(table, &needs) : FSDP_ERR_NOMEM;
    if (status == FSDP_OK) {
        status = requirement_order(&needs, n, order);
    }
    if (status == FSDP_ERR_FORMAT) {
        snprintf(why, why_bytes, "requirements need each other in a circle");
    }
    requirement_release_needs(&needs);
    free(order);
    return status;
}
