/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefetch_reduce_overlaps.c - with reductions in flight compute does not wait
 * for one before the next backward. By the order of calls and waits, not by a
 * clock. A communicator without streams leaves nothing in flight.
 */
#include "judge/compare/compare_flights.h"

static bool applies(const struct expect *e)
{
    return flights_applies(e) && e->options.reduces_in_flight > 0;
}

static bool check(const struct expect *e, const struct record_flights *flights,
                  uint32_t i, struct finding at, struct finding *f)
{
    uint32_t meanwhile;

    return !flights_reduce(e, flights, i, &meanwhile) ||
           !flights->flight[i].on_stream ||
           flights->flight[i].awaited >= meanwhile + 1 ||
           finding_note(f, at,
                        "compute of position %u waits for reduction %u of the "
                        "step (since position %u)",
                        meanwhile, i, flights->flight[i].awaited);
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return flights_each(e, r, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    struct record_flights *flights = flights_to_spoil(r);
    uint32_t meanwhile;

    for (uint32_t i = 0; flights && i < flights->n; i++) {
        if (flights->flight[i].on_stream &&
            flights_reduce(e, flights, i, &meanwhile)) {
            flights->flight[i].awaited = meanwhile;
            return true;
        }
    }
    return false;
}

REQUIREMENT(prefetch_reduce_overlaps) = {
    .id = "prefetch.reduce-overlaps",
    .text = "With reductions in flight the next backward does not wait for "
            "the one before it to be reduced.",
    .since = "1.0",
    .must = 0,
    .level = LEVEL_COMM,
    .needs = "stream.no-race comm.nothing-else",
    .claim = "prefetch",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
