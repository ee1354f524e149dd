/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_rest_after_shard.c - at rest a rank holds its shards and optimizer
 * states, 1/S of each, and nothing else.
 */
#include "judge/compare/compare_memory.h"

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    return compare_rest(e, &rank->memory.after_shard,
                        finding_at("memory", -1, -1, k), f);
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
    rank->memory.after_shard.live[FSDP_PARAM_SHARD]++;
    return true;
}

REQUIREMENT(memory_rest_after_shard) = {
    .id = "memory.rest-after-shard",
    .text = "After sharding the live bytes of each kind are those of "
            "the shards and states, to the byte.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_MEMORY,
    .needs = "memory.ranges-valid",
    .applies = compare_case_trains,
    .holds = holds,
    .spoil = spoil,
};
