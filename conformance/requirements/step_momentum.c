/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_momentum.c - the optimizer, element by element: v = fma(mu, v, g), w =
 * fma(-lr, v, w).
 */
#include "judge/replay/replay.h"

static bool applies(const struct expect *e)
{
    return compare_case_staged(e) && e->c->optimizer == FSDP_OPTIMIZER_MOMENTUM;
}

static bool spoil(const struct expect *e, struct record *r)
{
    (void)e;
    return compare_spoil_stage(r, RECORD_STATE0, 0);
}

REQUIREMENT(step_momentum) = {
    .id = "step.momentum",
    .text = "Weights and velocity after the step follow from weights, "
            "reduced gradient and velocity before it by the formula of "
            "op.h, bit for bit.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "step.every-element-changes step.weights-untouched "
             "checkpoint.moments",
    .claim = "momentum",
    .profile = PROFILE_BITS,
    .applies = applies,
    .holds = replay_steps_hold,
    .spoil = spoil,
};
