/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather_summoned_values.c - unshard_all shows the whole model outside a pass.
 */
#include "judge/compare/compare.h"

static bool applies(const struct expect *e)
{
    return compare_case_staged(e) && e->c->scenario == CASE_SUMMON;
}

static bool check(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f)
{
    return compare_gathered(e, r, part, RECORD_SUMMONED,
                            compare_values(r, RECORD_FINAL, part), f);
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_parts(e, r, e->c->steps, e->c->steps + 1, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    (void)e;
    return compare_spoil_stage(r, RECORD_SUMMONED, 0);
}

REQUIREMENT(gather_summoned_values) = {
    .id = "gather.summoned-values",
    .text = "unshard_all shows every rank the weights that the shards "
            "hold, bit for bit.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_GATHER,
    .needs = "step.final-weights",
    .claim = "unshard-all",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
