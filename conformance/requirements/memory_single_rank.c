/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_single_rank.c - with nothing to gather an unsharded copy would be a
 * second model.
 */
#include "judge/compare/compare.h"

static bool applies(const struct expect *e)
{
    return compare_case_trains(e) && e->shards == 1;
}

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    uint64_t got = rank->memory.peak[FSDP_PARAM_FULL];

    (void)e;
    return got == 0 ||
           finding_bytes(f, finding_at("unsharded parameter", -1, -1, k), got,
                         0, "a copy that is not needed");
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
    rank->memory.peak[FSDP_PARAM_FULL]++;
    return true;
}

REQUIREMENT(memory_single_rank) = {
    .id = "memory.single-rank",
    .text = "Where the shard degree is 1 a parameter is never held "
            "twice.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_MEMORY,
    .needs = "memory.ranges-valid",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
