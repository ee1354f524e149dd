/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_sgd.c - the optimizer, element by element: w = fma(-lr, g, w).
 */
#include "judge/replay/replay.h"

static bool applies(const struct expect *e)
{
    return compare_case_staged(e) && e->c->optimizer == FSDP_OPTIMIZER_SGD;
}

static bool spoil(const struct expect *e, struct record *r)
{
    (void)e;
    return compare_spoil_stage(r, RECORD_AFTER, 0);
}

REQUIREMENT(step_sgd) = {
    .id = "step.sgd",
    .text = "Weights after the step follow from weights, reduced "
            "gradient before it by the formula of op.h, bit for bit.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "step.every-element-changes step.weights-untouched",
    .claim = "sgd",
    .profile = PROFILE_BITS,
    .applies = applies,
    .holds = replay_steps_hold,
    .spoil = spoil,
};
