/* SPDX-License-Identifier: Apache-2.0 */
/*
 * num_tree_world_invariance.c - the tree fold is made so that the number of
 * ranks does not show.
 */
#include "judge/compare/compare.h"

static bool applies(const struct expect *e)
{
    return compare_case_trains(e) && e->c->fold == FSDP_FOLD_TREE &&
           e->c->ranks > 1 && !(e->c->divide_factor != 0.0f) &&
           compare_companion_single(e) != NULL;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_curves(e, r, compare_companion_single(e),
                          compare_n_losses(e), f);
}

REQUIREMENT(num_tree_world_invariance) = {
    .id = "num.tree-world-invariance",
    .text = "Under the tree fold the curve is that of one rank, bit for "
            "bit.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "num.curve",
    .applies = applies,
    .holds = holds,
    .spoil = compare_spoil_curve,
};
