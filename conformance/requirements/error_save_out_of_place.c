/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error_save_out_of_place.c - a checkpoint of half a pass,
 * or without the gradients that there are, is one of no state that a run has.
 */
#include "judge/compare/compare.h"

static const struct compare_answer answers[] = {
    {"save-in-pass", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
    {"save-with-gradients", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
    {"wait-before-save", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
    {"save-twice", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
};

enum {
    N_ANSWERS = sizeof(answers) / sizeof(answers[0])
};

static bool applies(const struct expect *e)
{
    return e->c->scenario >= CASE_RESUME &&
           e->c->scenario <= CASE_RESUME_LOCAL && e->c->recorded_steps > 0;
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

REQUIREMENT(error_save_out_of_place) = {
    .id = "error.save-out-of-place",
    .text = "A save in a pass, with gradients, while another one is under "
            "way, and a wait for none are refused as INVALID.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_ERRORS,
    .needs = "run.survives run.ranks-present",
    .claim = "load",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
