/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grad_local.c - what the model computes inside a window depends on weights
 * and data alone.
 */
#include "judge/compare/compare.h"

static bool check(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f)
{
    struct compare_part own = *part;
    const float *want = NULL;

    own.any_zero = e->profile == EXPECT_OWN;
    if (e->baseline != NULL) {
        want = compare_values_in_whole(e, e->baseline, part->rank,
                                       RECORD_LOCAL_GRADIENT, part);
    }
    return compare_equal(e, &own, RECORD_LOCAL_GRADIENT,
                         compare_values(r, RECORD_LOCAL_GRADIENT, part), want,
                         f);
}

/* A step that starts from other weights has its fault earlier. */
static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    for (uint32_t t = 0; t < compare_recorded_steps(e); t++) {
        if (t > 0 && !compare_starts_alike(e, r, t)) {
            return true;
        }
        if (!compare_gradients(e, r, t, t + 1, check, f)) {
            return false;
        }
    }
    return true;
}

static bool spoil(const struct expect *e, struct record *r)
{
    (void)e;
    return compare_spoil_stage(r, RECORD_LOCAL_GRADIENT, 0);
}

REQUIREMENT(grad_local) = {
    .id = "grad.local",
    .text = "From the weights of the baseline every rank and microbatch "
            "gets the local gradient that the baseline gets, bit for "
            "bit.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_GRADIENT,
    .needs = "layout.initial-values gather.unsharded-values "
             "gather.sees-updated-weights grad.finite grad.distinct",
    .profile = PROFILE_BITS,
    .applies = compare_case_staged,
    .holds = holds,
    .spoil = spoil,
};
