/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather_requirements.c - what the model sees: unsharded parameters.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"

/*
 * gather.unsharded-values: an unsharded parameter is the concatenation of its
 * shards.
 */
static bool unsharded_values_of_part(const struct expect *e,
                                     const struct record *r,
                                     const struct compare_part *part,
                                     struct finding *f)
{
    return !e->seen[part->parameter] ||
           compare_gathered(e, r, part, RECORD_UNSHARDED,
                            compare_values(r, RECORD_INITIAL, part), f);
}

/*
 * gather.sees-updated-weights: an unsharded copy kept from the last step is
 * stale.
 */
static bool sees_updated_weights_applies(const struct expect *e)
{
    return compare_case_staged(e) && compare_recorded_steps(e) > 1;
}

static bool sees_updated_weights_of_part(const struct expect *e,
                                         const struct record *r,
                                         const struct compare_part *part,
                                         struct finding *f)
{
    struct compare_part earlier = *part;
    struct compare_part own = *part;

    earlier.step = part->step - 1;
    own.own = true;
    return !e->seen[part->parameter] ||
           compare_gathered(e, r, &own, RECORD_UNSHARDED,
                            compare_values(r, RECORD_AFTER, &earlier), f);
}

/* gather.same-on-all-ranks: data parallel ranks compute with one model. */
static bool same_on_all_ranks_applies(const struct expect *e)
{
    return compare_case_staged(e) && e->c->ranks > 1;
}

/* Rank 0 is always shown; a sampled record may have no other one. */
static bool shows_two(const struct record *r)
{
    return record_n_sampled(r) > 1;
}

static bool same_on_all_ranks_of_part(const struct expect *e,
                                      const struct record *r,
                                      const struct compare_part *part,
                                      struct finding *f)
{
    /* Weights do not change in a step: its first microbatch is recorded. */
    return part->microbatch > 0 || !e->seen[part->parameter] ||
           compare_equal(
               e, part, RECORD_UNSHARDED,
               compare_values(r, RECORD_UNSHARDED, part),
               compare_values_in_whole(e, r, 0, RECORD_UNSHARDED, part), f);
}

static bool same_on_all_ranks_holds(const struct expect *e,
                                    const struct record *r, struct finding *f)
{
    return compare_whole(e, r, 0, compare_recorded_steps(e),
                         same_on_all_ranks_of_part, f);
}

/* gather.summoned-values: unshard_all shows the whole model outside a pass. */
static bool summoned_values_applies(const struct expect *e)
{
    return compare_case_staged(e) && e->c->scenario == CASE_SUMMON;
}

static bool summoned_values_of_part(const struct expect *e,
                                    const struct record *r,
                                    const struct compare_part *part,
                                    struct finding *f)
{
    return compare_gathered(e, r, part, RECORD_SUMMONED,
                            compare_values(r, RECORD_FINAL, part), f);
}

const struct requirement gather_requirements[] = {
    {.since = "1.0",
     .must = 1,
     .level = LEVEL_GATHER,
     .check = &check_each_part},
    {.id = "gather.unsharded-values",
     .text = "In the first step every rank's forward sees the values that the "
             "shards hold.",
     .needs = "layout.chunk-rule mixed.cast-of-shard mixed.alone-casts",
     .applies = compare_case_staged,
     .part = {unsharded_values_of_part, RECORD_UNSHARDED, STEPS_FIRST}},
    {.id = "gather.sees-updated-weights",
     .text = "From the second step on every forward sees the weights that the "
             "step before has made.",
     .needs = "gather.unsharded-values step.weights-untouched "
              "mixed.fresh-cast",
     .applies = sees_updated_weights_applies,
     .part = {sees_updated_weights_of_part, RECORD_UNSHARDED, STEPS_LATER}},
    {.id = "gather.same-on-all-ranks",
     .text = "All ranks of the world see the same unsharded parameters, bit "
             "for bit.",
     .needs = "gather.unsharded-values gather.sees-updated-weights "
              "layout.replicas-equal step.replicas-equal",
     .applies = same_on_all_ranks_applies,
     .looked_at = shows_two,
     .holds = same_on_all_ranks_holds,
     .part = {.stage = RECORD_UNSHARDED}},
    {.id = "gather.summoned-values",
     .text = "unshard_all shows every rank the weights that the shards hold, "
             "bit for bit.",
     .needs = "step.final-weights",
     .claim = "unshard-all",
     .applies = summoned_values_applies,
     .part = {summoned_values_of_part, RECORD_SUMMONED, STEPS_FINAL}},
    {0},
};
