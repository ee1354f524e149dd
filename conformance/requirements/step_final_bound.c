/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_final_bound.c - another arithmetic ends with the weights of the
 * unsharded run, as far as rounding lets it.
 */
#include "judge/replay/bounds.h"

static bool check(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f)
{
    return bounds_part(e, part, RECORD_FINAL,
                       compare_values(r, RECORD_FINAL, part),
                       compare_baseline(e, RECORD_FINAL, part), part->step, f);
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_parts(e, r, e->c->steps, e->c->steps + 1, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    (void)e;
    return bounds_spoil(r, RECORD_FINAL, 0);
}

REQUIREMENT(step_final_bound) = {
    .id = "step.final-bound",
    .text = "In an arithmetic of its own the weights after the last step are "
            "the baseline's within the bound of roundings.",
    .since = "1.1",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "step.bound num.curve-bound clip.scale",
    .profile = PROFILE_BOUND,
    .applies = compare_case_staged,
    .holds = holds,
    .spoil = spoil,
};
