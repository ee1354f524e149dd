/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather_unsharded_values.c - an unsharded parameter is the concatenation of
 * its shards.
 */
#include "judge/compare/compare.h"

static bool check(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f)
{
    return !e->seen[part->parameter] ||
           compare_gathered(e, r, part, RECORD_UNSHARDED,
                            compare_values(r, RECORD_INITIAL, part), f);
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_parts(e, r, 0, 1, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    (void)e;
    return compare_spoil_stage(r, RECORD_UNSHARDED, 0);
}

REQUIREMENT(gather_unsharded_values) = {
    .id = "gather.unsharded-values",
    .text = "In the first step every rank's forward sees the values "
            "that the shards hold.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_GATHER,
    .needs = "layout.chunk-rule",
    .applies = compare_case_staged,
    .holds = holds,
    .spoil = spoil,
};
