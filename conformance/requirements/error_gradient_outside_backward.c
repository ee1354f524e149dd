/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error_gradient_outside_backward.c - a gradient has storage only while its
 * module is in its backward.
 */
#include "judge/compare/compare.h"

static const struct compare_answer answers[] = {
    {"grad-at-rest", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
    {"grad-in-forward", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
};

enum {
    N_ANSWERS = sizeof(answers) / sizeof(answers[0])
};

static bool applies(const struct expect *e)
{
    return e->c->scenario == CASE_MISUSE;
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

REQUIREMENT(error_gradient_outside_backward) = {
    .id = "error.gradient-outside-backward",
    .text = "Gradients outside their module's backward are refused as "
            "INVALID.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_ERRORS,
    .needs = "run.survives run.ranks-present",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
