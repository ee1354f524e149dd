/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error_unknown_index.c - an index from outside is checked before it is used.
 */
#include "judge/compare/compare.h"

static const struct compare_answer answers[] = {
    {"unknown-module", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
    {"unknown-parameter", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
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

REQUIREMENT(error_unknown_index) = {
    .id = "error.unknown-index",
    .text = "Modules and parameters that the model does not have are "
            "refused as INVALID.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_ERRORS,
    .needs = "run.survives run.ranks-present",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
