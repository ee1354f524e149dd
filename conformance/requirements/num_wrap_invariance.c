/* SPDX-License-Identifier: Apache-2.0 */
/*
 * num_wrap_invariance.c - which parameters are gathered together is a matter
 * of memory alone. (The ring fold is left out: there the owner, and so the
 * order, depends on the flat parameter.)
 */
#include "judge/compare/compare.h"

static void change(struct run_case *c)
{
    c->scenario = CASE_TRAIN;
    c->wrap = CASE_WRAP_WHOLE;
    c->keep_root = 0;
    c->prefetch_forward = 0;
    c->prefetch_backward = 0;
    c->reduces_in_flight = 0;
}

static bool applies(const struct expect *e)
{
    return compare_case_trains(e) && e->c->wrap != CASE_WRAP_WHOLE &&
           e->c->fold != FSDP_FOLD_RING && !e->any_fold &&
           compare_companion(e, change) != NULL;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_curves(e, r, compare_companion(e, change),
                          compare_n_losses(e), f);
}

REQUIREMENT(num_wrap_invariance) = {
    .id = "num.wrap-invariance",
    .text = "Under the rank and tree folds the curve is that of the "
            "model wrapped as one unit, bit for bit.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "num.curve",
    .applies = applies,
    .holds = holds,
    .spoil = compare_spoil_curve,
};
