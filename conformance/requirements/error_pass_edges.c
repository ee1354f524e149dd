/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error_pass_edges.c - a pass begins once, ends where its sequence does, and
 * only then.
 */
#include "judge/compare/compare.h"

static const struct compare_answer answers[] = {
    {"cancel-at-rest", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
    {"end-at-rest", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
    {"unknown-sequence", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
    {"point-after-last", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
    {"end-of-another", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
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

REQUIREMENT(error_pass_edges) = {
    .id = "error.pass-edges",
    .text =
        "CANCEL and END at rest, BEGIN of an unknown sequence, a point after "
        "the last and the END of another sequence are refused as INVALID.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_ERRORS,
    .needs = "run.survives run.ranks-present",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
