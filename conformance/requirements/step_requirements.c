/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_requirements.c - the optimizer's step: weights and states after it.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"
#include "judge/replay/bounds.h"
#include "judge/replay/replay.h"

#include <fsdp/arith/bits.h>

/*
 * step.weights-untouched: between two steps only the optimizer writes weights.
 */
static bool weights_untouched_of_part(const struct expect *e,
                                      const struct record *r,
                                      const struct compare_part *part,
                                      struct finding *f)
{
    return compare_as_then(e, r, part, RECORD_BEFORE,
                           part->step == 0 ? RECORD_INITIAL : RECORD_AFTER,
                           part->step == 0 ? 0 : part->step - 1, f);
}

/*
 * step.every-element-changes: elements that are forgotten (the tail of an
 * uneven shard, say) keep their old value, and no loss shows it. (Later steps
 * have moments that may cancel.)
 */
static bool differs(float a, float b)
{
    return fsdp_f32_bits(a) != fsdp_f32_bits(b);
}

/* The weight that the first step must make of this one: states are +0. */
static float next_weight(const struct replay_optimizer *o, float weight,
                         float gradient)
{
    struct replay_element x = {.weight = weight};

    return replay_step(o, x, gradient).weight;
}

static bool every_element_changes_of_part(const struct expect *e,
                                          const struct record *r,
                                          const struct compare_part *part,
                                          struct finding *f)
{
    const float *before = compare_values(r, RECORD_BEFORE, part);
    const float *gradient = compare_values(r, replay_stepped_stage(e), part);
    const float *after = compare_values(r, RECORD_AFTER, part);
    struct replay_optimizer o = replay_optimizer_at(e, part->parameter, 0);

    if (!e->stepped[part->parameter]) {
        return true;
    }
    if (!before || !gradient || !after) {
        return compare_missing(part,
                               !before     ? RECORD_BEFORE
                               : !gradient ? replay_stepped_stage(e)
                                           : RECORD_AFTER,
                               f);
    }
    for (uint64_t i = 0; i < part->n; i++) {
        float want = next_weight(&o, before[i], gradient[i]);

        if (differs(want, before[i]) && !differs(after[i], before[i])) {
            return compare_element(e, part, RECORD_AFTER, i, after[i], want, f);
        }
    }
    return true;
}

/* Whether t, which a rank held after the step, has an element that had to
 * change and has: which one, and what it was before. */
static bool has_changed(const struct expect *e, const struct record *r,
                        uint32_t k, const struct record_tensor *t,
                        uint64_t *out_i, float *out_before)
{
    struct compare_part part = {
        .rank = k, .parameter = t->parameter, .first = t->first, .n = t->n};
    struct replay_optimizer o = replay_optimizer_at(e, t->parameter, 0);
    const float *before = compare_values(r, RECORD_BEFORE, &part);
    const float *gradient = compare_values(r, replay_stepped_stage(e), &part);

    for (uint64_t i = 0; before && gradient && i < t->n; i++) {
        if (differs(next_weight(&o, before[i], gradient[i]), before[i]) &&
            differs(t->data[i], before[i])) {
            *out_i = i;
            *out_before = before[i];
            return true;
        }
    }
    return false;
}

/* A tensor with an element that the first step must change and has changed;
 * NULL: there is none. */
static struct record_tensor *find_changed(const struct expect *e,
                                          struct record *r, uint64_t *out_i,
                                          float *out_before)
{
    for (uint32_t k = 0; k < r->n_ranks; k++) {
        struct record_rank *rank = compare_rank_to_spoil(r, k);

        for (uint32_t j = 0; rank && j < rank->n_tensors; j++) {
            struct record_tensor *t = &rank->tensor[j];

            if (t->stage == RECORD_AFTER && t->step == 0 && t->data &&
                t->parameter < e->model->n_parameters &&
                has_changed(e, r, k, t, out_i, out_before)) {
                return t;
            }
        }
    }
    return NULL;
}

static bool every_element_changes_holds(const struct expect *e,
                                        const struct record *r,
                                        struct finding *f)
{
    struct record view = *r; /* shares everything; nothing is written */
    uint64_t i;
    float before;

