/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error_ranks_disagree.c - ranks that were given different options would hang
 * or mix data in the first step.
 */
#include "judge/compare/compare.h"

static const struct compare_answer answers[] = {
    {"shard", FSDP_ERR_MISMATCH, FSDP_ERR_MISMATCH},
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

REQUIREMENT(error_ranks_disagree) = {
    .id = "error.ranks-disagree",
    .text = "When ranks are given different options, shard answers "
            "MISMATCH on every one of them.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_ERRORS,
    .needs = "run.survives run.ranks-present",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
