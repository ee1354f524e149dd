/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_ranges_valid.c - a live range lies inside one allocation and overlaps
 * no other; else its bytes cannot be counted.
 */
#include "judge/compare/compare.h"

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    uint64_t got = rank->memory.bad_ranges;

    (void)e;
    return got == 0 || finding_count(f, finding_at("memory", -1, -1, k), got, 0,
                                     "live ranges outside an allocation, "
                                     "overlapping, or freed while live");
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
    rank->memory.bad_ranges++;
    return true;
}

REQUIREMENT(memory_ranges_valid) = {
    .id = "memory.ranges-valid",
    .text = "No range is declared live outside an allocation, over "
            "another one, or freed while live.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_MEMORY,
    .needs = "run.completes",
    .applies = compare_case_trains,
    .holds = holds,
    .spoil = spoil,
};
