/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error_misuse_harmless.c - a call that is refused has changed nothing.
 */
#include "judge/compare.h"

static void change(struct run_case *c)
{
    c->scenario = CASE_TRAIN;
}

static bool applies(const struct expect *e)
{
    return e->c->scenario == CASE_MISUSE;
}

/* The same case without the interruption, if this run has it, so that an
 * engine whose curve is wrong anyhow is not blamed here again. */
static const struct record *reference(const struct expect *e)
{
    const struct record *other = compare_companion(e, change);

    return other != NULL ? other : e->baseline;
}

static bool check(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f)
{
    const struct record *other = reference(e);
    const float *want;

    if (other == e->baseline) {
        want = compare_baseline(e, RECORD_FINAL, part);
    } else {
        want = compare_values(other, RECORD_FINAL, part);
    }
    return compare_equal(e, part, RECORD_FINAL,
                         compare_values(r, RECORD_FINAL, part), want, f);
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_curves(e, r, reference(e), compare_n_losses(e), f) &&
           (compare_recorded_steps(e) == 0 ||
            compare_parts(e, r, e->c->steps, e->c->steps + 1, check, f));
}

static bool spoil(const struct expect *e, struct record *r)
{
    (void)e;
    return compare_spoil_curve(r);
}

REQUIREMENT(error_misuse_harmless) = {
    .id = "error.misuse-harmless",
    .text = "After wrong calls losses and final weights are those of a "
            "run without them, bit for bit.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_ERRORS,
    .needs = "num.loss-finite error.outside-window "
             "error.gradient-outside-backward error.out-of-order "
             "error.unknown-index error.step-in-pass "
             "error.pieces-in-pass error.step-with-pending",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
