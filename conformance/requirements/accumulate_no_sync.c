/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accumulate_no_sync.c - microbatches without sync add up on their rank before
 * ranks meet.
 */
#include "judge/replay/replay.h"

static bool applies(const struct expect *e)
{
    return compare_case_staged(e) && e->c->microbatches > 1 &&
           compare_synced_early(e) == 0;
}

REQUIREMENT(accumulate_no_sync) = {
    .id = "accumulate.no-sync",
    .text = "When only the last microbatch is synchronised, the reduced "
            "gradient is the fold of what each rank has added up, "
            "scaled once.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_REDUCE,
    .needs = "grad.finite reduce.scale reduce.replicas-equal",
    .claim = "no-sync",
    .applies = applies,
    .holds = replay_reduced_holds,
    .spoil = replay_spoil_reduced,
};
