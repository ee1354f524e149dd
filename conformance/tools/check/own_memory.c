/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_memory.c - the bytes of whole weights that a rank has, at each moment
 * that a hook saw: exactly those of the units that are in use in a forward; in
 * a backward, where one unit is gathered ahead, at most those and the largest
 * one that is still to come; and none behind a pass.
 */
#include "tools/check/own_requirement.h"
#include "tools/check/own_walk.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum state {
    SHARDED = 0,
    WHOLE = 1,
    DONE = 2, /* reduced: it does not come back in this pass */
};

struct walk {
    const struct own_set *s;
    uint8_t *state;
    bool backward;
};

static uint64_t unit_bytes(const struct own_set *s, uint32_t unit)
{
    static const struct own_event any = {0};

    return own_unit_elements(s, &any, unit, false) * s->world *
           own_dtype_bytes(s->unsharded.compute);
}

static void take(struct walk *w, const struct own_event *e)
{
    const struct own_unit *unit = &w->s->rank[0].unit[e->unit];
    uint8_t *state = &w->state[e->unit];

    switch (e->kind) {
    case OWN_FORWARD:
    case OWN_BACKWARD:
        *state = WHOLE;
        break;
    case OWN_FORWARD_END:
        *state = !e->backward && unit->reshard ? SHARDED : WHOLE;
        break;
    case OWN_REDUCE_SCATTER:
        *state = DONE;
        break;
    default:
        break;
    }
}

/* The bounds on what may be there: `least` in use, and `most` with one unit
 * ahead. */
static void bounds(const struct walk *w, uint64_t *least, uint64_t *most)
{
    uint64_t ahead = 0;

    *least = 0;
    for (uint32_t u = 0; u < w->s->rank[0].n_units; u++) {
        const uint64_t bytes = unit_bytes(w->s, u);

        if (w->state[u] == WHOLE) {
            *least += bytes;
        } else if (w->state[u] == SHARDED && bytes > ahead) {
            ahead = bytes;
        }
    }
    *most = *least + (w->backward ? ahead : 0);
}

static bool moment_holds(const struct walk *w, const struct own_event *e,
                         struct own_finding *f)
{
    uint64_t least;
    uint64_t most;

    bounds(w, &least, &most);
    if (e->kind == OWN_PASS_END) {
        most = 0;
    }
    *f = own_nowhere();
    f->step = e->step;
    f->microbatch = e->microbatch;
    f->rank = e->rank;
    f->unit = e->unit;
    return e->n <= most ||
           own_fail(f,
                    "%" PRIu64 " bytes of whole weights at its %s, at most "
                    "%" PRIu64 " expected",
                    e->n,
                    e->kind == OWN_PASS_END ? "end" : own_event_name(e->kind),
                    most);
}

static bool rank_holds(const struct own_set *s, uint32_t r, uint8_t *state,
                       struct own_finding *f)
{
    const struct own_record *rank = &s->rank[r];
    struct walk w = {s, state, false};

    memset(state, 0, rank->n_units);
    for (uint32_t i = 0; i < rank->n_events; i++) {
        const struct own_event *e = &rank->event[i];
        const bool known = e->unit >= 0 && (uint32_t)e->unit < rank->n_units;

        w.backward = e->backward;
        if (known) {
            take(&w, e);
        }
        if (((known && e->kind <= OWN_BACKWARD) || e->kind == OWN_PASS_END) &&
            !moment_holds(&w, e, f)) {
            return false;
        }
        if (e->kind == OWN_PASS_END) {
            memset(state, 0, rank->n_units);
        }
    }
    return true;
}

bool own_memory_holds(const struct own_requirement *q, const struct own_set *s,
                      struct own_finding *f)
{
    uint8_t *state = calloc(s->rank[0].n_units + 1, sizeof(*state));
    bool holds = state != NULL;

    (void)q;
    *f = own_nowhere();
    if (!holds) {
        return own_fail(f, "out of memory");
    }
    for (uint32_t r = 0; r < s->world && holds; r++) {
        holds = rank_holds(s, r, state, f);
    }
    free(state);
    return holds;
}

/* Adds one byte at the end of the last pass. */
bool own_memory_spoil(const struct own_requirement *q, struct own_set *s,
                      struct own_spoil *undo)
{
    struct own_record *last = &s->rank[s->world - 1];

    (void)q;
    for (uint32_t i = last->n_events; i-- > 0;) {
        struct own_event *e = &last->event[i];

        if (e->kind == OWN_PASS_END) {
            own_damage(undo, &e->n, sizeof(e->n));
            e->n++;
            return true;
        }
    }
    return false;
}
