/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_extra.c - a run is more than its weights: where it
 * stands in its data and its curve comes back to each rank, also what only some
 * ranks have.
 */
#include "judge/compare/compare.h"

static const struct compare_answer answers[] = {
    {"extra-position", FSDP_OK, FSDP_OK},
    {"extra-losses", FSDP_OK, FSDP_OK},
    {"extra-of-some-ranks", FSDP_OK, FSDP_OK},
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

REQUIREMENT(checkpoint_extra) = {
    .id = "checkpoint.extra",
    .text = "The caller's own state comes back with a load: each rank's "
            "own, or rank 0's where other ranks saved it.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "run.survives run.ranks-present",
    .claim = "load",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
