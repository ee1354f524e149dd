/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error_step_with_pending.c - a step while gradients wait for their reduction
 * would drop them.
 */
#include "judge/compare/compare.h"

static bool has_unsynced(const struct run_case *c)
{
    for (uint32_t b = 0; b < c->microbatches; b++) {
        if (c->sync[b] == 0) {
            return true;
        }
    }
    return false;
}

static const struct compare_answer answers[] = {
    {"step-with-pending", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
};

enum {
    N_ANSWERS = sizeof(answers) / sizeof(answers[0])
};

static bool applies(const struct expect *e)
{
    return e->c->scenario == CASE_MISUSE && has_unsynced(e->c);
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

REQUIREMENT(error_step_with_pending) = {
    .id = "error.step-with-pending",
    .text = "A step of the optimizer while unreduced gradients are "
            "pending is refused as INVALID.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_ERRORS,
    .needs = "run.survives run.ranks-present",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
