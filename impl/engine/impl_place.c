/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_place.c - places values from either end of the storage, in some order.
 * Those that did not fit go first the next time, and from an end drawn anew,
 * until the storage is as small as what lives at once.
 *
 * Equal slots would be simpler, but each would be as large as the largest unit:
 * an embedding next to many small blocks would multiply. The schedule of a call
 * sequence is known when a model is sharded, so there is time to look.
 */
#include "impl_place.h"

#include <fsdp/status.h>

#include <stdlib.h>
#include <string.h>

enum {
    MAX_WORK = 10000000 /* pairs of lives looked at for an order, about */
};

enum {
    BY_LENGTH, /* the longest ones first */
    BY_BEGIN,
    BY_SIZE, /* the largest ones first */
    N_ORDERS
};

struct placing {
    const struct impl_life *life;
    uint32_t n;
    uint64_t load;
    size_t *first;   /* those that meet life i: other[first[i]..first[i+1]) */
    uint32_t *other; /* (what is empty meets none) */
    uint32_t *order;
    bool *high;       /* [n]: from the top of `load`, not from below */
    uint32_t *placed; /* [n]: in this try, if it is that */
    uint64_t *offset; /* of this try */
    uint64_t *best;
    uint64_t best_room;
    uint32_t try, random;
};

static bool meet(const struct impl_life *a, const struct impl_life *b)
{
    return a->begin < b->end && b->begin < a->end && a->size > 0 && b->size > 0;
}

uint64_t impl_place_load(const struct impl_life *life, uint32_t n)
{
    uint64_t most = 0;

    /* The load is highest at a moment at which some value begins. */
    for (uint32_t i = 0; i < n; i++) {
        uint64_t now = 0;
        for (uint32_t j = 0; j < n; j++) {
            if (life[j].begin <= life[i].begin && life[i].begin < life[j].end) {
                now += impl_room(life[j].size);
            }
        }
        most = now > most ? now : most;
    }
    return most;
}

/* ---- One try ----------------------------------------------------------- */

/* The lowest place for life o above none or some of those placed before. */
static uint64_t lowest(const struct placing *x, uint32_t o)
{
    uint64_t size = impl_room(x->life[o].size);
    uint64_t at = 0;
    bool moved = true;

    while (moved) {
        moved = false;
        for (size_t i = x->first[o]; i < x->first[o + 1]; i++) {
            uint32_t j = x->other[i];
            uint64_t end = x->offset[j] + impl_room(x->life[j].size);
            if (x->placed[j] == x->try && x->offset[j] < at + size &&
                at < end) {
                at = end;
                moved = true;
            }
        }
    }
    return at;
}

/* The same from the top of `load`; UINT64_MAX: there is no place. */
static uint64_t highest(const struct placing *x, uint32_t o)
{
    uint64_t size = impl_room(x->life[o].size);
    uint64_t top = x->load;
    bool moved = true;

    while (moved && top >= size) {
        moved = false;
        for (size_t i = x->first[o]; i < x->first[o + 1]; i++) {
            uint32_t j = x->other[i];
            uint64_t end = x->offset[j] + impl_room(x->life[j].size);
            if (top >= size && x->placed[j] == x->try && x->offset[j] < top &&
                top - size < end) {
                top = x->offset[j];
                moved = true;
            }
        }
    }
    return top >= size ? top - size : UINT64_MAX;
}

/* Returns which in the order is the first that ends above the load; n: none
 * does. */
static uint32_t try_order(struct placing *x)
{
    uint64_t room = 0;
    uint32_t above = x->n;

    x->try++;
    for (uint32_t k = 0; k < x->n; k++) {
        uint32_t o = x->order[k];
        uint64_t at = x->high[o] ? highest(x, o) : UINT64_MAX;
        uint64_t end;

        at = at == UINT64_MAX ? lowest(x, o) : at;
        end = at + impl_room(x->life[o].size);
        x->offset[o] = at;
        x->placed[o] = x->try;
        room = end > room ? end : room;
        above = end > x->load && above == x->n ? k : above;
    }
    if (room < x->best_room) {
        x->best_room = room;
        memcpy(x->best, x->offset, x->n * sizeof(*x->best));
    }
    return above;
}

/* ---- The search -------------------------------------------------------- */

