/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_state.c - the optimizer states of the unsharded run are the reference.
 */
#include "judge/compare/compare.h"

static bool applies(const struct expect *e)
{
    return compare_case_staged(e) && e->c->optimizer != FSDP_OPTIMIZER_SGD;
}

static bool check(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f)
{
    return compare_equal(e, part, RECORD_STATE0,
                         compare_values(r, RECORD_STATE0, part),
                         compare_baseline(e, RECORD_STATE0, part), f) &&
           (e->c->optimizer != FSDP_OPTIMIZER_ADAMW ||
            compare_equal(e, part, RECORD_STATE1,
                          compare_values(r, RECORD_STATE1, part),
                          compare_baseline(e, RECORD_STATE1, part), f));
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_parts(e, r, 0, compare_recorded_steps(e), check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    (void)e;
    return compare_spoil_stage(r, RECORD_STATE0, 0);
}

REQUIREMENT(step_state) = {
    .id = "step.state",
    .text = "After each step the optimizer states equal the baseline's, "
            "bit for bit.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "reduce.baseline step.momentum step.adamw clip.scale",
    .profile = PROFILE_BITS,
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
