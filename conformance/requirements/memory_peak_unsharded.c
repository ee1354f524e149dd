/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_peak_unsharded.c - what is unsharded at once is what sharding saves
 * or wastes.
 */
#include "judge/compare/compare_memory.h"

static bool applies(const struct expect *e)
{
    return compare_case_strict(e) && e->shards > 1;
}

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    return compare_peak(e, rank, k, COMPARE_PEAK_UNSHARDED,
                        "unsharded parameters at once", f);
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_ranks(e, r, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    return compare_spoil_peak(e, r, COMPARE_PEAK_UNSHARDED);
}

REQUIREMENT(memory_peak_unsharded) = {
    .id = "memory.peak-unsharded",
    .text = "Without prefetch the most unsharded parameter bytes at "
            "once are those of the windows that the model opens, to the "
            "byte.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_MEMORY,
    .needs = "memory.rest-after-shard memory.rest-after-step",
    .claim = "strict-memory",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
