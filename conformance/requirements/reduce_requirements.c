/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce_requirements.c - the reduced gradient: its scale, the order of its
 * sums, and how microbatches add up.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"
#include "judge/replay/replay.h"
#include "judge/replay/replay_orders.h"

#include <stdio.h>

/*
 * reduce.replicas-equal: replicas meet in the all-reduce; without it they drift
 * apart unseen.
 */
static bool replicas_equal_of_part(const struct expect *e,
                                   const struct record *r,
                                   const struct compare_part *part,
                                   struct finding *f)
{
    return !e->stepped[part->parameter] ||
           compare_replica(e, r, part, RECORD_REDUCED, f);
}

/*
 * reduce.scale: a gradient of the wrong scale hides behind Adam, and is worth a
 * name of its own.
 */
static bool scale_applies(const struct expect *e)
{
    float divide = e->options.divide_factor;

    return compare_case_staged(e) &&
           (e->c->ranks > 1 || (divide != 0.0f && divide != 1.0f));
}

/* Whether the whole part is what it would be if `scale` had scaled it. */
static bool is_scaled_by(struct replay_reduction x, const float *got,
                         uint64_t n, float scale)
{
    uint64_t bad;

    x.factor.behind = scale;
    x.divide = 1.0f / scale;
    if (x.e->any_fold) {
        return orders_hold(&x, got, n, &bad);
    }
    for (uint64_t i = 0; i < n; i++) {
        if (!(got[i] == replay_reduced(&x, i))) {
            return false;
        }
    }
    return true;
}

static bool is_right(struct replay_reduction x, const float *got, uint64_t n)
{
    uint64_t bad;

    return x.e->any_fold ? orders_hold(&x, got, n, &bad)
                         : is_scaled_by(x, got, n, x.factor.behind);
}

static bool wrong_factor(const struct compare_part *part, float got, float want,
                         struct finding *f)
{
    struct finding at = finding_at_part("reduced", -1, part);
    char words[COMPARE_WORDS_BYTES];
    char note[sizeof(f->note)];
    bool simple = compare_factor_words((double)got, (double)want, words);

    snprintf(note, sizeof(note),
             "all of this part is scaled by another factor%s%s",
             simple ? ": " : "", simple ? words : "");
    return finding_bits(f, at, got, want, note);
}

static bool scale_of_part(const struct expect *e, const struct record *r,
                          const struct compare_part *part, struct finding *f)
{
    const float *got = compare_values(r, RECORD_REDUCED, part);
    float ranks = (float)e->c->ranks;
    struct replay_reduction x;
    float wrong[5];

    if (!e->stepped[part->parameter]) {
        return true;
    }
    if (!got) {
        return compare_missing(part, RECORD_REDUCED, f);
    }
    if (!replay_reduction_find(e, r, part, &x, f)) {
        return false;
    }
    wrong[0] = 1.0f;
    wrong[1] = 1.0f / ranks;
    wrong[2] = 1.0f / (float)e->shards;
    wrong[3] = 1.0f / (float)e->replicas;
    wrong[4] = x.factor.behind * x.factor.behind;
    for (uint32_t w = 0; w < 5 && !is_right(x, got, part->n); w++) {
        if (is_scaled_by(x, got, part->n, wrong[w])) {
            return wrong_factor(part, wrong[w], x.factor.behind, f);
        }
    }
    return true;
}

/* Removes the scale from one part. */
static bool unscale(const struct expect *e, struct record *r, uint32_t k,
                    struct record_tensor *t)
{
    struct compare_part part = {
        .rank = k, .parameter = t->parameter, .first = t->first, .n = t->n};
    struct replay_reduction x;
    struct finding unused;
    bool changed = false;

    if (t->parameter >= e->model->n_parameters) {
        return false;
    }
    part.unit = e->unit_of_parameter[t->parameter];
    if (!replay_reduction_find(e, r, &part, &x, &unused)) {
        return false;
    }
    x.factor.behind = 1.0f;
    for (uint64_t i = 0; i < t->n; i++) {
        float g = replay_reduced(&x, i);

        changed = changed || !(g == t->data[i]);
        t->data[i] = g;
    }
    return changed;
}

static bool scale_spoil(const struct expect *e, struct record *r)
{
    struct record_rank *rank = compare_rank_to_spoil(r, 0);

    for (uint32_t i = 0; rank && i < rank->n_tensors; i++) {
        struct record_tensor *t = &rank->tensor[i];

        if (t->stage == RECORD_REDUCED && t->step == 0 && t->n > 0 && t->data &&
            unscale(e, r, 0, t)) {
            return true;
        }
    }
    return false;
}

static bool has_one_microbatch(const struct expect *e)
{
    return compare_case_staged(e) && e->c->microbatches == 1;
}

static bool syncs_last(const struct expect *e)
{
    return compare_case_staged(e) && e->c->microbatches > 1 &&
           compare_synced_early(e) == 0;
}

/* Whether some unit adds up its reduced gradients on the host. */
static bool adds_up_on_host(const struct expect *e)
{
    for (uint32_t u = 0; u < e->units->n_units; u++) {
        if (e->unit[u].step_on_host && compare_synced_early(e) > 0) {
            return true;
        }
    }
    return false;
}

