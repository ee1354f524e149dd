/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_final_weights.c - what a run is for: the weights it ends with.
 */
#include "judge/compare/compare.h"

static bool check(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f)
{
    return compare_equal(e, part, RECORD_FINAL,
                         compare_values(r, RECORD_FINAL, part),
                         compare_baseline(e, RECORD_FINAL, part), f);
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_parts(e, r, e->c->steps, e->c->steps + 1, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    (void)e;
    return compare_spoil_stage(r, RECORD_FINAL, 0);
}

REQUIREMENT(step_final_weights) = {
    .id = "step.final-weights",
    .text = "After the last step the weights equal the baseline's, bit "
            "for bit.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "step.weights num.curve",
    .profile = PROFILE_BITS,
    .applies = compare_case_staged,
    .holds = holds,
    .spoil = spoil,
};
