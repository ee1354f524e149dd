/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error_units_disagree.c - ranks that wrap differently would gather different
 * parameters.
 */
#include "judge/compare/compare.h"

static const struct compare_answer answers[] = {
    {"shard-units", FSDP_ERR_MISMATCH, FSDP_ERR_MISMATCH},
};

enum {
    N_ANSWERS = sizeof(answers) / sizeof(answers[0])
};

static bool applies(const struct expect *e)
{
    return e->c->scenario == CASE_DISAGREE && e->c->ranks > 1;
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

REQUIREMENT(error_units_disagree) = {
    .id = "error.units-disagree",
    .text = "When rank 0 is given other units than the others, shard answers "
            "MISMATCH on every rank.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_ERRORS,
    .needs = "run.survives run.ranks-present",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
