/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error_after_cancel.c - a cancelled pass is over: the engine is at rest.
 */
#include "judge/compare/compare.h"

static const struct compare_answer answers[] = {
    {"param-after-cancel", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
    {"grad-after-cancel", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
};

enum {
    N_ANSWERS = sizeof(answers) / sizeof(answers[0])
};

static bool applies(const struct expect *e)
{
    return e->c->scenario == CASE_CANCEL;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_answers(e, r, answers, N_ANSWERS, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    (void)e;
    return compare_spoil_answers(r, answers, N_ANSWERS);
}

REQUIREMENT(error_after_cancel) = {
    .id = "error.after-cancel",
    .text = "After CANCEL parameters and gradients are refused as INVALID.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_ERRORS,
    .needs = "run.survives run.ranks-present",
    .claim = "cancel",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
