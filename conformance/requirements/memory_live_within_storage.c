/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_live_within_storage.c - nothing can be live where nothing was
 * allocated.
 */
#include "judge/compare/compare.h"

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    uint64_t got = rank->memory.peak_live_over_storage;

    (void)e;
    return got == 0 || finding_bytes(f, finding_at("memory", -1, -1, k), got, 0,
                                     "live beyond what is allocated");
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
    rank->memory.peak_live_over_storage++;
    return true;
}

REQUIREMENT(memory_live_within_storage) = {
    .id = "memory.live-within-storage",
    .text = "Live bytes never exceed the storage that was allocated for "
            "them.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_MEMORY,
    .needs = "memory.ranges-valid",
    .applies = compare_case_trains,
    .holds = holds,
    .spoil = spoil,
};
