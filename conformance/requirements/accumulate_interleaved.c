/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accumulate_interleaved.c - sync may change from one microbatch to the next.
 */
#include "judge/replay/replay.h"

static bool applies(const struct expect *e)
{
    return compare_case_staged(e) && compare_synced_early(e) > 0 &&
           compare_synced_early(e) < e->c->microbatches - 1;
}

REQUIREMENT(accumulate_interleaved) = {
    .id = "accumulate.interleaved",
    .text = "When some microbatches are synchronised and some not, each "
            "fold takes what has added up since the last one, and folds "
            "add up in order.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_REDUCE,
    .needs = "grad.finite reduce.scale reduce.replicas-equal",
    .claim = "no-sync",
    .applies = applies,
    .holds = replay_reduced_holds,
    .spoil = replay_spoil_reduced,
};
