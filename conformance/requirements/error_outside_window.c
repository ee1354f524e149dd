/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error_outside_window.c - storage that is lent outside its window is stale.
 */
#include "judge/compare/compare.h"

static const struct compare_answer answers[] = {
    {"param-at-rest", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
};

enum {
    N_ANSWERS = sizeof(answers) / sizeof(answers[0])
};

static bool applies(const struct expect *e)
{
    return e->c->scenario == CASE_MISUSE && e->shards > 1;
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

REQUIREMENT(error_outside_window) = {
    .id = "error.outside-window",
    .text = "A parameter of a unit that is sharded at that moment is "
            "refused as INVALID.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_ERRORS,
    .needs = "run.survives run.ranks-present",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
