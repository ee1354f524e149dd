/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce_replicas_equal.c - replicas meet in the all-reduce; without it they
 * drift apart unseen.
 */
#include "judge/compare/compare.h"

static bool applies(const struct expect *e)
{
    return compare_case_staged(e) && e->replicas > 1;
}

static bool check(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f)
{
    return !e->trained[part->unit] ||
           compare_replica(e, r, part, RECORD_REDUCED, f);
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_parts(e, r, 0, compare_recorded_steps(e), check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    (void)e;
    return compare_spoil_stage(r, RECORD_REDUCED, 0);
}

REQUIREMENT(reduce_replicas_equal) = {
    .id = "reduce.replicas-equal",
    .text = "Before the optimizer all replicas hold identical reduced "
            "gradients.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_REDUCE,
    .needs = "grad.finite layout.chunk-rule",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
