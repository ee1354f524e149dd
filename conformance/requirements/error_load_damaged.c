/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error_load_damaged.c - training on from a flipped bit is worse
 * than not training on.
 */
#include "judge/compare/compare.h"

static const struct compare_answer answers[] = {
    {"load-missing", FSDP_ERR_IO, FSDP_ERR_FORMAT},
    {"load-damaged", FSDP_ERR_FORMAT, FSDP_ERR_IO},
};

enum {
    N_ANSWERS = sizeof(answers) / sizeof(answers[0])
};

static bool applies(const struct expect *e)
{
    return case_resumes(e->c);
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

REQUIREMENT(error_load_damaged) = {
    .id = "error.load-damaged",
    .text = "A checkpoint that is not there, or of which one bit has "
            "turned, is refused on every rank.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_ERRORS,
    .needs = "run.survives run.ranks-present",
    .claim = "load",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