static bool accumulates_on_host(const struct expect *e)
{
    return compare_case_staged(e) && adds_up_on_host(e);
}

static bool syncs_all(const struct expect *e)
{
    return compare_case_staged(e) && !adds_up_on_host(e) &&
           e->c->microbatches > 1 &&
           compare_synced_early(e) == e->c->microbatches - 1;
}

static bool syncs_some(const struct expect *e)
{
    return compare_case_staged(e) && !adds_up_on_host(e) &&
           compare_synced_early(e) > 0 &&
           compare_synced_early(e) < e->c->microbatches - 1;
}

/* reduce.baseline: the reduction of the unsharded run is the reference. */
static bool baseline_of_part(const struct expect *e, const struct record *r,
                             const struct compare_part *part, struct finding *f)
{
    return !e->stepped[part->parameter] ||
           compare_as_baseline(e, r, part, RECORD_REDUCED, f);
}

/* A step that starts from other weights has its fault earlier. */
static bool baseline_holds(const struct expect *e, const struct record *r,
                           struct finding *f)
{
    for (uint32_t t = 0; t < compare_recorded_steps(e); t++) {
        if (t > 0 && !compare_starts_alike(e, r, t)) {
            return true;
        }
        if (!compare_parts(e, r, t, t + 1, baseline_of_part, f)) {
            return false;
        }
    }
    return true;
}

/* Roundings of mixed precision, and mistakes in factors, that have a name of
 * their own. */
#define REDUCE_ROUNDS                                            \
    "mixed.accumulate mixed.reduce-dtype mixed.sum mixed.scale " \
    "mixed.shard-gradient reduce.predivide reduce.unit-scale"

const struct requirement reduce_requirements[] = {
    {.since = "1.0",
     .must = 1,
     .level = LEVEL_REDUCE,
     .needs = "grad.finite reduce.scale reduce.replicas-equal " REDUCE_ROUNDS},
    {.id = "reduce.replicas-equal",
     .text = "Before the optimizer all replicas hold identical reduced "
             "gradients.",
     .needs = "grad.finite layout.chunk-rule",
     .applies = compare_case_replicated,
     .check = &check_each_part,
     .part = {replicas_equal_of_part, RECORD_REDUCED, STEPS_RECORDED}},
    {.id = "reduce.scale",
     .text = "Reduced gradients are multiplied by 1 / divide factor exactly "
             "once.",
     .across = true,
     .needs = "grad.finite reduce.replicas-equal " REDUCE_ROUNDS,
     .applies = scale_applies,
     .spoil = scale_spoil,
     .check = &check_each_part,
     .part = {scale_of_part, 0, STEPS_FIRST}},
    /* Gradients of ranks meet in the order that the specification gives. */
    {.id = "reduce.fold",
     .text = "A reduced gradient is the fold of the ranks' own local gradients "
             "times 1 / divide factor, bit for bit.",
     .across = true,
     .applies = has_one_microbatch,
     .holds = replay_reduced_holds,
     .spoil = replay_spoil_reduced},
    /* Microbatches without sync add up on their rank before ranks meet. */
    {.id = "accumulate.no-sync",
     .text = "When only the last microbatch is synchronised, the reduced "
             "gradient is the fold of what each rank has added up, scaled "
             "once.",
     .across = true,
     .claim = "no-sync",
     .applies = syncs_last,
     .holds = replay_reduced_holds,
     .spoil = replay_spoil_reduced},
    /* With sync on, each microbatch is reduced and then added to the
     * gradient shard. */
    {.id = "accumulate.synced",
     .text = "When every microbatch is synchronised, the reduced gradient is "
             "the sum, in order, of their scaled folds; the scale never meets "
             "the sum.",
     .across = true,
     .applies = syncs_all,
     .holds = replay_reduced_holds,
     .spoil = replay_spoil_reduced},
    /* Sync may change from one microbatch to the next. */
    {.id = "accumulate.interleaved",
     .text = "When some microbatches are synchronised and some not, each fold "
             "takes what has added up since the last one, and folds add up in "
             "order.",
     .across = true,
     .beside_training = true,
     .claim = "no-sync",
     .applies = syncs_some,
     .holds = replay_reduced_holds,
     .spoil = replay_spoil_reduced},
    {.id = "offload.accumulates",
     .text = "Where gradients are on the host what is reduced later in a step "
             "is added to what is there, in order.",
     .since = "1.1",
     .across = true,
     .claim = "offload",
     .applies = accumulates_on_host,
     .holds = replay_reduced_holds,
     .spoil = replay_spoil_reduced},
    {.id = "reduce.baseline",
     .text = "From the baseline's weights the reduced gradient equals the "
             "baseline's, bit for bit.",
     .needs = "grad.local reduce.fold accumulate.no-sync accumulate.synced "
              "accumulate.interleaved offload.accumulates",
     .profile = PROFILE_BITS,
     .applies = compare_case_staged,
     .holds = baseline_holds,
     .check = &check_each_part,
     .part = {.stage = RECORD_REDUCED}},
    {0},
};
