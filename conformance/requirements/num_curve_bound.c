/* SPDX-License-Identifier: Apache-2.0 */
/*
 * num_curve_bound.c - another arithmetic follows the curve of the unsharded
 * run, as far as rounding lets it, on every rank.
 */
#include "judge/replay/bounds.h"

static bool applies(const struct expect *e)
{
    return compare_case_trains(e) && e->c->scenario != CASE_CANCEL &&
           e->c->scenario != CASE_MISUSE;
}

static bool check(const struct expect *e, const struct record *r, uint64_t i,
                  uint32_t k, struct finding *f)
{
    uint32_t step = (uint32_t)(i / e->c->microbatches);
    struct finding at =
        finding_at("loss", step, (int64_t)(i % e->c->microbatches), k);
    const struct record_rank *got = compare_rank(r, k);
    const struct record_rank *want =
        e->baseline == NULL ? NULL : compare_rank(e->baseline, k);

    if (got == NULL || got->loss == NULL || i >= got->n_losses ||
        want == NULL || want->loss == NULL || i >= want->n_losses) {
        return finding_text(f, at,
                            "this loss or the baseline's is not recorded");
    }
    return bounds_hold(e, &got->loss[i], &want->loss[i], 1, step, at, f);
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    for (uint64_t i = 0; i < compare_n_losses(e); i++) {
        for (uint32_t k = 0; k < e->c->ranks; k++) {
            if (!check(e, r, i, k, f)) {
                return false;
            }
        }
    }
    return true;
}

REQUIREMENT(num_curve_bound) = {
    .id = "num.curve-bound",
    .text = "In an arithmetic of its own every rank's loss of every "
            "microbatch is the baseline's within the bound of roundings.",
    .since = "1.1",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "num.loss-finite grad.bound step.bound clip.scale",
    .profile = PROFILE_BOUND,
    .applies = applies,
    .holds = holds,
    .spoil = compare_spoil_curve,
};
