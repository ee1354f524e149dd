/* SPDX-License-Identifier: Apache-2.0 */
/*
 * num_exact_world_invariance.c - with values that every order of summation
 * adds up exactly, ranks cannot show. Only linear stays exact beyond the first
 * step, and only powers of two divide exactly.
 */
#include "judge/compare/compare.h"

#include <string.h>

static bool applies(const struct expect *e)
{
    return compare_case_trains(e) && e->c->data == WORKLOAD_EXACT &&
           e->c->ranks > 1 && (e->c->ranks & (e->c->ranks - 1)) == 0 &&
           !(e->c->divide_factor != 0.0f) &&
           compare_companion_single(e) != NULL;
}

static bool is_linear(const struct expect *e)
{
    return strcmp(e->c->workload, "linear") == 0;
}

static bool check(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f)
{
    const struct record *one = compare_companion_single(e);

    return compare_equal(
        e, part, RECORD_FINAL, compare_values(r, RECORD_FINAL, part),
        compare_values_in_whole(e, one, 0, RECORD_FINAL, part), f);
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    const struct record *one = compare_companion_single(e);

    if (!is_linear(e)) {
        return compare_curves(e, r, one, 1, f);
    }
    return compare_curves(e, r, one, compare_n_losses(e), f) &&
           (!compare_case_staged(e) ||
            compare_parts(e, r, e->c->steps, e->c->steps + 1, check, f));
}

static bool spoil(const struct expect *e, struct record *r)
{
    struct record_rank *rank = compare_rank_to_spoil(r, 0);

    (void)e;
    if (rank == NULL || rank->loss == NULL || rank->n_losses == 0) {
        return false;
    }
    rank->loss[0] = 2.0f * rank->loss[0] + 64.0f;
    return true;
}

REQUIREMENT(num_exact_world_invariance) = {
    .id = "num.exact-world-invariance",
    .text = "On exact data, for powers of two, curve and final weights "
            "are those of one rank, bit for bit (beyond linear: the "
            "first step's loss).",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "num.curve",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
