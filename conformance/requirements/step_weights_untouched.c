/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_weights_untouched.c - between two steps nobody but the optimizer writes
 * weights.
 */
#include "judge/compare/compare.h"

static bool check(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f)
{
    struct compare_part earlier = *part;
    struct compare_part own = *part;
    uint32_t stage = part->step == 0 ? RECORD_INITIAL : RECORD_AFTER;

    earlier.step = part->step == 0 ? 0 : part->step - 1;
    own.own = true;
    return compare_equal(e, &own, RECORD_BEFORE,
                         compare_values(r, RECORD_BEFORE, part),
                         compare_values(r, stage, &earlier), f);
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_parts(e, r, 0, compare_recorded_steps(e), check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    (void)e;
    return compare_spoil_stage(r, RECORD_BEFORE, 0);
}

REQUIREMENT(step_weights_untouched) = {
    .id = "step.weights-untouched",
    .text = "Before each step a rank holds exactly the weights that the "
            "step before left, and at first the initial ones.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "layout.chunk-rule checkpoint.parameters",
    .applies = compare_case_staged,
    .holds = holds,
    .spoil = spoil,
};