    if (!compare_parts(e, r, 0, 1, every_element_changes_of_part, f)) {
        return false;
    }
    if (e->c->data != WORKLOAD_NATURAL || !(e->c->lr > 0.0f) ||
        !compare_any_gradient(e)) {
        return true;
    }
    return find_changed(e, &view, &i, &before) ||
           finding_text(f, finding_at("after", 0, -1, -1),
                        "the first step changed no weight at all");
}

/* One element keeps its old value. */
static bool every_element_changes_spoil(const struct expect *e,
                                        struct record *r)
{
    uint64_t i;
    float before;
    struct record_tensor *t = find_changed(e, r, &i, &before);

    if (!t) {
        return false;
    }
    t->data[i] = before;
    return true;
}

static bool uses_sgd(const struct expect *e)
{
    return compare_case_staged(e) && e->c->optimizer == FSDP_OPTIMIZER_SGD;
}

static bool uses_momentum(const struct expect *e)
{
    return compare_case_staged(e) && e->c->optimizer == FSDP_OPTIMIZER_MOMENTUM;
}

static bool uses_adamw(const struct expect *e)
{
    return compare_case_staged(e) && e->c->optimizer == FSDP_OPTIMIZER_ADAMW;
}

/*
 * step.bound: an optimizer that rounds otherwise: from the record's own
 * weights, gradient and states the formula of op.h gives what it made of them.
 */
static bool bound_spoil(const struct expect *e, struct record *r)
{
    (void)e;
    return bounds_spoil(r, RECORD_AFTER, 0);
}

/* step.replicas-equal: replicas take the same step. */
/* The unsharded run is the reference. */
static bool as_baseline(const struct expect *e, const struct record *r,
                        const struct compare_part *part, uint32_t stage,
                        struct finding *f)
{
    return compare_equal(e, part, stage, compare_values(r, stage, part),
                         compare_baseline(e, stage, part), f);
}

/* step.state: the optimizer states of the unsharded run are the reference. */
static bool has_states(const struct expect *e)
{
    return compare_case_staged(e) && e->c->optimizer != FSDP_OPTIMIZER_SGD;
}

static bool state_of_part(const struct expect *e, const struct record *r,
                          const struct compare_part *part, struct finding *f)
{
    return !expect_is_trainable(e, part->parameter) ||
           (as_baseline(e, r, part, RECORD_STATE0, f) &&
            (e->c->optimizer != FSDP_OPTIMIZER_ADAMW ||
             as_baseline(e, r, part, RECORD_STATE1, f)));
}

/* step.weights, step.final-weights: the weights of the unsharded run are the
 * reference; those that it ends with are what a run is for. */
static bool weights_of_part(const struct expect *e, const struct record *r,
                            const struct compare_part *part, struct finding *f)
{
    return as_baseline(e, r, part, part->q->part.stage, f);
}

/*
 * step.final-bound: another arithmetic ends with the weights of the unsharded
 * run, as far as rounding lets it.
 */
static bool final_bound_of_part(const struct expect *e, const struct record *r,
                                const struct compare_part *part,
                                struct finding *f)
{
    return bounds_part(e, part, RECORD_FINAL,
                       compare_values(r, RECORD_FINAL, part),
                       compare_baseline(e, RECORD_FINAL, part), part->step, f);
}

static bool final_bound_spoil(const struct expect *e, struct record *r)
{
    (void)e;
    return bounds_spoil(r, RECORD_FINAL, 0);
}

