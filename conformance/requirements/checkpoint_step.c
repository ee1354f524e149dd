/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_step.c - the bias correction goes on where it was, and does not
 * begin anew.
 */
#include "judge/replay/replay.h"

static bool applies(const struct expect *e)
{
    return case_resumes(e->c) && e->c->recorded_steps > e->c->steps / 2 &&
           e->c->optimizer == FSDP_OPTIMIZER_ADAMW;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_parts(e, r, e->c->steps / 2, e->c->steps / 2 + 1,
                         replay_compare_step, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    return compare_spoil_stage(r, RECORD_AFTER, e->c->steps / 2);
}

REQUIREMENT(checkpoint_step) = {
    .id = "checkpoint.step",
    .text = "The first step after a load continues the running products of "
            "the betas that were saved, bit for bit.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "checkpoint.parameters checkpoint.moments "
             "step.weights-untouched",
    .claim = "load",
    .profile = PROFILE_BITS,
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
