/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest.c - the list of cases: the core, then generated ones until every
 * pair of values of two axes that can occur together does.
 *
 * The generator is greedy and has no chance in it. It takes the first pair
 * that does not occur yet, and completes it, one axis after the other, by
 * the value that adds most new pairs; it goes back where values exclude each
 * other. So the list is a function of the axes alone.
 */
#include "cases/manifest_axes.h"

#include <stdlib.h>
#include <string.h>

const uint32_t manifest_count = 545;
const char manifest_sha256[] =
    "4a85bba4a76069ceb47a44d20ba1991583cd4df94d80d65731efa33beb589e05";

/* Which pairs occur. A pair is (i, j), places in the row of all values of
 * all axes. */
struct pairs {
    const struct manifest_axes *axes;
    uint32_t begin[N_AXES]; /* of the axis in that row */
    uint32_t n;             /* values in the row */
    unsigned char *seen;    /* [n * n] */
    uint32_t turn;          /* cases made: where ties are looked for first */
};

static unsigned char *pair_at(const struct pairs *p, uint32_t a, uint32_t i,
                              uint32_t b, uint32_t j)
{
    return &p->seen[(size_t)(p->begin[a] + i) * p->n + p->begin[b] + j];
}

static int pairs_make(struct pairs *p, const struct manifest_axes *axes)
{
    memset(p, 0, sizeof(*p));
    p->axes = axes;
    for (uint32_t a = 0; a < N_AXES; a++) {
        p->begin[a] = p->n;
        p->n += axes->n[a];
    }
    p->seen = calloc((size_t)p->n * p->n, 1);
    return p->seen != NULL ? FSDP_OK : FSDP_ERR_NOMEM;
}

/* What has nothing to do with the layout is to be shown in the flat one: an
 * engine that has no other still meets every pair. */
static void pairs_mark(struct pairs *p, const uint32_t pick[N_AXES])
{
    const bool flat = pick[AXIS_LAYOUT] == FSDP_LAYOUT_FLAT;

    for (uint32_t a = 0; a < N_AXES; a++) {
        for (uint32_t b = a + 1; b < N_AXES; b++) {
            if (flat || b == AXIS_LAYOUT) {
                *pair_at(p, a, pick[a], b, pick[b]) = 1;
            }
        }
    }
}

/* How many new pairs value `value` of axis a makes with what is picked. */
static uint32_t gain(const struct pairs *p, const uint32_t pick[N_AXES],
                     uint32_t a, uint32_t value)
{
    uint32_t n = 0;

    for (uint32_t b = 0; b < N_AXES; b++) {
        /* Every value is shown in the flat layout, whatever else is. */
        const bool sure = b == AXIS_LAYOUT && pick[b] == FSDP_LAYOUT_FLAT;

        if (b != a && !sure && pick[b] != MANIFEST_OPEN) {
            n += a < b ? *pair_at(p, a, value, b, pick[b]) == 0
                       : *pair_at(p, b, pick[b], a, value) == 0;
        }
    }
    return n;
}

/* The untried value of axis a with the greatest gain; false if there is none.
 * Among equals the search begins at another value in each turn, so that all
 * get their share. */
static bool best_value(const struct pairs *p, const uint32_t pick[N_AXES],
                       uint32_t a, const bool *tried, uint32_t *out)
{
    const uint32_t n = p->axes->n[a];
    uint32_t most = 0;
    bool found = false;

    for (uint32_t k = 0; k < n; k++) {
        const uint32_t value = (p->turn + k) % n;

        if (!tried[value]) {
            const uint32_t g = gain(p, pick, a, value);

            if (!found || g > most) {
                most = g;
                *out = value;
                found = true;
            }
        }
    }
    return found;
}

/* Gives every open axis from a on a value; false, and the axes open again,
 * if none fit. Goes as deep as there are axes.
 * NOLINTNEXTLINE(misc-no-recursion) */
static bool complete(const struct pairs *p, uint32_t pick[N_AXES], uint32_t a)
{
    bool tried[MANIFEST_MAX_WORLDS] = {false};
    uint32_t value;

    while (a < N_AXES && pick[a] != MANIFEST_OPEN) {
        a++;
    }
    if (a == N_AXES) {
        return true;
    }
    while (best_value(p, pick, a, tried, &value)) {
        tried[value] = true;
        pick[a] = value;
        if (manifest_excluded(p->axes, pick) == NULL &&
            complete(p, pick, a + 1)) {
            return true;
        }
        pick[a] = MANIFEST_OPEN;
    }
    return false;
}

