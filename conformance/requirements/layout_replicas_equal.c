/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout_replicas_equal.c - replicas that start apart never meet again.
 */
#include "judge/compare/compare.h"

static bool applies(const struct expect *e)
{
    return compare_case_staged(e) && e->replicas > 1;
}

static bool check(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f)
{
    return compare_replica(e, r, part, RECORD_INITIAL, f);
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_parts(e, r, 0, 1, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    (void)e;
    return compare_spoil_stage(r, RECORD_INITIAL, 0);
}

REQUIREMENT(layout_replicas_equal) = {
    .id = "layout.replicas-equal",
    .text = "All replicas start with identical shards.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_LAYOUT,
    .needs = "layout.chunk-rule",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
