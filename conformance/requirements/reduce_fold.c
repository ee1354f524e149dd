/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce_fold.c - gradients of ranks meet in the order that the specification
 * gives.
 */
#include "judge/replay/replay.h"

static bool applies(const struct expect *e)
{
    return compare_case_staged(e) && e->c->microbatches == 1;
}

REQUIREMENT(reduce_fold) = {
    .id = "reduce.fold",
    .text = "A reduced gradient is the fold of the ranks' own local "
            "gradients times 1 / divide factor, bit for bit.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_REDUCE,
    .needs = "grad.finite reduce.scale reduce.replicas-equal",
    .applies = applies,
    .holds = replay_reduced_holds,
    .spoil = replay_spoil_reduced,
};
