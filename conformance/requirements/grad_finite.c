/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grad_finite.c - poison of dead storage is NaN: a gradient that is not finite
 * was computed from something stale.
 */
#include "judge/compare/compare.h"

#include <math.h>

static bool check(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f)
{
    const float *got = compare_values(r, RECORD_LOCAL_GRADIENT, part);

    if (got == NULL) {
        return compare_missing(part, RECORD_LOCAL_GRADIENT, f);
    }
    for (uint64_t i = 0; i < part->n; i++) {
        if (!isfinite(got[i])) {
            struct finding at = finding_at("local-gradient", part->step,
                                           part->microbatch, part->rank);

            at.parameter = part->parameter;
            at.unit = part->unit;
            at.element = (int64_t)i;
            return finding_bits(f, at, got[i], 0.0f, "not finite");
        }
    }
    (void)e;
    return true;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_gradients(e, r, 0, compare_recorded_steps(e), check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    struct record_tensor *t =
        compare_tensor_to_spoil(r, RECORD_LOCAL_GRADIENT, 0);

    (void)e;
    if (t == NULL) {
        return false;
    }
    t->data[0] = NAN;
    return true;
}

REQUIREMENT(grad_finite) = {
    .id = "grad.finite",
    .text = "Every local gradient is recorded and finite.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_GRADIENT,
    .needs = "gather.unsharded-values gather.sees-updated-weights",
    .applies = compare_case_staged,
    .holds = holds,
    .spoil = spoil,
};
