/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accumulate_interleaved.c - sync may change from one microbatch to the next.
 */
#include "judge/replay.h"

/* Microbatches that are reduced, but for the last one, which always is. */
static uint32_t n_synced_early(const struct run_case *c)
{
    uint32_t n = 0;

    for (uint32_t b = 0; b + 1 < c->microbatches; b++) {
        n += c->sync[b] != 0;
    }
    return n;
}

static bool applies(const struct expect *e)
{
    return compare_case_staged(e) && n_synced_early(e->c) > 0 &&
           n_synced_early(e->c) < e->c->microbatches - 1;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_parts(e, r, 0, compare_recorded_steps(e),
                         replay_compare_reduced, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    return replay_spoil_reduced(e, r);
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
    .holds = holds,
    .spoil = spoil,
};
