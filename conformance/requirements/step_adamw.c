/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_adamw.c - the optimizer, element by element: two moments, their running
 * products, decoupled decay.
 */
#include "judge/replay/replay.h"

static bool applies(const struct expect *e)
{
    return compare_case_staged(e) && e->c->optimizer == FSDP_OPTIMIZER_ADAMW;
}

static bool spoil(const struct expect *e, struct record *r)
{
    (void)e;
    return compare_spoil_stage(r, RECORD_STATE1, 0);
}

REQUIREMENT(step_adamw) = {
    .id = "step.adamw",
    .text = "Weights and moments after the step follow from weights, "
            "reduced gradient and moments before it by the formula of "
            "op.h, bit for bit.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "step.every-element-changes step.weights-untouched "
             "checkpoint.moments checkpoint.step",
    .claim = "adamw",
    .profile = PROFILE_BITS,
    .applies = applies,
    .holds = replay_steps_hold,
    .spoil = spoil,
};
