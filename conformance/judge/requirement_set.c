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

    while (table[n] != NULL) {
        n++;
    }
    return n;
}

uint32_t requirement_index(const struct requirement *const *table,
                           const char *id)
{
    uint32_t i = 0;

    while (table[i] != NULL && strcmp(table[i]->id, id) != 0) {
        i++;
    }
    return i;
}

bool requirement_next_need(const char **at, char id[REQUIREMENT_ID_BYTES])
{
    const char *s = *at;
    size_t n;

    if (s == NULL) {
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

bool requirement_applies(const struct requirement *q, const struct expect *e)
{
    return q->applies(e) && (q->check == NULL || q->check->applies == NULL ||
                             q->check->applies(q, e));
}

bool requirement_holds(const struct requirement *q, const struct expect *e,
                       const struct record *r, struct finding *f)
{
    return q->holds != NULL ? q->holds(e, r, f) : q->check->holds(q, e, r, f);
}

bool requirement_spoil(const struct requirement *q, const struct expect *e,
                       struct record *r)
{
    return q->spoil != NULL ? q->spoil(e, r) : q->check->spoil(q, e, r);
}

/* Whether all that table[i] needs is placed already. */
static bool is_ready(const struct requirement *const *table, uint32_t i,
                     const bool *placed)
{
    const char *at = table[i]->needs;
    char id[REQUIREMENT_ID_BYTES];

    while (requirement_next_need(&at, id)) {
        uint32_t need = requirement_index(table, id);

        if (table[need] != NULL && !placed[need]) {
            return false;
        }
    }
    return true;
}

int requirement_order(const struct requirement *const *table, uint32_t *order)
{
    uint32_t n = requirement_count(table);
    uint32_t done = 0;
    uint32_t before;
    bool *placed = calloc((size_t)n + 1, sizeof(*placed));

    if (placed == NULL) {
        return FSDP_ERR_NOMEM;
    }
    do {
        before = done;
        for (uint32_t i = 0; i < n; i++) {
            if (!placed[i] && is_ready(table, i, placed)) {
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
    size_t text = q->text != NULL ? strlen(q->text) : 0;

    if (!is_slug(q->id)) {
        return "the id is no slug (area.words-without-ordinals)";
    }
    if (text < 2 || q->text[text - 1] != '.' || q->text[text - 2] == '.') {
        return "the text is no sentence that ends with one '.'";
    }
    if (q->since == NULL || q->since[0] == '\0') {
        return "no version in `since`";
    }
    if (q->must > 1) {
        return "must is neither 0 nor 1";
    }
    if (q->level >= N_LEVELS) {
        return "the level is out of range";
    }
    if (q->applies == NULL ||
        (q->holds == NULL && (q->check == NULL || q->check->holds == NULL)) ||
        (q->spoil == NULL && (q->check == NULL || q->check->spoil == NULL))) {
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
        const struct requirement *need = table[requirement_index(table, id)];

        if (need == NULL) {
            return "it needs a requirement that does not exist";
        }
        if (q->must == 1 && need->must == 0) {
            return "a MUST needs a SHOULD, which then would decide";
        }
    }
    if (at != NULL && at[strspn(at, " ")] != '\0') {
        return "it needs an id that is too long";
    }
    return NULL;
}

int requirement_set_check(const struct requirement *const *table, char *why,
                          uint32_t why_bytes)
{
    uint32_t n = requirement_count(table);
    uint32_t *order = NULL;
    int status;

    for (uint32_t i = 0; i < n; i++) {
        const char *fault = "an id is missing";

        if (table[i]->id != NULL) {
            fault = requirement_index(table, table[i]->id) != i
                        ? "the id occurs twice"
                        : check_fields(table[i]);
        }
        if (fault == NULL) {
            fault = check_needs(table, table[i]);
        }
        if (fault != NULL) {
            (void)snprintf(why, why_bytes, "requirement %s: %s",
                           table[i]->id != NULL ? table[i]->id : "?", fault);
            return FSDP_ERR_FORMAT;
        }
    }
    order = calloc((size_t)n + 1, sizeof(*order));
    if (order == NULL) {
        return FSDP_ERR_NOMEM;
    }
    status = requirement_order(table, order);
    if (status == FSDP_ERR_FORMAT) {
        (void)snprintf(why, why_bytes,
                       "requirements need each other in a circle");
    }
    free(order);
    return status;
}
