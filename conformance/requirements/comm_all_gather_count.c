/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_all_gather_count.c - a unit is gathered once for each of its windows.
 */
#include "judge/compare.h"

static bool check(const struct expect *e,
                  const struct record_sequence *sequence, struct finding at,
                  struct finding *f)
{
    uint64_t got = compare_count(sequence, FSDP_ALL_GATHER);
    uint64_t want = compare_count(&e->step, FSDP_ALL_GATHER);

    at.stage = "all-gather";
    return got == want ||
           finding_count(f, at, got, want, "all-gathers in this step");
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_steps(e, r, check, f);
}

/* Turns one of another kind into this kind, or this into another. */
static bool spoil(const struct expect *e, struct record *r)
{
    struct record_sequence *s = compare_sequence_to_spoil(r);

    (void)e;
    if (s == NULL) {
        return false;
    }
    s->c[0].kind =
        s->c[0].kind == FSDP_ALL_GATHER ? FSDP_BARRIER : FSDP_ALL_GATHER;
    return true;
}

REQUIREMENT(comm_all_gather_count) = {
    .id = "comm.all-gather-count",
    .text = "Each step of each rank makes as many all-gathers as the "
            "windows of its units need, no more and no fewer.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_COMM,
    .needs = "comm.nothing-else",
    .applies = compare_case_communicates,
    .holds = holds,
    .spoil = spoil,
};
