/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_place.c - a few orders of first fit, and what did not fit moved to
 * the front, until the storage is as small as what lives at once.
 *
 * Equal slots would be simpler, but each is as large as the largest unit: an
 * embedding next to many small blocks would multiply. The schedule of a call
 * sequence is known when a model is sharded, so there is time to look.
 */
#include "engine_place.h"

#include <fsdp/status.h>

#include <stdlib.h>
#include <string.h>

enum {
    MAX_TRIES = 64,       /* promotions, for each first order */
    MAX_WORK = 100000000, /* pairs of lives looked at, about */
};

struct placing {
    const struct impl_life *life;
    uint32_t n;
    uint64_t load;
    uint32_t *order;
    uint64_t *offset; /* of this try */
    uint64_t *best;
    uint64_t best_room;
};

static bool meet(const struct impl_life *a, const struct impl_life *b)
{
    return a->begin < b->end && b->begin < a->end && a->size > 0 && b->size > 0;
}

uint64_t impl_load(const struct impl_life *life, uint32_t n)
{
    uint64_t most = 0;

    /* What lives most at once, lives so when one of them begins. */
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

/* The lowest place for order[k] above none or some of those before it. */
static uint64_t lowest(const struct placing *x, uint32_t k)
{
    const struct impl_life *own = &x->life[x->order[k]];
    uint64_t size = impl_room(own->size);
    uint64_t at = 0;
    bool moved = true;

    while (moved) {
        moved = false;
        for (uint32_t j = 0; j < k; j++) {
            uint32_t o = x->order[j];
            uint64_t end = x->offset[o] + impl_room(x->life[o].size);
            if (meet(own, &x->life[o]) && x->offset[o] < at + size &&
                at < end) {
                at = end;
                moved = true;
            }
        }
    }
    return at;
}

/* The same from the top of `load`; UINT64_MAX: there is no place. */
static uint64_t highest(const struct placing *x, uint32_t k)
{
    const struct impl_life *own = &x->life[x->order[k]];
    uint64_t size = impl_room(own->size);
    uint64_t top = x->load;
    bool moved = true;

    while (moved && top >= size) {
        moved = false;
        for (uint32_t j = 0; j < k; j++) {
            uint32_t o = x->order[j];
            uint64_t end = x->offset[o] + impl_room(x->life[o].size);
            if (top >= size && meet(own, &x->life[o]) && x->offset[o] < top &&
                top - size < end) {
                top = x->offset[o];
                moved = true;
            }
        }
    }
    return top >= size ? top - size : UINT64_MAX;
}

static void keep_if_better(struct placing *x, uint64_t room)
{
    if (room < x->best_room) {
        x->best_room = room;
        memcpy(x->best, x->offset, x->n * sizeof *x->best);
    }
}

/* Whoever ends highest goes first the next time. Returns its rank. */
static uint32_t try_order(struct placing *x)
{
    uint64_t room = 0;
    uint32_t top = 0;

    for (uint32_t k = 0; k < x->n; k++) {
        uint32_t o = x->order[k];
        uint64_t end;
        x->offset[o] = lowest(x, k);
        end = x->offset[o] + impl_room(x->life[o].size);
        if (end > room) {
            room = end;
            top = k;
        }
    }
    keep_if_better(x, room);
    return top;
}

static void promote(struct placing *x, uint32_t k)
{
    uint32_t first = x->order[k];

    memmove(x->order + 1, x->order, k * sizeof *x->order);
    x->order[0] = first;
}

/* Neighbours in time lie at opposite ends: what is gathered one ahead. */
static void try_both_ends(struct placing *x)
{
    uint64_t room = 0;

    for (uint32_t k = 0; k < x->n; k++) {
        uint64_t at;
        x->order[k] = k;
        at = k % 2 == 0 ? lowest(x, k) : highest(x, k);
        if (at == UINT64_MAX) {
            return;
        }
        x->offset[k] = at;
        at += impl_room(x->life[k].size);
        room = at > room ? at : room;
    }
    keep_if_better(x, room);
}

/* Whether life a goes before b: longer, earlier, larger ones first. */
static bool goes_before(const struct impl_life *a, const struct impl_life *b,
                        uint32_t how)
{
    if (how == 0) {
        return a->end - a->begin > b->end - b->begin;
    }
    return how == 1 ? a->begin < b->begin : a->size > b->size;
}

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
}

static void search(struct placing *x)
{
    uint64_t tries = 1 + MAX_WORK / (1 + (uint64_t)x->n * x->n);

    tries = tries < MAX_TRIES ? tries : MAX_TRIES;
    try_both_ends(x);
    for (uint32_t how = 0; how < 3; how++) {
        sort(x, how);
        for (uint64_t t = 0; t < tries && x->best_room > x->load; t++) {
            promote(x, try_order(x));
        }
    }
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

int impl_place(struct impl_life *life, uint32_t n, uint64_t *room)
{
    struct placing x = {.life = life,
                        .n = n,
                        .load = impl_load(life, n),
                        .best_room = UINT64_MAX};
    int status = FSDP_ERR_NOMEM;

    x.order = calloc(n + (size_t)1, sizeof *x.order);
    x.offset = calloc(n + (size_t)1, sizeof *x.offset);
    x.best = calloc(n + (size_t)1, sizeof *x.best);
    if (x.order && x.offset && x.best) {
        search(&x);
        for (uint32_t i = 0; i < n; i++) {
            life[i].offset = x.best[i];
        }
        find_predecessors(life, n);
        *room = n > 0 ? x.best_room : 0;
        status = FSDP_OK;
    }
    free(x.order);
    free(x.offset);
    free(x.best);
    return status;
}
