/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead_requirements.c - what is in flight while the model computes: no race,
 * nothing at all in the strict profile, and the overlap that prefetch is for.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"
#include "judge/compare/compare_flights.h"

#include <stdio.h>

/*
 * stream.no-race: work that touches the same memory on different streams, or on
 * a stream and on the host, is ordered by a wait or a sync. A race is found
 * from the order of calls, so that a run that happened to go well does not hide
 * it.
 */

/* "unit 3, grad-full" */
static void where(const struct record_race *x, char *out, size_t size)
{
    const char *kind = record_kind_name(x->kind);

    if (x->unit == FSDP_NO_UNIT) {
        snprintf(out, size, "%s", kind ? kind : "memory");
    } else {
        snprintf(out, size, "unit %u%s%s", x->unit, kind ? ", " : "",
                 kind ? kind : "");
    }
}

static bool stream_no_race_of_rank(const struct expect *e,
                                   const struct record_rank *rank, uint32_t k,
                                   struct finding *f)
{
    const struct record_races *races = &rank->races;
    const struct record_race *x = &races->race[0];
    struct finding at = finding_at("order", -1, -1, k);
    char what[48];

    (void)e;
    if (races->unfollowed > 0) {
        return finding_missing(f, at,
                               "more streams are open at once than can be "
                               "followed");
    }
    if (races->count == 0) {
        return true;
    }
    if (races->n == 0) {
        return finding_count(f, at, races->count, 0, "accesses that race");
    }
    at.step = x->later.step;
    at.unit = x->unit == FSDP_NO_UNIT ? -1 : (int64_t)x->unit;
    where(x, what, sizeof(what));
    return finding_note(
        f, at, "%s: %s on %s (%s) and %s on %s (%s): no wait %s", what,
        x->earlier.what, x->earlier.stream, x->earlier.point, x->later.what,
        x->later.stream, x->later.point, x->edge);
}

/*
 * stream.strict: in the strict profile compute is behind every collective of a
 * point before the model goes on from it.
 */
static bool stream_strict_applies(const struct expect *e)
{
    return flights_applies(e) && compare_case_strict(e);
}

static bool stream_strict_of_flight(const struct expect *e,
                                    const struct record_flights *flights,
                                    uint32_t i, struct finding at,
                                    struct finding *f)
{
    const struct record_flight *x = &flights->flight[i];

    (void)e;
    return x->awaited == x->issued ||
           finding_note(f, at,
                        "collective %u of the step, given out at position %u, "
                        "is in flight when the model goes on",
                        i, x->issued);
}

static bool stream_strict_holds(const struct expect *e, const struct record *r,
                                struct finding *f)
{
    return flights_each(e, r, stream_strict_of_flight, f);
}

static bool stream_strict_spoil(const struct expect *e, struct record *r)
{
    struct record_flights *flights = flights_to_spoil(r);

    (void)e;
    if (!flights) {
        return false;
    }
    flights->flight[flights->n - 1].awaited++;
    return true;
}

/*
 * With prefetch an all-gather is issued before its window opens, and does not
 * wait for the compute that it should run beside. Judged by the order of calls
 * and waits, not by a clock. The row says which windows: `kind` is the point
 * that opens them.
 */
static bool gathers_ahead_applies(const struct requirement *q,
                                  const struct expect *e)
{
    return e->shards > 1 &&
           (q->kind == FSDP_PRE_BACKWARD ? e->options.prefetch_backward > 0
                                         : e->options.prefetch_forward > 0);
}

static bool gathers_ahead_holds(const struct requirement *q,
                                const struct expect *e, const struct record *r,
                                struct finding *f)
{
    return flights_gathers_ahead(e, r, q->kind == FSDP_PRE_BACKWARD, f);
}

static bool gathers_ahead_spoil(const struct requirement *q,
                                const struct expect *e, struct record *r)
{
    return flights_spoil_gather(e, r, q->kind == FSDP_PRE_BACKWARD);
}

static const struct requirement_check check_gathers_ahead = {
    .applies = gathers_ahead_applies,
    .holds = gathers_ahead_holds,
    .spoil = gathers_ahead_spoil};

