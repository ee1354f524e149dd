/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error_load_in_pass.c - weights that change under a pass.
 */
#include "judge/compare/compare.h"

static const struct compare_answer answers[] = {
    {"load-in-pass", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
};

enum {
    N_ANSWERS = sizeof(answers) / sizeof(answers[0])
};

static bool applies(const struct expect *e)
{
    return case_resumes(e->c) && e->c->recorded_steps > 0;
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

REQUIREMENT(error_load_in_pass) = {
    .id = "error.load-in-pass",
    .text = "A load in a pass is refused as INVALID.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_ERRORS,
    .needs = "run.survives run.ranks-present",
    .claim = "load",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