/* A value that did not fit is placed first in the next try, at an end that is
 * drawn: the same one in every run. */
static void promote(struct placing *x, uint32_t k)
{
    uint32_t o = x->order[k];

    memmove(x->order + 1, x->order, k * sizeof(*x->order));
    x->order[0] = o;
    x->random = x->random * 1664525u + 1013904223u;
    x->high[o] = x->random >> 31;
}

static bool goes_before(const struct impl_life *a, const struct impl_life *b,
                        uint32_t how)
{
    if (how == BY_LENGTH) {
        return a->end - a->begin > b->end - b->begin;
    }
    return how == BY_BEGIN ? a->begin < b->begin : a->size > b->size;
}

/* In time, neighbours lie at opposite ends: what is gathered one ahead. */
static void sort(struct placing *x, uint32_t how)
{
    for (uint32_t k = 0; k < x->n; k++) {
        uint32_t i = k;
        for (;
             i > 0 && goes_before(&x->life[k], &x->life[x->order[i - 1]], how);
             i--) {
            x->order[i] = x->order[i - 1];
        }
        x->order[i] = k;
    }
    for (uint32_t k = 0; k < x->n; k++) {
        x->high[x->order[k]] = how == BY_BEGIN && k % 2 == 1;
    }
}

static void search(struct placing *x, uint32_t effort)
{
    uint64_t tries = 1 + MAX_WORK / (1 + (uint64_t)x->first[x->n] + x->n);

    tries = tries < effort ? tries : effort;
    for (uint32_t how = 0; how < N_ORDERS; how++) {
        sort(x, how);
        for (uint64_t t = 0; t < tries && x->best_room > x->load; t++) {
            uint32_t above = try_order(x);
            if (above < x->n) {
                promote(x, above);
            }
        }
    }
}

/* ---- Who meets whom ---------------------------------------------------- */

static int find_others(struct placing *x)
{
    size_t n = 0;

    for (uint32_t i = 0; i < x->n; i++) {
        for (uint32_t j = 0; j < x->n; j++) {
            n += i != j && meet(&x->life[i], &x->life[j]);
        }
    }
    x->other = malloc((n + 1) * sizeof(*x->other));
    if (!x->other) {
        return FSDP_ERR_NOMEM;
    }
    n = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        x->first[i] = n;
        for (uint32_t j = 0; j < x->n; j++) {
            if (i != j && meet(&x->life[i], &x->life[j])) {
                x->other[n++] = j;
            }
        }
    }
    x->first[x->n] = n;
    return FSDP_OK;
}

static void find_predecessors(struct impl_life *life, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t after = IMPL_NO_LIFE;
        for (uint32_t j = 0; j < n; j++) {
            if (life[j].end <= life[i].begin && life[j].size > 0 &&
                life[j].offset < life[i].offset + impl_room(life[i].size) &&
                life[i].offset < life[j].offset + impl_room(life[j].size) &&
                (after == IMPL_NO_LIFE || life[j].end > life[after].end)) {
                after = j;
            }
        }
        life[i].after = after;
    }
}

static int make_arrays(struct placing *x)
{
    size_t n = x->n + (size_t)1;

    x->first = calloc(n, sizeof(*x->first));
    x->order = calloc(n, sizeof(*x->order));
    x->high = calloc(n, sizeof(*x->high));
    x->placed = calloc(n, sizeof(*x->placed));
    x->offset = calloc(n, sizeof(*x->offset));
    x->best = calloc(n, sizeof(*x->best));
    return x->first && x->order && x->high && x->placed && x->offset && x->best
               ? find_others(x)
               : FSDP_ERR_NOMEM;
}

int impl_place(struct impl_life *life, uint32_t n, uint32_t effort,
               uint64_t *room)
{
    struct placing x = {.life = life,
                        .n = n,
                        .load = impl_place_load(life, n),
                        .best_room = UINT64_MAX};
    int status = make_arrays(&x);

    if (status == FSDP_OK) {
        search(&x, effort);
        for (uint32_t i = 0; i < n; i++) {
            life[i].offset = x.best[i];
        }
        find_predecessors(life, n);
        *room = n > 0 ? x.best_room : 0;
    }
    free(x.first);
    free(x.other);
    free(x.order);
    free(x.high);
    free(x.placed);
    free(x.offset);
    free(x.best);
    return status;
}
