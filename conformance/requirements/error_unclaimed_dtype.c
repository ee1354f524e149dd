/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error_unclaimed_dtype.c - what an engine does not claim it refuses rather
 * than gets wrong.
 */
#include "judge/compare/compare.h"

static const struct compare_answer answers[] = {
    {"unclaimed-dtype", FSDP_ERR_UNSUPPORTED, FSDP_ERR_INVALID},
};

static bool applies(const struct expect *e)
{
    return e->c->scenario == CASE_OPTIONS;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return record_claims(r, "bf16") || compare_answers(e, r, answers, 1, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    (void)e;
    return !record_claims(r, "bf16") && compare_spoil_answers(r, answers, 1);
}

REQUIREMENT(error_unclaimed_dtype) = {
    .id = "error.unclaimed-dtype",
    .text = "An engine that does not claim bf16 refuses it when "
            "sharding.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_ERRORS,
    .needs = "run.survives run.ranks-present",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
