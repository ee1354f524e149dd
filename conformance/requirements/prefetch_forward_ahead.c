/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefetch_forward_ahead.c - with prefetch an all-gather is given out before
 * its window opens, and does not wait for the compute that it should run
 * beside. By the order of calls and waits, not by a clock.
 */
#include "judge/compare/compare_flights.h"

static bool applies(const struct expect *e)
{
    return flights_applies(e) && e->shards > 1 &&
           e->options.prefetch_forward > 0;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return flights_gathers_ahead(e, r, false, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    return flights_spoil_gather(e, r, false);
}

REQUIREMENT(prefetch_forward_ahead) = {
    .id = "prefetch.forward-ahead",
    .text = "In a forward the next unit's all-gather runs beside the compute "
            "of the one before it.",
    .since = "1.0",
    .must = 0,
    .level = LEVEL_COMM,
    .needs = "stream.no-race comm.nothing-else",
    .claim = "prefetch",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
