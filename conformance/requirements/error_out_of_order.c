/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error_out_of_order.c - a model that leaves its call sequence would compute
 * with the wrong units.
 */
#include "judge/compare/compare.h"

static const struct compare_answer answers[] = {
    {"point-out-of-order", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
    {"point-before-begin", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
    {"begin-twice", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
    {"end-early", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
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

REQUIREMENT(error_out_of_order) = {
    .id = "error.out-of-order",
    .text = "Points that are not the next ones of the sequence are "
            "refused as INVALID.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_ERRORS,
    .needs = "run.survives run.ranks-present",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
