/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_nothing_else.c - a barrier or a broadcast in the loop costs every rank,
 * every step.
 */
#include "judge/compare/compare.h"

static bool check_kind(const struct expect *e,
                       const struct record_collective *c, uint32_t index,
                       struct finding at, struct finding *f)
{
    (void)e;
    (void)index;
    at.unit = c->unit;
    return c->kind <= FSDP_ALL_REDUCE ||
           finding_count(f, at, c->kind, FSDP_ALL_GATHER,
                         "a collective of a kind that no step needs");
}

static bool check_outside(const struct expect *e,
                          const struct record_rank *rank, uint32_t k,
                          struct finding *f)
{
    const struct record_sequence *shard =
        compare_sequence(rank, rank->shard_sequence);
    const struct record_sequence *end =
        compare_sequence(rank, rank->end_sequence);
    uint32_t summons =
        e->c->scenario == CASE_SUMMON && e->shards > 1 ? e->units->n_units : 0;

    if (shard == NULL || end == NULL) {
        return finding_text(
            f, finding_at("collectives", -1, -1, k),
            "what was communicated outside steps is not recorded");
    }
    if (shard->n != 0) {
        return finding_count(f, finding_at("shard", -1, -1, k), shard->n, 0,
                             "collectives while sharding");
    }
    if (end->n != summons || compare_count(end, FSDP_ALL_GATHER) != summons) {
        return finding_count(f, finding_at("end", -1, -1, k), end->n, summons,
                             "collectives after the last step; all-gathers of "
                             "unshard_all alone are wanted");
    }
    return true;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_collectives(e, r, check_kind, f) &&
           compare_ranks(e, r, check_outside, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    struct record_collective *c = compare_collective_to_spoil(r);

    (void)e;
    if (c == NULL) {
        return false;
    }
    c->kind = FSDP_BARRIER;
    return true;
}

REQUIREMENT(comm_nothing_else) = {
    .id = "comm.nothing-else",
    .text = "Steps use all-gather, reduce-scatter and all-reduce only; "
            "sharding, and what follows the last step, communicate "
            "nothing (but for unshard_all, one all-gather a unit).",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_COMM,
    .needs = "run.shows-every-step",
    .applies = compare_case_communicates,
    .holds = holds,
    .spoil = spoil,
};