static int add_pair(struct pairs *p, uint32_t a, uint32_t i, uint32_t b,
                    uint32_t j, struct case_list *list)
{
    uint32_t pick[N_AXES];
    struct run_case c;

    for (uint32_t k = 0; k < N_AXES; k++) {
        pick[k] = MANIFEST_OPEN;
    }
    pick[AXIS_LAYOUT] = FSDP_LAYOUT_FLAT;
    pick[a] = i;
    pick[b] = j;
    if (manifest_excluded(p->axes, pick) != NULL || !complete(p, pick, 0)) {
        return FSDP_OK;
    }
    pairs_mark(p, pick);
    p->turn++;
    manifest_case(p->axes, pick, &c);
    return manifest_add(list, &c);
}

static int add_pairs_of(struct pairs *p, uint32_t a, uint32_t b,
                        struct case_list *list)
{
    for (uint32_t i = 0; i < p->axes->n[a]; i++) {
        for (uint32_t j = 0; j < p->axes->n[b]; j++) {
            if (*pair_at(p, a, i, b, j) == 0) {
                FSDP_TRY(add_pair(p, a, i, b, j, list));
            }
        }
    }
    return FSDP_OK;
}

static int add_pairs(struct pairs *p, struct case_list *list)
{
    for (uint32_t a = 0; a < AXIS_LAYOUT; a++) {
        for (uint32_t b = a + 1; b < AXIS_LAYOUT; b++) {
            FSDP_TRY(add_pairs_of(p, a, b, list));
        }
    }
    for (uint32_t a = 0; a < AXIS_LAYOUT; a++) {
        FSDP_TRY(add_pairs_of(p, a, AXIS_LAYOUT, list));
    }
    return FSDP_OK;
}

static int add_missing(const struct manifest_axes *axes, struct case_list *list)
{
    struct pairs pairs;
    uint32_t pick[N_AXES];
    int status = pairs_make(&pairs, axes);

    if (status == FSDP_OK) {
        for (uint32_t i = 0; i < list->n; i++) {
            if (manifest_pick(axes, &list->c[i], pick) &&
                pick[AXIS_AHEAD] < axes->n[AXIS_AHEAD]) {
                pairs_mark(&pairs, pick);
            }
        }
        status = add_pairs(&pairs, list);
    }
    free(pairs.seen);
    return status;
}

/* The strict profile has all pairs by itself, so that an engine that does not
 * run ahead misses none; then come those of running ahead. */
static int add_generated(const struct manifest_axes *axes,
                         struct case_list *list)
{
    struct manifest_axes strict = *axes;

    strict.n[AXIS_AHEAD] = 1;
    FSDP_TRY(add_missing(&strict, list));
    return add_missing(axes, list);
}

int manifest_add(struct case_list *list, const struct run_case *c)
{
    for (uint32_t i = 0; i < list->n; i++) {
        /* Cases are zeroed before they are filled, and have no padding.
         * NOLINTNEXTLINE(bugprone-suspicious-memory-comparison,cert-*) */
        if (memcmp(&list->c[i], c, sizeof(*c)) == 0) {
            return FSDP_OK;
        }
    }
    if ((list->n & (list->n - 1)) == 0) { /* full at every power of two */
        const size_t room = list->n == 0 ? 1 : (size_t)list->n * 2;
        struct run_case *const more = realloc(list->c, room * sizeof(*more));

        if (more == NULL) {
            return FSDP_ERR_NOMEM;
        }
        list->c = more;
    }
    list->c[list->n++] = *c;
    return FSDP_OK;
}

int manifest_make(const uint32_t *ranks, uint32_t n_ranks,
                  struct case_list *out)
{
    struct manifest_axes axes;
    int status;

    memset(out, 0, sizeof(*out));
    status = manifest_axes_make(ranks, n_ranks, &axes);
    if (status == FSDP_OK) {
        status = manifest_core(ranks, n_ranks, out);
    }
    if (status == FSDP_OK) {
        status = add_generated(&axes, out);
    }
    if (status == FSDP_OK) {
        status = manifest_ahead(n_ranks, out);
    }
    if (status == FSDP_OK) {
        status = manifest_moves(n_ranks, out);
    }
    if (status == FSDP_OK) {
        status = manifest_common(n_ranks, out);
    }
    if (status == FSDP_OK) {
        status = manifest_steps(n_ranks, out);
    }
    if (status != FSDP_OK) {
        manifest_release(out);
    }
    return status;
}

void manifest_release(struct case_list *list)
{
    free(list->c);
    memset(list, 0, sizeof(*list));
}
