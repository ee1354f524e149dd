/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_no_race.c - whatever touches the same memory on different streams, or
 * on a stream and on the host, is ordered by a wait or a sync. Found in the
 * order of calls: a run that happened to go well does not hide it.
 */
#include "judge/compare/compare.h"

#include <stdio.h>

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

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
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
    where(x, what, sizeof what);
    return finding_note(
        f, at, "%s: %s on %s (%s) and %s on %s (%s): no wait %s", what,
        x->earlier.what, x->earlier.stream, x->earlier.point, x->later.what,
        x->later.stream, x->later.point, x->edge);
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_ranks(e, r, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    struct record_rank *rank = compare_rank_to_spoil(r, r->n_ranks - 1);

    (void)e;
    if (rank == NULL) {
        return false;
    }
    rank->races.count++;
    return true;
}

REQUIREMENT(stream_no_race) = {
    .id = "stream.no-race",
    .text = "Accesses to the same memory, one of them a write, are ordered by "
            "a stream, a wait or a sync.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_RUN,
    .needs = "run.completes",
    .applies = compare_case_trains,
    .holds = holds,
    .spoil = spoil,
};
