/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather_sees_updated_weights.c - an unsharded copy kept from the last step is
 * stale.
 */
#include "judge/compare/compare.h"

static bool applies(const struct expect *e)
{
    return compare_case_staged(e) && compare_recorded_steps(e) > 1;
}

static bool check(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f)
{
    struct compare_part earlier = *part;
    struct compare_part own = *part;

    earlier.step = part->step - 1;
    own.own = true;
    return !e->seen[part->parameter] ||
           compare_gathered(e, r, &own, RECORD_UNSHARDED,
                            compare_values(r, RECORD_AFTER, &earlier), f);
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_parts(e, r, 1, compare_recorded_steps(e), check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    (void)e;
    return compare_spoil_stage(r, RECORD_UNSHARDED, 1);
}

REQUIREMENT(gather_sees_updated_weights) = {
    .id = "gather.sees-updated-weights",
    .text = "From the second step on every forward sees the weights "
            "that the step before has made.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_GATHER,
    .needs = "gather.unsharded-values step.weights-untouched",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
