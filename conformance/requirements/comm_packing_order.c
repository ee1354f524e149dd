/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_packing_order.c - an engine may pack a unit as it likes and unpack it
 * alike, and no value shows it; but the ring's fold across replicas, and
 * another engine that reads its messages, go by the place of an element.
 */
#include "judge/compare/compare.h"

static bool applies(const struct expect *e)
{
    return compare_case_staged(e) && e->shards > 1;
}

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    uint64_t got = rank->memory.misplaced;

    (void)e;
    return got == 0 ||
           finding_count(f, finding_at("wire", 0, -1, k), got, 0,
                         "elements in the first all-gathers that are not at "
                         "their place: shards in the order of ranks, in each "
                         "the parameters in the model's order");
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
    rank->memory.misplaced++;
    return true;
}

REQUIREMENT(comm_packing_order) = {
    .id = "comm.packing-order",
    .text = "What is gathered first is every element's initial value, where "
            "the layout has it: shards in the order of ranks, in each a "
            "unit's parameters in the model's order.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_COMM,
    .needs = "layout.initial-values gather.unsharded-values "
             "comm.message-size comm.order",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
