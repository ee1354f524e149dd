/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_moments.c - the optimizer's states come back with the parameters
 * that they belong to: the first forward after a load does not show it, the
 * steps after it do.
 */
#include "judge/compare/compare.h"

static bool applies(const struct expect *e)
{
    return case_resumes(e->c) && e->c->recorded_steps > e->c->steps / 2 &&
           e->c->optimizer != FSDP_OPTIMIZER_SGD;
}

static bool check(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f)
{
    struct compare_part saved = *part;
    struct compare_part own = *part;

    saved.step = part->step - 1;
    own.own = true;
    return compare_equal(e, &own, RECORD_LOADED0,
                         compare_values(r, RECORD_LOADED0, part),
                         compare_values(r, RECORD_STATE0, &saved), f) &&
           (e->c->optimizer != FSDP_OPTIMIZER_ADAMW ||
            compare_equal(e, &own, RECORD_LOADED1,
                          compare_values(r, RECORD_LOADED1, part),
                          compare_values(r, RECORD_STATE1, &saved), f));
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_parts(e, r, e->c->steps / 2, e->c->steps / 2 + 1, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    (void)e;
    return compare_spoil_stage(r, RECORD_LOADED0, 0);
}

REQUIREMENT(checkpoint_moments) = {
    .id = "checkpoint.moments",
    .text = "After a load the optimizer's states are those of the same "
            "elements as when the save began, bit for bit.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "layout.chunk-rule",
    .claim = "load",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
