/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error_cancel_harmless.c - a pass that is given up half way leaves no
 * gradient, no window and no byte.
 */
#include "judge/compare/compare.h"

static bool applies(const struct expect *e)
{
    return e->c->scenario == CASE_CANCEL;
}

REQUIREMENT(error_cancel_harmless) = {
    .id = "error.cancel-harmless",
    .text = "After cancelled passes losses and final weights are those "
            "of a run without them, bit for bit.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_ERRORS,
    .needs = "num.loss-finite memory.rest-after-step",
    .claim = "cancel",
    .applies = applies,
    .holds = compare_undisturbed,
    .spoil = compare_spoil_curve,
};
