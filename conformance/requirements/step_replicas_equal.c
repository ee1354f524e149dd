/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_replicas_equal.c - replicas take the same step.
 */
#include "judge/compare/compare.h"

static bool applies(const struct expect *e)
{
    return compare_case_staged(e) && e->replicas > 1;
}

static bool check(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f)
{
    return compare_replica(e, r, part, RECORD_AFTER, f);
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

REQUIREMENT(step_replicas_equal) = {
    .id = "step.replicas-equal",
    .text = "After each step all replicas hold identical weights.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "layout.replicas-equal reduce.replicas-equal step.sgd "
             "step.momentum step.adamw",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
