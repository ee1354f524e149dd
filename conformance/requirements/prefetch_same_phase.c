/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefetch_same_phase.c - what is gathered ahead for a backward while the
 * forward is at work is unsharded where nobody expects it, for as long as what
 * lies between the two takes: a loss, a pipeline's bubble, another model.
 */
#include "judge/compare/compare_flights.h"

static bool applies(const struct expect *e)
{
    return flights_applies(e) && e->shards > 1 &&
           (e->options.prefetch_forward > 0 ||
            e->options.prefetch_backward > 0);
}

static bool check(const struct expect *e, const struct record_flights *flights,
                  uint32_t i, struct finding at, struct finding *f)
{
    const struct record_flight *x = &flights->flight[i];
    struct flights_way way;

    if (x->kind != FSDP_ALL_GATHER) {
        return true;
    }
    if (!flights_way(e, x, &way)) {
        return finding_note(f, at,
                            "all-gather %u of the step is given out at "
                            "position %u, behind the last window of its unit "
                            "in that pass",
                            i, x->issued);
    }
    return way.same_phase ||
           finding_note(f, at,
                        "all-gather %u of the step is given out at position "
                        "%u, in another phase than its window, which opens at "
                        "position %u",
                        i, way.issued, way.opens);
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return flights_each(e, r, check, f);
}

/* One of a backward goes out at the last point of the forward. */
static bool spoil(const struct expect *e, struct record *r)
{
    struct record_flights *flights = flights_to_spoil(r);
    struct flights_way way;

    for (uint32_t i = 0; flights && i < flights->n; i++) {
        struct record_flight *x = &flights->flight[i];

        if (flights_way(e, x, &way) && way.edge < way.issued) {
            x->issued = way.edge;
            return true;
        }
    }
    return false;
}

REQUIREMENT(prefetch_same_phase) = {
    .id = "prefetch.same-phase",
    .text = "No all-gather is given out ahead in another phase than that of "
            "its window, nor in another pass.",
    .since = "1.1",
    .must = 1,
    .level = LEVEL_COMM,
    .needs = "stream.no-race comm.nothing-else",
    .claim = "prefetch",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
