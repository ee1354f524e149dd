/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_weights.c - the weights of the unsharded run are the reference.
 */
#include "judge/compare/compare.h"

static bool check(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f)
{
    return compare_equal(e, part, RECORD_AFTER,
                         compare_values(r, RECORD_AFTER, part),
                         compare_baseline(e, RECORD_AFTER, part), f);
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_parts(e, r, 0, compare_recorded_steps(e), check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    (void)e;
    return compare_spoil_stage(r, RECORD_AFTER, 0);
}

REQUIREMENT(step_weights) = {
    .id = "step.weights",
    .text = "After each step the weights equal the baseline's, bit for "
            "bit.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "reduce.baseline step.sgd step.momentum step.adamw "
             "step.replicas-equal gather.same-on-all-ranks clip.scale",
    .profile = PROFILE_BITS,
    .applies = compare_case_staged,
    .holds = holds,
    .spoil = spoil,
};
