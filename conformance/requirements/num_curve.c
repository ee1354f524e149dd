/* SPDX-License-Identifier: Apache-2.0 */
/*
 * num_curve.c - the headline: sharding changes where values are, and no value.
 */
#include "judge/compare/compare.h"

static bool applies(const struct expect *e)
{
    return compare_case_trains(e) && e->c->scenario != CASE_CANCEL &&
           e->c->scenario != CASE_MISUSE;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_curves(e, r, e->baseline, compare_n_losses(e), f);
}

REQUIREMENT(num_curve) = {
    .id = "num.curve",
    .text = "The loss curve, folded over ranks, equals the unsharded "
            "baseline's at every microbatch, bit for bit.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "num.loss-finite grad.local reduce.baseline step.state "
             "step.weights",
    .profile = PROFILE_BITS,
    .applies = applies,
    .holds = holds,
    .spoil = compare_spoil_curve,
};
