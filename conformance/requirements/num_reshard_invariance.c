/* SPDX-License-Identifier: Apache-2.0 */
/*
 * num_reshard_invariance.c - whether a unit is resharded after forward is a
 * matter of memory alone.
 */
#include "judge/compare/compare.h"

static void change(struct run_case *c)
{
    c->strategy =
        c->strategy == CASE_SHARD_GRAD_OP ? CASE_FULL_SHARD : CASE_HYBRID_SHARD;
}

static bool applies(const struct expect *e)
{
    return compare_case_trains(e) &&
           (e->c->strategy == CASE_SHARD_GRAD_OP ||
            e->c->strategy == CASE_HYBRID_SHARD_ZERO2) &&
           compare_companion(e, change) != NULL;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_curves(e, r, compare_companion(e, change),
                          compare_n_losses(e), f);
}

REQUIREMENT(num_reshard_invariance) = {
    .id = "num.reshard-invariance",
    .text = "Strategies that keep units unsharded after forward give "
            "the curve of those that do not, bit for bit.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "num.curve",
    .applies = applies,
    .holds = holds,
    .spoil = compare_spoil_curve,
};
