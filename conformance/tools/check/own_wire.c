/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_wire.c - each collective by itself: its elements and its dtype; and all
 * of them on all ranks: in the same order.
 */
#include "tools/check/own_requirement.h"
#include "tools/check/own_walk.h"

#include <inttypes.h>
#include <string.h>

static bool is_collective(const struct own_event *e)
{
    return e->kind >= OWN_ALL_GATHER && e->kind <= OWN_ALL_REDUCE;
}

static void place(struct own_finding *f, const struct own_event *e)
{
    *f = own_nowhere();
    f->step = e->step;
    f->microbatch = e->microbatch;
    f->rank = e->rank;
    f->unit = e->unit;
}

static bool event_holds(const struct own_set *s, const struct own_event *e,
                        struct own_finding *f)
{
    const bool reduces = e->kind == OWN_REDUCE_SCATTER;
    const uint32_t dtype = reduces ? s->unsharded.reduce : s->unsharded.compute;
    const uint64_t n = own_unit_elements(s, e, (uint32_t)e->unit, reduces);

    place(f, e);
    if (e->dtype != dtype) {
        return own_fail(f, "%s in %s, %s was asked for",
                        own_event_name(e->kind), own_dtype_name(e->dtype),
                        own_dtype_name(dtype));
    }
    return e->n == n || own_fail(f,
                                 "%s of %" PRIu64 " elements (%" PRIu64
                                 " bytes), %" PRIu64 " (%" PRIu64 ") expected",
                                 own_event_name(e->kind), e->n,
                                 e->n * own_dtype_bytes(dtype), n,
                                 n * own_dtype_bytes(dtype));
}

bool own_wire_holds(const struct own_requirement *q, const struct own_set *s,
                    struct own_finding *f)
{
    (void)q;
    for (uint32_t r = 0; r < s->world; r++) {
        const struct own_record *rank = &s->rank[r];

        for (uint32_t i = 0; i < rank->n_events; i++) {
            const struct own_event *e = &rank->event[i];

            if ((e->kind == OWN_ALL_GATHER || e->kind == OWN_REDUCE_SCATTER) &&
                e->unit >= 0 && (uint32_t)e->unit < rank->n_units &&
                !event_holds(s, e, f)) {
                return false;
            }
        }
    }
    return true;
}

static struct own_event *first_collective(struct own_set *s, int32_t least)
{
    struct own_record *last = &s->rank[s->world - 1];

    for (uint32_t i = 0; i < last->n_events; i++) {
        if (is_collective(&last->event[i]) && last->event[i].unit >= least) {
            return &last->event[i];
        }
    }
    return NULL;
}

/* Makes the size of a collective wrong: of a unit from `least` on; -1: of no
 * unit, too. */
static bool spoil_size(struct own_set *s, int32_t least, struct own_spoil *undo)
{
    struct own_event *e = first_collective(s, least);

    if (!e) {
        return false;
    }
    own_damage(undo, &e->n, sizeof(e->n));
    e->n++;
    return true;
}

bool own_wire_spoil(const struct own_requirement *q, struct own_set *s,
                    struct own_spoil *undo)
{
    (void)q;
    return spoil_size(s, 0, undo);
}

/* The next collective of a record from *at on; NULL: there is none. */
static const struct own_event *next(const struct own_record *r, uint32_t *at)
{
    while (*at < r->n_events) {
        const struct own_event *e = &r->event[(*at)++];

        if (is_collective(e)) {
            return e;
        }
    }
    return NULL;
}

static bool same_collective(const struct own_event *a,
                            const struct own_event *b)
{
    return a->step == b->step && a->microbatch == b->microbatch &&
           a->kind == b->kind && a->unit == b->unit && a->dtype == b->dtype &&
           a->n == b->n;
}

/* Whether two ranks do the same at one place; NULL: that rank does nothing
 * more. */
static bool same_place(const struct own_event *first,
                       const struct own_event *mine, uint32_t r,
                       struct own_finding *f)
{
    if (!first && !mine) {
        return true;
    }
    if (first && mine && same_collective(first, mine)) {
        return true;
    }
    place(f, mine ? mine : first);
    f->rank = r;
    return own_fail(
        f,
        "%s of %" PRIu64 " elements, rank 0 has %s of %" PRIu64
        " at this place",
        mine ? own_event_name(mine->kind) : "nothing", mine ? mine->n : 0,
        first ? own_event_name(first->kind) : "nothing", first ? first->n : 0);
}

bool own_order_holds(const struct own_requirement *q, const struct own_set *s,
                     struct own_finding *f)
{
    (void)q;
    for (uint32_t r = 1; r < s->world; r++) {
        uint32_t at[2] = {0, 0};
        const struct own_event *first;
        const struct own_event *mine;

        do {
            first = next(&s->rank[0], &at[0]);
            mine = next(&s->rank[r], &at[1]);
            if (!same_place(first, mine, r, f)) {
                return false;
            }
        } while (first);
    }
    return true;
}

bool own_order_spoil(const struct own_requirement *q, struct own_set *s,
                     struct own_spoil *undo)
{
    (void)q;
    return s->world > 1 && spoil_size(s, -1, undo);
}
