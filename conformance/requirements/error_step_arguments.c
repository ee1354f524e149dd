/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error_step_arguments.c - the groups of a step are those of the options;
 * finite gradients are none that overflow.
 */
#include "judge/compare/compare.h"

static const struct compare_answer answers[] = {
    {"step-groups", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
    {"found-inf", FSDP_OK, FSDP_OK},
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

REQUIREMENT(error_step_arguments) = {
    .id = "error.step-arguments",
    .text = "A step with other parameter groups than the options is refused as "
            "INVALID, and one with finite gradients finds no infinity.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_ERRORS,
    .needs = "run.survives run.ranks-present",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
