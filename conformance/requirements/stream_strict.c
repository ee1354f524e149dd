/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_strict.c - in the strict profile compute is behind every collective
 * of a point before the model goes on from it.
 */
#include "judge/compare/compare_flights.h"

static bool applies(const struct expect *e)
{
    return flights_applies(e) && compare_case_strict(e);
}

static bool check(const struct expect *e, const struct record_flights *flights,
                  uint32_t i, struct finding at, struct finding *f)
{
    const struct record_flight *x = &flights->flight[i];

    (void)e;
    return x->awaited == x->issued ||
           finding_note(f, at,
                        "collective %u of the step, given out at position %u, "
                        "is in flight when the model goes on",
                        i, x->issued);
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return flights_each(e, r, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    struct record_flights *flights = flights_to_spoil(r);

    (void)e;
    if (flights == NULL) {
        return false;
    }
    flights->flight[flights->n - 1].awaited++;
    return true;
}

REQUIREMENT(stream_strict) = {
    .id = "stream.strict",
    .text = "Without prefetch and reductions in flight no collective is in "
            "flight across a point.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_COMM,
    .needs = "stream.no-race comm.nothing-else",
    .claim = "strict-memory",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
