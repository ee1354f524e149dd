/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error_misuse_harmless.c - a call that is refused has changed nothing.
 */
#include "judge/compare/compare.h"

static bool applies(const struct expect *e)
{
    return e->c->scenario == CASE_MISUSE;
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
    .holds = compare_undisturbed,
    .spoil = compare_spoil_curve,
};
