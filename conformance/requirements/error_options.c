/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error_options.c - options that do not fit are found when sharding, not in
 * the middle of a run.
 */
#include "judge/compare/compare.h"

static const struct compare_answer answers[] = {

    {"unknown-layout", FSDP_ERR_INVALID, FSDP_ERR_UNSUPPORTED},
    {"unknown-optimizer", FSDP_ERR_INVALID, FSDP_ERR_UNSUPPORTED},
    {"unknown-fold", FSDP_ERR_INVALID, FSDP_ERR_UNSUPPORTED},
    {"unit-out-of-range", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
    {"negative-divide-factor", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
    {"nan-divide-factor", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
    {"group-out-of-range", FSDP_ERR_INVALID, FSDP_ERR_UNSUPPORTED},
    {"mesh-does-not-divide", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
    {"shards-do-not-divide", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
};

enum {
    N_ANSWERS = sizeof(answers) / sizeof(answers[0])
};

static bool applies(const struct expect *e)
{
    return e->c->scenario == CASE_OPTIONS;
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

REQUIREMENT(error_options) = {
    .id = "error.options",
    .text = "Each option that does not fit is refused by shard, with "
            "INVALID, or UNSUPPORTED where it may be a matter of "
            "claims.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_ERRORS,
    .needs = "run.survives run.ranks-present",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
