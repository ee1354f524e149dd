/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tied_requirements.c - parameters with several names: one value, one sum of
 * gradients, one place in all that rests, travels and is saved.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"
#include "judge/replay/replay.h"

static bool has_ties(const struct expect *e)
{
    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        if (e->shared[p]) {
            return true;
        }
    }
    return false;
}

static bool trains_ties(const struct expect *e)
{
    return compare_case_staged(e) && has_ties(e);
}

static bool saves_ties(const struct expect *e)
{
    return e->c->scenario >= CASE_RESUME &&
           e->c->scenario <= CASE_RESUME_LOCAL && has_ties(e);
}

/* Whether a forward asks for a parameter by a tied name. */
static bool sees_ties(const struct expect *e)
{
    bool any = false;

    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        any = any || (expect_original(e, p) != p && e->seen[p]);
    }
    return any && compare_case_staged(e);
}

/* Whether some tied parameter has gradients. */
static bool sums_ties(const struct expect *e)
{
    bool any = false;

    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        any = any || (e->shared[p] && e->stepped[p]);
    }
    return any && compare_case_staged(e);
}

/*
 * tied.gradient-sum: asked only of parts of tied parameters. It can go wrong in
 * three ways: a use is lost, is counted twice, or takes the place of another.
 */
static bool gradient_sum_of_part(const struct expect *e, const struct record *r,
                                 const struct compare_part *part,
                                 struct finding *f)
{
    return !e->shared[part->parameter] || replay_compare_reduced(e, r, part, f);
}

static bool is_sum(const struct expect *e, const struct record_tensor *t)
{
    return t->stage == RECORD_REDUCED && e->shared[t->parameter];
}

static bool gradient_sum_spoil(const struct expect *e, struct record *r)
{
    return compare_spoil_value(compare_find_tensor(e, r, is_sum));
}

/* ---- tied.counted-once -------------------------------------------------- */

/* Whether values of this stage are recorded under either name; other stages
 * have only the stored parameter. */
static bool is_of_a_name(uint32_t stage)
{
    return stage == RECORD_UNSHARDED || stage == RECORD_LOCAL_GRADIENT ||
           stage == RECORD_SUMMONED;
}

static bool has_no_piece(const struct expect *e, const struct record_rank *rank,
                         uint32_t k, struct finding *f)
{
    for (uint32_t i = 0; rank->tensor && i < rank->n_tensors; i++) {
        const struct record_tensor *t = &rank->tensor[i];
        struct finding at =
            finding_at(record_stage_name(t->stage), t->step, -1, k);

        if (t->parameter < e->model->n_parameters &&
            expect_original(e, t->parameter) != t->parameter &&
            !is_of_a_name(t->stage)) {
            at.parameter = t->parameter;
            return finding_count(f, at, t->n, 0,
                                 "elements of a piece under a tied name");
        }
    }
    return true;
}

static bool travels_once(const struct expect *e,
                         const struct record_collective *c, uint32_t index,
                         struct finding at, struct finding *f)
{
    (void)index;
    return compare_gather_of_shard(
        e, c, at,
        "elements of an all-gather, a shard; what is tied counts once", f);
}

static bool counted_once_holds(const struct expect *e, const struct record *r,
                               struct finding *f)
{
    return compare_ranks(e, r, has_no_piece, f) &&
           compare_collectives(e, r, travels_once, f);
}

/* Gives the first piece a tied name. */
static bool counted_once_spoil(const struct expect *e, struct record *r)
{
    struct record_tensor *t = compare_tensor_to_spoil(r, RECORD_INITIAL, 0);

    for (uint32_t p = 0; t && p < e->model->n_parameters; p++) {
        if (expect_original(e, p) != p) {
            t->parameter = p;
            return true;
        }
    }
    return false;
}

const struct requirement tied_requirements[] = {
    {.since = "1.1", .must = 1, .claim = "shared"},
    {.id = "tied.one-value",
     .text = "Under each of its names a tied parameter is the same memory.",
     .level = LEVEL_GATHER,
     .needs = "run.survives run.ranks-present",
     .applies = sees_ties,
     .check = &check_answers,
     .answers = {{"tied-memory", FSDP_OK}}},
    {.id = "tied.counted-once",
     .text = "What is tied is in no piece under its other name, and counts "
             "once in what its unit gathers.",
     .level = LEVEL_LAYOUT,
     .needs = "run.shows-every-step",
     .applies = trains_ties,
     .holds = counted_once_holds,
     .spoil = counted_once_spoil},
    {.id = "tied.gradient-sum",
     .text = "The gradient of a tied parameter is the sum of those of all its "
             "names, in the order in which their backwards end.",
     .across = true,
     .level = LEVEL_REDUCE,
     .needs = "grad.finite reduce.scale",
     .profile = PROFILE_BITS,
     .applies = sums_ties,
     .spoil = gradient_sum_spoil,
     .check = &check_each_part,
     .part = {gradient_sum_of_part, RECORD_REDUCED, STEPS_RECORDED}},
    {.id = "tied.saved-once",
     .text = "A save has a tied parameter, and its states, under its "
             "original's name alone.",
     .level = LEVEL_STEP,
     .needs = "run.survives run.ranks-present",
     .applies = saves_ties,
     .check = &check_answers,
     .answers = {{"saved-tied", FSDP_OK}}},
    {0},
};