/*
 * prefetch.same-phase: a unit that is gathered for its backward while the
 * forward is still at work stays unsharded for as long as whatever lies between
 * the two takes (a loss, a pipeline's bubble, another model), which no one
 * expects.
 */
static bool same_phase_applies(const struct expect *e)
{
    return flights_applies(e) && e->shards > 1 &&
           (e->options.prefetch_forward > 0 ||
            e->options.prefetch_backward > 0);
}

static bool same_phase_of_flight(const struct expect *e,
                                 const struct record_flights *flights,
                                 uint32_t i, struct finding at,
                                 struct finding *f)
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

static bool same_phase_holds(const struct expect *e, const struct record *r,
                             struct finding *f)
{
    return flights_each(e, r, same_phase_of_flight, f);
}

/* Moves a backward's all-gather to the last point of the forward. */
static bool same_phase_spoil(const struct expect *e, struct record *r)
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

/*
 * prefetch.reduce-overlaps: with reductions in flight compute does not wait for
 * a reduction before the next backward. Judged by the order of calls and waits,
 * not by a clock. A communicator without streams leaves nothing in flight.
 */
static bool reduce_overlaps_applies(const struct expect *e)
{
    return flights_applies(e) && e->options.reduces_in_flight > 0;
}

static bool reduce_overlaps_of_flight(const struct expect *e,
                                      const struct record_flights *flights,
                                      uint32_t i, struct finding at,
                                      struct finding *f)
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

static bool reduce_overlaps_holds(const struct expect *e,
                                  const struct record *r, struct finding *f)
{
    return flights_each(e, r, reduce_overlaps_of_flight, f);
}

static bool reduce_overlaps_spoil(const struct expect *e, struct record *r)
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

const struct requirement ahead_requirements[] = {
    {.since = "1.0", .must = 1, .needs = "stream.no-race comm.nothing-else"},
    {.id = "stream.no-race",
     .text = "Accesses to the same memory, one of them a write, are ordered by "
             "a stream, a wait or a sync.",
     .level = LEVEL_RUN,
     .needs = "run.completes",
     .applies = compare_case_plays,
     .check = &check_each_rank,
     .rank = {stream_no_race_of_rank, .raises = COMPARE_OF_RANK(races.count)}},
    {.id = "stream.strict",
     .text = "Without prefetch and reductions in flight no collective is in "
             "flight across a point.",
     .level = LEVEL_COMM,
     .claim = "strict-memory",
     .applies = stream_strict_applies,
     .holds = stream_strict_holds,
     .spoil = stream_strict_spoil},
    {.id = "prefetch.forward-ahead",
     .text = "In a forward the next unit's all-gather runs beside the compute "
             "of the one before it.",
     .should = true,
     .level = LEVEL_COMM,
     .claim = "prefetch",
     .applies = flights_applies,
     .check = &check_gathers_ahead,
     .kind = FSDP_PRE_FORWARD},
    {.id = "prefetch.backward-ahead",
     .text = "In a backward the next unit's all-gather runs beside the compute "
             "of the one before it.",
     .should = true,
     .level = LEVEL_COMM,
     .claim = "prefetch",
     .applies = flights_applies,
     .check = &check_gathers_ahead,
     .kind = FSDP_PRE_BACKWARD},
    {.id = "prefetch.same-phase",
     .text = "No all-gather is given out ahead in another phase than that of "
             "its window, nor in another pass.",
     .since = "1.1",
     .level = LEVEL_COMM,
     .claim = "prefetch",
     .applies = same_phase_applies,
     .holds = same_phase_holds,
     .spoil = same_phase_spoil},
    {.id = "prefetch.reduce-overlaps",
     .text = "With reductions in flight the next backward does not wait for "
             "the one before it to be reduced.",
     .should = true,
     .level = LEVEL_COMM,
     .claim = "prefetch",
     .applies = reduce_overlaps_applies,
     .holds = reduce_overlaps_holds,
     .spoil = reduce_overlaps_spoil},
    {0},
};
