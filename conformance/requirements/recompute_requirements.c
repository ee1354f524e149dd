/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recompute_requirements.c - activations that are dropped in the forward and
 * computed again in the backward: this changes the model's memory alone. The
 * engine gathers no more, reduces no more, and gives the same curve.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"

/* Makes the same case without recompute. */
static void keep_activations(struct run_case *c)
{
    c->recompute = WORKLOAD_KEEPS;
}

static bool recomputes(const struct expect *e)
{
    return compare_case_trains(e) && e->c->recompute != WORKLOAD_KEEPS;
}

/* The rank's record of the same case without recompute; NULL: this run has
 * none. */
static const struct record_rank *rank_that_keeps(const struct expect *e,
                                                 uint32_t k)
{
    const struct record *other = compare_companion(e, keep_activations);

    return other ? compare_rank(other, k) : NULL;
}

static bool has_twin(const struct expect *e)
{
    return recomputes(e) && compare_twin(e, keep_activations);
}

/*
 * recompute.same-collectives: a unit is gathered once for its recompute and its
 * backward together.
 */
static bool same_collectives_of_rank(const struct expect *e,
                                     const struct record_rank *rank, uint32_t k,
                                     struct finding *f)
{
    static const uint32_t kinds[] = {FSDP_ALL_GATHER, FSDP_REDUCE_SCATTER,
                                     FSDP_ALL_REDUCE};
    const struct record_rank *other = rank_that_keeps(e, k);

    for (uint32_t t = 0; t < e->c->steps; t++) {
        const struct record_sequence *got = compare_step_sequence(rank, t);
        const struct record_sequence *want = compare_step_sequence(other, t);
        struct finding at = finding_at("collectives", t, -1, k);

        if (!want) {
            return finding_missing(f, at, "there is no step to compare with");
        }
        for (uint32_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
            const uint64_t n = got ? compare_count(got, kinds[i]) : 0;

            if (n != compare_count(want, kinds[i])) {
                return finding_count(f, at, n, compare_count(want, kinds[i]),
                                     compare_kind_words(kinds[i]));
            }
        }
    }
    return true;
}

static bool same_collectives_spoil(const struct expect *e,
                                   struct record_rank *rank)
{
    uint32_t t = 0;

    while (t < e->c->steps && t < rank->n_steps &&
           (!compare_step_sequence(rank, t) ||
            compare_step_sequence(rank, t)->n == 0)) {
        t++;
    }
    if (t == e->c->steps || t >= rank->n_steps) {
        return false;
    }
    rank->sequence[rank->step_sequence[t]].c[0].kind = FSDP_BROADCAST;
    return true;
}

/*
 * recompute.activations-fall: this is what recompute is for. Asked for two
 * checkpoints or more: the activations of a single one are live all at once in
 * the end, together with all that is kept.
 */
static bool activations_fall_applies(const struct expect *e)
{
    const struct fsdp_sequence *s = e->model->sequence[FSDP_SEQUENCE_TRAIN];
    uint32_t n = 0;

    for (uint32_t i = 1; i < s->n; i++) {
        n += s->point[i] == FSDP_PRE_RECOMPUTE &&
             s->point[i - 1] != FSDP_PRE_RECOMPUTE &&
             s->point[i - 1] != FSDP_POST_RECOMPUTE;
    }
    return n > 1 && has_twin(e);
}

static bool activations_fall_of_rank(const struct expect *e,
                                     const struct record_rank *rank, uint32_t k,
                                     struct finding *f)
{
    const struct record_rank *other = rank_that_keeps(e, k);
    const struct finding at = finding_at("activation", -1, -1, k);
    const uint64_t got = rank->memory.peak[FSDP_ACTIVATION];

    if (!other) {
        return finding_missing(f, at, "there is no record to compare with");
    }
    return got < other->memory.peak[FSDP_ACTIVATION] ||
           finding_bytes(f, at, got, other->memory.peak[FSDP_ACTIVATION],
                         "at once; not less than without recompute");
}

static bool activations_fall_spoil(const struct expect *e,
                                   struct record_rank *rank)
{
    const struct record_rank *other = rank_that_keeps(e, 0);

    if (!other) {
        return false;
    }
    rank->memory.peak[FSDP_ACTIVATION] = UINT64_MAX;
    return true;
}

static bool misuses(const struct expect *e)
{
    return e->c->scenario == CASE_MISUSE && e->c->recompute != WORKLOAD_KEEPS;
}

const struct requirement recompute_requirements[] = {
    {.since = "1.0", .must = 1, .claim = "recompute"},
    {.id = "recompute.same-curve",
     .text = "Activations that are computed again give the curve of those that "
             "are kept, bit for bit.",
     .level = LEVEL_STEP,
     .needs = "num.curve",
     .applies = has_twin,
     .check = &check_curve_of,
     .change = keep_activations},
    /* The recomputed forward does not reshard: backward needs the same unit. */
    {.id = "recompute.same-collectives",
     .text = "A recomputed forward gathers and reduces nothing beyond what the "
             "backward that follows it does.",
     .level = LEVEL_COMM,
     .applies = has_twin,
     .check = &check_each_rank,
     .rank = {same_collectives_of_rank, same_collectives_spoil}},
    {.id = "recompute.activations-fall",
     .text = "With several checkpoints fewer bytes of activations are live at "
             "once than without recompute.",
     .should = true,
     .level = LEVEL_MEMORY,
     .applies = activations_fall_applies,
     .check = &check_each_rank,
     .rank = {activations_fall_of_rank, activations_fall_spoil}},
    /* A recomputed forward is no backward yet. */
    {.id = "recompute.no-gradient",
     .text = "A gradient of a module that is being recomputed, and is not in "
             "its backward, is refused as INVALID.",
     .since = "1.1",
     .level = LEVEL_ERRORS,
     .needs = "run.survives run.ranks-present",
     .applies = misuses,
     .check = &check_answers,
     .answers = {{"grad-in-recompute", FSDP_ERR_INVALID}}},
    {0},
};
