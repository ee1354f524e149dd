/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_wrap_trade_off.c - smaller units lower the peak and cost more
 * messages: the trade-off that wrapping is about.
 */
#include "judge/compare/compare_memory.h"

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

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    return compare_trade_off(e, rank, k, change, "with one unit", f);
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
