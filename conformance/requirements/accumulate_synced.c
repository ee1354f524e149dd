/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accumulate_synced.c - with sync on, each microbatch is reduced and then
 * added to the gradient shard.
 */
#include "judge/replay/replay.h"

static bool applies(const struct expect *e)
{
    return compare_case_staged(e) && e->c->microbatches > 1 &&
           compare_synced_early(e) == e->c->microbatches - 1;
}

REQUIREMENT(accumulate_synced) = {
    .id = "accumulate.synced",
    .text = "When every microbatch is synchronised, the reduced "
            "gradient is the sum, in order, of their scaled folds; the "
            "scale never meets the sum.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_REDUCE,
    .needs = "grad.finite reduce.scale reduce.replicas-equal",
    .applies = applies,
    .holds = replay_reduced_holds,
    .spoil = replay_spoil_reduced,
};
