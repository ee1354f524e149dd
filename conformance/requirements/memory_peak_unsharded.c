/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_peak_unsharded.c - what is unsharded at once is what sharding saves
 * or wastes.
 */
#include "judge/compare.h"

static bool applies(const struct expect *e)
{
    return compare_case_strict(e) && e->shards > 1;
}

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    uint64_t got = rank->memory.peak[FSDP_PARAM_FULL];
    uint64_t want = e->peak_full;

    return got == want ||
           finding_peak(f, finding_at("unsharded parameter", -1, -1, k), got,
                        want, "unsharded parameters at once", &rank->memory);
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_ranks(e, r, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    struct record_rank *rank = compare_rank_to_spoil(r, r->n_ranks - 1);

    if (rank == NULL) {
        return false;
    }
    rank->memory.peak[FSDP_PARAM_FULL] = e->peak_full + 1;
    return true;
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
