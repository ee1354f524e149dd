/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_wrap_trade_off.c - smaller units lower the peak and cost more
 * messages: the trade-off that wrapping is about.
 */
#include "judge/compare.h"

static void change(struct run_case *c)
{
    c->wrap = CASE_WRAP_WHOLE;
}

static bool applies(const struct expect *e)
{
    return compare_case_communicates(e) && compare_case_strict(e) &&
           e->c->scenario != CASE_SUMMON && e->c->wrap == CASE_WRAP_LAYER &&
           e->shards > 1 && e->units->n_units > 1 &&
           e->options.reshard_after_forward != 0 &&
           compare_companion(e, change) != NULL;
}

static uint64_t gathers_of(const struct record_rank *rank)
{
    const struct record_sequence *s = NULL;

    if (rank->step_sequence != NULL && rank->n_steps > 0) {
        s = compare_sequence(rank, rank->step_sequence[0]);
    }
    return s == NULL ? 0 : compare_count(s, FSDP_ALL_GATHER);
}

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    const struct record *other = compare_companion(e, change);
    const struct record_rank *there =
        other == NULL ? NULL : compare_rank(other, k);
    uint64_t bytes = rank->memory.peak[FSDP_PARAM_FULL];

    if (there == NULL) {
        return finding_missing(f, finding_at("memory", -1, -1, k),
                               "there is no record to compare with");
    }
    if (bytes >= there->memory.peak[FSDP_PARAM_FULL]) {
        return finding_bytes(f, finding_at("unsharded parameter", -1, -1, k),
                             bytes, there->memory.peak[FSDP_PARAM_FULL],
                             "at once; not less than with one unit");
    }
    if (gathers_of(rank) <= gathers_of(there)) {
        return finding_count(f, finding_at("all-gather", 0, -1, k),
                             gathers_of(rank), gathers_of(there),
                             "all-gathers; not more than with one unit");
    }
    return true;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_ranks(e, r, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    const struct record *other = compare_companion(e, change);
    struct record_rank *rank = compare_rank_to_spoil(r, 0);

    if (rank == NULL || other == NULL || compare_rank(other, 0) == NULL) {
        return false;
    }
    rank->memory.peak[FSDP_PARAM_FULL] =
        other->rank[0].memory.peak[FSDP_PARAM_FULL];
    return true;
}

REQUIREMENT(memory_wrap_trade_off) = {
    .id = "memory.wrap-trade-off",
    .text = "Wrapped by layer, a model holds fewer unsharded bytes at "
            "once and makes more all-gathers than wrapped as one unit.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_MEMORY,
    .needs = "memory.peak-unsharded comm.all-gather-count",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
