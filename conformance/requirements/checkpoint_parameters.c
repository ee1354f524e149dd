/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_parameters.c - what was saved comes back, to whoever loads it. A
 * step was trained between the beginning of the save and its end.
 */
#include "judge/compare/compare.h"

static bool applies(const struct expect *e)
{
    return case_resumes(e->c) && e->c->recorded_steps > e->c->steps / 2;
}

static bool check(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f)
{
    struct compare_part saved = *part;
    struct compare_part own = *part;

    saved.step = part->step - 1;
    own.own = true;
    return compare_equal(e, &own, RECORD_LOADED,
                         compare_values(r, RECORD_LOADED, part),
                         compare_values(r, RECORD_AFTER, &saved), f);
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_parts(e, r, e->c->steps / 2, e->c->steps / 2 + 1, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    (void)e;
    return compare_spoil_stage(r, RECORD_LOADED, 0);
}

REQUIREMENT(checkpoint_parameters) = {
    .id = "checkpoint.parameters",
    .text = "After a load a rank holds the parameters as they were when the "
            "save began, bit for bit, whoever saved them.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "layout.chunk-rule",
    .claim = "load",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
