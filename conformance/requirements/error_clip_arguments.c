/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error_clip_arguments.c - a norm that is 0 or no number would make gradients
 * 0 or no numbers; and within a pass there are none to be clipped.
 */
#include "judge/compare/compare.h"

static const struct compare_answer answers[] = {
    {"clip-in-pass", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
    {"clip-to-zero", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
    {"clip-to-nan", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
    {"clip-by-third", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
};

enum {
    N_ANSWERS = sizeof(answers) / sizeof(answers[0])
};

static bool applies(const struct expect *e)
{
    return e->c->scenario == CASE_CLIP;
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

REQUIREMENT(error_clip_arguments) = {
    .id = "error.clip-arguments",
    .text = "Clipping between BEGIN and END, to a norm of 0 or NaN, or by the "
            "third norm is refused as INVALID.",
    .since = "1.1",
    .must = 1,
    .level = LEVEL_ERRORS,
    .needs = "run.survives run.ranks-present",
    .claim = "clip",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
