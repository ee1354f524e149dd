/* SPDX-License-Identifier: Apache-2.0 */
/*
 * num_prefetch_invariance.c - how far an engine runs ahead is a matter of time
 * alone.
 */
#include "judge/compare/compare.h"

static void change(struct run_case *c)
{
    c->prefetch_forward = 0;
    c->prefetch_backward = 0;
    c->reduces_in_flight = 0;
}

static bool applies(const struct expect *e)
{
    return compare_case_trains(e) && !compare_case_strict(e) &&
           compare_companion(e, change) != NULL;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_curves(e, r, compare_companion(e, change),
                          compare_n_losses(e), f);
}

REQUIREMENT(num_prefetch_invariance) = {
    .id = "num.prefetch-invariance",
    .text = "With prefetch and reductions in flight the curve is that "
            "of the strict profile, bit for bit.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "num.curve",
    .applies = applies,
    .holds = holds,
    .spoil = compare_spoil_curve,
};
