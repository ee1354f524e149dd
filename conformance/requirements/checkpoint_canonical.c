/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_canonical.c - equal states are equal files, so
 * that checkpoints can be compared, and stored once.
 */
#include "judge/compare/compare.h"

static const struct compare_answer answers[] = {
    {"saved-again", FSDP_OK, FSDP_OK},
};

enum {
    N_ANSWERS = sizeof(answers) / sizeof(answers[0])
};

static bool applies(const struct expect *e)
{
    return e->c->scenario >= CASE_RESUME && e->c->scenario <= CASE_RESUME_LOCAL;
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

REQUIREMENT(checkpoint_canonical) = {
    .id = "checkpoint.canonical",
    .text = "Saving what was just loaded writes the same files with the "
            "same bytes.",
    .since = "1.0",
    .must = 0,
    .level = LEVEL_STEP,
    .needs = "run.survives run.ranks-present",
    .claim = "load",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
