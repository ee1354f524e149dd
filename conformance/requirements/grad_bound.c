/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grad_bound.c - another arithmetic rounds otherwise, but computes the same
 * gradient.
 */
#include "judge/replay/bounds.h"

static bool check(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f)
{
    const float *want = NULL;

    if (e->baseline != NULL) {
        want = compare_values_in_whole(e, e->baseline, part->rank,
                                       RECORD_LOCAL_GRADIENT, part);
    }
    return bounds_part(e, part, RECORD_LOCAL_GRADIENT,
                       compare_values(r, RECORD_LOCAL_GRADIENT, part), want,
                       part->step, f);
}

/* A step that starts from other weights has its fault earlier. */
static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    for (uint32_t t = 0; t < compare_recorded_steps(e); t++) {
        if (t > 0 && !bounds_start_alike(e, r, t)) {
            return true;
        }
        if (!compare_whole(e, r, t, t + 1, check, f)) {
            return false;
        }
    }
    return true;
}

static bool spoil(const struct expect *e, struct record *r)
{
    (void)e;
    return bounds_spoil(r, RECORD_LOCAL_GRADIENT, 0);
}

REQUIREMENT(grad_bound) = {
    .id = "grad.bound",
    .text = "In an arithmetic of its own, from the weights of the baseline, "
            "every rank and microbatch gets the baseline's local gradient "
            "within the bound of roundings.",
    .since = "1.1",
    .must = 1,
    .level = LEVEL_GRADIENT,
    .needs = "layout.initial-values gather.unsharded-values "
             "gather.sees-updated-weights grad.finite grad.distinct",
    .profile = PROFILE_BOUND,
    .applies = compare_case_staged,
    .holds = holds,
    .spoil = spoil,
};