const struct requirement step_requirements[] = {
    {.since = "1.0",
     .must = 1,
     .level = LEVEL_STEP,
     .applies = compare_case_staged},
    {.id = "step.weights-untouched",
     .text = "Before each step a rank holds exactly the weights that the step "
             "before left, and at first the initial ones.",
     .needs = "layout.chunk-rule checkpoint.parameters",
     .check = &check_each_part,
     .part = {weights_untouched_of_part, RECORD_BEFORE, STEPS_RECORDED}},
    {.id = "step.every-element-changes",
     .text = "In the first step every weight that the optimizer must change "
             "has changed, and on natural data there are such.",
     .needs = "step.weights-untouched reduce.scale clip.scale groups.betas "
              "groups.cut groups.empty groups.no-decay",
     .holds = every_element_changes_holds,
     .spoil = every_element_changes_spoil},
    /* The optimizer, element by element: w = fma(-lr, g, w). */
    {.id = "step.sgd",
     .text = "Weights after the step follow from weights, reduced gradient "
             "before it by the formula of op.h, bit for bit.",
     .needs = "step.every-element-changes step.weights-untouched "
              "mixed.master-kept groups.betas groups.cut groups.empty "
              "groups.no-decay",
     .claim = "sgd",
     .profile = PROFILE_BITS,
     .applies = uses_sgd,
     .check = &check_each_part,
     .part = {replay_compare_step, RECORD_AFTER, STEPS_RECORDED}},
    /* The optimizer, element by element: v = fma(mu, v, g), w = fma(-lr, v,
     * w). */
    {.id = "step.momentum",
     .text = "Weights and velocity after the step follow from weights, reduced "
             "gradient and velocity before it by the formula of op.h, bit for "
             "bit.",
     .needs = "step.every-element-changes step.weights-untouched "
              "checkpoint.moments "
              "mixed.master-kept groups.betas groups.cut groups.empty "
              "groups.no-decay",
     .claim = "momentum",
     .profile = PROFILE_BITS,
     .applies = uses_momentum,
     .check = &check_each_part,
     .part = {replay_compare_step, RECORD_STATE0, STEPS_RECORDED}},
    /* The optimizer, element by element: two moments, their running
     * products, decoupled decay. */
    {.id = "step.adamw",
     .text = "Weights and moments after the step follow from weights, reduced "
             "gradient and moments before it by the formula of op.h, bit for "
             "bit.",
     .needs = "step.every-element-changes step.weights-untouched "
              "checkpoint.moments checkpoint.step "
              "mixed.master-kept groups.betas groups.cut groups.empty "
              "groups.no-decay",
     .claim = "adamw",
     .profile = PROFILE_BITS,
     .applies = uses_adamw,
     .check = &check_each_part,
     .part = {replay_compare_step, RECORD_STATE1, STEPS_RECORDED}},
    {.id = "step.bound",
     .text = "In an arithmetic of its own weights and states after a step "
             "follow from the record's own by the formula of op.h, within the "
             "roundings of that formula.",
     .since = "1.1",
     .needs = "step.every-element-changes step.weights-untouched "
              "checkpoint.moments",
     .profile = PROFILE_BOUND,
     .spoil = bound_spoil,
     .check = &check_each_part,
     .part = {replay_bound_step, 0, STEPS_RECORDED}},
    {.id = "step.replicas-equal",
     .text = "After each step all replicas hold identical weights.",
     .needs = "layout.replicas-equal reduce.replicas-equal step.sgd "
              "step.momentum step.adamw",
     .applies = compare_case_replicated,
     .check = &check_each_part,
     .part = {check_replicas, RECORD_AFTER, STEPS_RECORDED}},
    {.id = "step.state",
     .text = "After each step the optimizer states equal the baseline's, bit "
             "for bit.",
     .needs = "reduce.baseline step.momentum step.adamw clip.scale",
     .profile = PROFILE_BITS,
     .applies = has_states,
     .check = &check_each_part,
     .part = {state_of_part, RECORD_STATE0, STEPS_RECORDED}},
    {.id = "step.weights",
     .text = "After each step the weights equal the baseline's, bit for bit.",
     .needs = "reduce.baseline step.sgd step.momentum step.adamw "
              "step.replicas-equal gather.same-on-all-ranks clip.scale",
     .profile = PROFILE_BITS,
     .check = &check_each_part,
     .part = {weights_of_part, RECORD_AFTER, STEPS_RECORDED}},
    {.id = "step.final-weights",
     .text = "After the last step the weights equal the baseline's, bit for "
             "bit.",
     .needs = "step.weights num.curve",
     .profile = PROFILE_BITS,
     .check = &check_each_part,
     .part = {weights_of_part, RECORD_FINAL, STEPS_FINAL}},
    {.id = "step.final-bound",
     .text = "In an arithmetic of its own the weights after the last step are "
             "the baseline's within the bound of roundings.",
     .since = "1.1",
     .needs = "step.bound num.curve-bound clip.scale",
     .profile = PROFILE_BOUND,
     .spoil = final_bound_spoil,
     .check = &check_each_part,
     .part = {final_bound_of_part, 0, STEPS_FINAL}},
    {0},
};
