/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_bound.c - an optimizer that rounds otherwise: from the record's own
 * weights, gradient and states the formula of op.h gives what it made of them.
 */
#include "judge/replay/bounds.h"
#include "judge/replay/replay.h"

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_parts(e, r, 0, compare_recorded_steps(e), replay_bound_step,
                         f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    (void)e;
    return bounds_spoil(r, RECORD_AFTER, 0);
}

REQUIREMENT(step_bound) = {
    .id = "step.bound",
    .text = "In an arithmetic of its own weights and states after a step "
            "follow from the record's own by the formula of op.h, within the "
            "roundings of that formula.",
    .since = "1.1",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "step.every-element-changes step.weights-untouched",
    .profile = PROFILE_BOUND,
    .applies = compare_case_staged,
    .holds = holds,
    .spoil = spoil,
};
