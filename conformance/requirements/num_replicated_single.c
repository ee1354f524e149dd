/* SPDX-License-Identifier: Apache-2.0 */
/*
 * num_replicated_single.c - the seed experiment: ranks that all have one batch
 * train like one rank.
 */
#include "judge/compare/compare.h"

/* K equal values, folded and divided by K, are the value again: the fold's
 * roundings cancel for 2 and 4, in every order. */
static bool applies(const struct expect *e)
{
    return compare_case_trains(e) && e->c->data == WORKLOAD_REPLICATED &&
           (e->c->ranks == 2 || e->c->ranks == 4) &&
           !(e->c->divide_factor != 0.0f) &&
           compare_companion_single(e) != NULL;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_curves(e, r, compare_companion_single(e),
                          compare_n_losses(e), f);
}

REQUIREMENT(num_replicated_single) = {
    .id = "num.replicated-single",
    .text = "On replicated data 2 and 4 ranks have the curve of one, "
            "bit for bit.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "num.curve",
    .applies = applies,
    .holds = holds,
    .spoil = compare_spoil_curve,
};
