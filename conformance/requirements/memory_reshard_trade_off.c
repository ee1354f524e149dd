/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_reshard_trade_off.c - resharding after forward buys memory with a
 * second all-gather.
 */
#include "judge/compare/compare_memory.h"

static void change(struct run_case *c)
{
    c->strategy = CASE_SHARD_GRAD_OP;
}

static bool applies(const struct expect *e)
{
    return compare_case_communicates(e) && compare_case_strict(e) &&
           e->c->scenario != CASE_SUMMON && e->c->strategy == CASE_FULL_SHARD &&
           e->c->wrap == CASE_WRAP_LAYER && e->c->keep_root == 0 &&
           e->units->n_units > 1 && compare_companion(e, change) != NULL;
}

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    return compare_trade_off(e, rank, k, change, "without resharding", f);
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_ranks(e, r, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    return compare_spoil_trade_off(e, r, change);
}

REQUIREMENT(memory_reshard_trade_off) = {
    .id = "memory.reshard-trade-off",
    .text = "A model wrapped by layer and resharded after forward holds "
            "fewer unsharded bytes at once and makes more all-gathers "
            "than one that is not.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_MEMORY,
    .needs = "memory.peak-unsharded comm.all-gather-count",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
