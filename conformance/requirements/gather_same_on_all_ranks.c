/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather_same_on_all_ranks.c - data parallel ranks compute with one model.
 */
#include "judge/compare/compare.h"

static bool applies(const struct expect *e)
{
    return compare_case_staged(e) && e->c->ranks > 1;
}

static bool check(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f)
{
    /* Weights do not change in a step: its first microbatch is recorded. */
    return part->microbatch > 0 || !e->seen[part->parameter] ||
           compare_equal(
               e, part, RECORD_UNSHARDED,
               compare_values(r, RECORD_UNSHARDED, part),
               compare_values_in_whole(e, r, 0, RECORD_UNSHARDED, part), f);
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_whole(e, r, 0, compare_recorded_steps(e), check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    (void)e;
    return compare_spoil_stage(r, RECORD_UNSHARDED, 0);
}

REQUIREMENT(gather_same_on_all_ranks) = {
    .id = "gather.same-on-all-ranks",
    .text = "All ranks of the world see the same unsharded parameters, "
            "bit for bit.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_GATHER,
    .needs = "gather.unsharded-values gather.sees-updated-weights "
             "layout.replicas-equal step.replicas-equal",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
