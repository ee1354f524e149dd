/* SPDX-License-Identifier: Apache-2.0 */
/*
 * invariance_requirements.c - differences between cases that must not change
 * the curve: other cases give the same.
 */
#include "requirements/families.h"

#include "cases/case_precision.h"
#include "judge/compare/compare_checks.h"

#include <string.h>

/* Whether gradients are divided by nothing but the world. */
static bool has_usual_factors(const struct expect *e)
{
    return e->c->factors == CASE_USUAL_FACTORS;
}

/*
 * num.exact-world-invariance: with values that every order of summation adds up
 * exactly, the number of ranks cannot show. Only linear stays exact beyond the
 * first step, and only powers of two divide exactly.
 */
static bool is_exact(const struct expect *e)
{
    return has_usual_factors(e) && compare_case_trains(e) &&
           e->c->data == WORKLOAD_EXACT && e->c->ranks > 1 &&
           (e->c->ranks & (e->c->ranks - 1)) == 0 &&
           !(e->c->divide_factor != 0.0f);
}

static bool is_linear(const struct expect *e)
{
    return strcmp(e->c->workload, "linear") == 0;
}

static bool exact_world_invariance_of_part(const struct expect *e,
                                           const struct record *r,
                                           const struct compare_part *part,
                                           struct finding *f)
{
    const struct record *one = compare_companion_single(e);

    return compare_equal(
        e, part, RECORD_FINAL, compare_values(r, RECORD_FINAL, part),
        compare_values_in_whole(e, one, 0, RECORD_FINAL, part), f);
}

static bool exact_world_invariance_holds(const struct expect *e,
                                         const struct record *r,
                                         struct finding *f)
{
    const struct record *one = compare_companion_single(e);

    if (!is_linear(e)) {
        return compare_curves(e, r, one, 1, f);
    }
    return compare_curves(e, r, one, compare_n_losses(e), f) &&
           (!compare_case_staged(e) ||
            compare_parts(e, r, e->c->steps, e->c->steps + 1,
                          exact_world_invariance_of_part, f));
}

static bool exact_world_invariance_spoil(const struct expect *e,
                                         struct record *r)
{
    struct record_rank *rank = compare_rank_to_spoil(r, 0);

    (void)e;
    if (!rank || !rank->loss || rank->n_losses == 0) {
        return false;
    }
    rank->loss[0] = 2.0f * rank->loss[0] + 64.0f;
    return true;
}

/*
 * num.replicated-single: the seed experiment: ranks that all have one batch
 * train like one rank.
 */

/* K equal values, folded and divided by K, are the value again: the fold's
 * roundings cancel for 2 and 4, in every order. */
static bool is_replicated(const struct expect *e)
{
    return compare_case_trains(e) && e->c->data == WORKLOAD_REPLICATED &&
           (e->c->ranks == 2 || e->c->ranks == 4) && has_usual_factors(e) &&
           !(e->c->divide_factor != 0.0f);
}

/*
 * num.tree-world-invariance: the tree fold is made so that the number of ranks
 * does not show. (Not so in 16 bits, where each rank rounds its sum, nor with
 * tied parameters, whose uses are added up on each rank before ranks meet.)
 */
static bool folds_as_tree(const struct expect *e)
{
    return compare_case_trains(e) && e->c->fold == FSDP_FOLD_TREE &&
           e->c->precision == CASE_F32 && !case_is_tied(e->c) &&
           e->c->ranks > 1 && has_usual_factors(e) &&
           !(e->c->divide_factor != 0.0f);
}

/*
 * num.prefetch-invariance: how far an engine runs ahead is a matter of time
 * alone.
 */
static void run_strictly(struct run_case *c)
{
    c->prefetch_forward = 0;
    c->prefetch_backward = 0;
    c->reduces_in_flight = 0;
}

static bool runs_ahead(const struct expect *e)
{
    return compare_case_trains(e) && !compare_case_strict(e);
}

/*
 * num.reshard-invariance: resharding a unit after forward changes memory alone.
 */
static void reshard(struct run_case *c)
{
    c->strategy =
        c->strategy == CASE_SHARD_GRAD_OP ? CASE_FULL_SHARD : CASE_HYBRID_SHARD;
}

static bool keeps_unsharded(const struct expect *e)
{
    return compare_case_trains(e) &&
           (e->c->strategy == CASE_SHARD_GRAD_OP ||
            e->c->strategy == CASE_HYBRID_SHARD_ZERO2);
}

/*
 * num.wrap-invariance: which parameters are gathered together changes memory
 * alone. (Left out are the ring fold, where the owner of an element, and so the
 * order of its sum, depends on the flat parameter; and units with dtypes or
 * factors of their own, which change the arithmetic.)
 */
static void wrap_whole(struct run_case *c)
{
    c->scenario = CASE_TRAIN;
    c->wrap = CASE_WRAP_WHOLE;
    c->keep_root = 0;
    c->prefetch_forward = 0;
    c->prefetch_backward = 0;
    c->reduces_in_flight = 0;
}

static bool is_wrapped(const struct expect *e)
{
    return compare_case_trains(e) && e->c->wrap != CASE_WRAP_WHOLE &&
           e->c->fold != FSDP_FOLD_RING && !e->any_fold &&
           !case_has_units_dtypes(e->c) && e->c->factors != CASE_UNIT_FACTORS;
}

const struct requirement invariance_requirements[] = {
    {.since = "1.0", .must = 1, .level = LEVEL_STEP, .needs = "num.curve"},
    {.id = "num.exact-world-invariance",
     .text = "On exact data, for powers of two, curve and final weights are "
             "those of one rank, bit for bit (beyond linear: the first step's "
             "loss).",
     .applies = is_exact,
     .holds = exact_world_invariance_holds,
     .spoil = exact_world_invariance_spoil,
     .check = &check_curve_of_single},
    {.id = "num.replicated-single",
     .text = "On replicated data 2 and 4 ranks have the curve of one, bit for "
             "bit.",
     .applies = is_replicated,
     .check = &check_curve_of_single},
    {.id = "num.tree-world-invariance",
     .text = "Under the tree fold the curve is that of one rank, bit for bit.",
     .applies = folds_as_tree,
     .check = &check_curve_of_single},
    {.id = "num.prefetch-invariance",
     .text = "With prefetch and reductions in flight the curve is that of the "
             "strict profile, bit for bit.",
     .applies = runs_ahead,
     .check = &check_curve_of,
     .change = run_strictly},
    {.id = "num.reshard-invariance",
     .text = "Strategies that keep units unsharded after forward give the "
             "curve of those that do not, bit for bit.",
     .applies = keeps_unsharded,
     .check = &check_curve_of,
     .change = reshard},
    {.id = "num.wrap-invariance",
     .text = "Under the rank and tree folds the curve is that of the model "
             "wrapped as one unit, bit for bit.",
     .applies = is_wrapped,
     .check = &check_curve_of,
     .change = wrap_whole},
    {0},
};
