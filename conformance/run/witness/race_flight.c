/* SPDX-License-Identifier: Apache-2.0 */
/*
 * race_flight.c - of one step, when each collective was given out, what of the
 * model's stream it is behind, and when the model's stream is behind it. It is
 * all in the clocks.
 */
#include "run/witness/race.h"

#include <stdlib.h>
#include <string.h>

static void *grow(struct race *r, void *p, uint32_t n, uint32_t *room,
                  size_t size)
{
    uint32_t more = *room ? 2 * *room : 64;
    void *grown;

    if (n < *room) {
        return p;
    }
    grown = realloc(p, more * size);
    if (!grown) {
        r->out_of_memory = true;
        return NULL;
    }
    *room = more;
    return grown;
}

void race_watch_flights(struct race *r, uint32_t step)
{
    r->flight_step = step;
    r->flights_wanted = true;
}

static bool is_awaited(const struct race *r, const struct race_pending *x)
{
    const struct race_clock *compute = &r->stream[r->compute].clock;

    return x->stream == RACE_HOST || compute->tick[x->stream] >= x->tick ||
           r->host.tick[x->stream] >= x->tick;
}

/* Positions end where the next one begins. */
static void settle(struct race *r)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < r->n_pending; i++) {
        struct race_pending *x = &r->pending[i];
        if (is_awaited(r, x)) {
            r->flights.flight[x->index].awaited = r->position;
        } else {
            r->pending[kept++] = *x;
        }
    }
    r->n_pending = kept;
}

void race_flight_place(struct race *r, uint32_t step, uint32_t point)
{
    bool inside = r->flights_wanted && step == r->flight_step &&
                  (point <= FSDP_CANCEL || point == RACE_AT_STEP ||
                   point == RACE_AT_ZERO_GRAD);
    uint64_t *grown;

    if (r->in_flight_step) {
        settle(r);
    }
    if (!inside) {
        return; /* what is given out here belongs to the position before */
    }
    if (!r->in_flight_step) {
        r->in_flight_step = true;
        r->position = 0;
        r->flights.n = 0; /* the life before, of the same step */
        r->n_pending = 0;
        r->n_ticks = 0;
    } else {
        r->position++;
    }
    grown = grow(r, r->tick_at, r->n_ticks, &r->tick_room, sizeof(*r->tick_at));
    if (grown) {
        r->tick_at = grown;
        r->tick_at[r->n_ticks++] =
            r->compute < RACE_STREAMS
                ? r->stream[r->compute].clock.tick[r->compute]
                : 0;
    }
}

void race_flight_end(struct race *r)
{
    if (r->in_flight_step) {
        settle(r);
    }
    r->in_flight_step = false;
}

/* Positions whose work lies before `tick` of the model's stream, at least in
 * part. */
static uint32_t behind(const struct race *r, uint64_t tick)
{
    uint32_t n = r->n_ticks;

    while (n > 0 && r->tick_at[n - 1] >= tick) {
        n--;
    }
    return n;
}

void race_flight_note(struct race *r, uint32_t stream, uint64_t tick,
                      const struct race_clock *clock,
                      const struct fsdp_collective *c)
{
    struct record_flight x = {.kind = c->kind,
                              .unit = c->unit,
                              .issued = r->position,
                              .awaited = RECORD_NO_POSITION,
                              .on_stream = stream != RACE_HOST};
    struct record_flight *flight;
    struct race_pending *pending;

    if (!r->in_flight_step) {
        return;
    }
    flight = grow(r, r->flights.flight, r->flights.n, &r->flight_room,
                  sizeof(*flight));
    r->flights.flight = flight ? flight : r->flights.flight;
    pending =
        grow(r, r->pending, r->n_pending, &r->pending_room, sizeof(*pending));
    r->pending = pending ? pending : r->pending;
    if (!flight || !pending) {
        return;
    }
    x.behind = r->compute < RACE_STREAMS ? behind(r, clock->tick[r->compute])
                                         : r->n_ticks;
    r->pending[r->n_pending++] = (struct race_pending){
        r->flights.n, r->compute < RACE_STREAMS ? stream : RACE_HOST, tick};
    r->flights.flight[r->flights.n++] = x;
}
