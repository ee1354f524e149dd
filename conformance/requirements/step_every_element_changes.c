/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_every_element_changes.c - elements that are forgotten (the tail of an
 * uneven shard, say) keep their old value, and no loss shows it. (Later steps
 * have moments that may cancel.)
 */
#include "judge/replay/replay.h"
#include "judge/replay/replay_clip.h"

#include <fsdp/arith/bits.h>

static bool differs(float a, float b)
{
    return fsdp_f32_bits(a) != fsdp_f32_bits(b);
}

/* The weight that element i of the first step must become: states are +0. */
static float next_weight(const struct replay_optimizer *o, float weight,
                         float gradient)
{
    struct replay_element x = {.weight = weight};

    return replay_step(o, x, gradient).weight;
}

static bool check(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f)
{
    const float *before = compare_values(r, RECORD_BEFORE, part);
    const float *gradient = compare_values(r, replay_stepped_stage(e), part);
    const float *after = compare_values(r, RECORD_AFTER, part);
    struct replay_optimizer o = replay_optimizer_at(e, part->parameter, 0);

    if (!e->trained[part->unit]) {
        return true;
    }
    if (before == NULL || gradient == NULL || after == NULL) {
        return compare_missing(part,
                               before == NULL     ? RECORD_BEFORE
                               : gradient == NULL ? replay_stepped_stage(e)
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

/* Whether an element of t, what a rank held after the step, had to change and
 * has: which one, and what it was before. */
static bool has_changed(const struct expect *e, const struct record *r,
                        uint32_t k, const struct record_tensor *t,
                        uint64_t *out_i, float *out_before)
{
    struct compare_part part = {
        .rank = k, .parameter = t->parameter, .first = t->first, .n = t->n};
    struct replay_optimizer o = replay_optimizer_at(e, t->parameter, 0);
    const float *before = compare_values(r, RECORD_BEFORE, &part);
    const float *gradient = compare_values(r, replay_stepped_stage(e), &part);

    for (uint64_t i = 0; before != NULL && gradient != NULL && i < t->n; i++) {
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

        for (uint32_t j = 0; rank != NULL && j < rank->n_tensors; j++) {
            struct record_tensor *t = &rank->tensor[j];

            if (t->stage == RECORD_AFTER && t->step == 0 && t->data != NULL &&
                t->parameter < e->model->n_parameters &&
                has_changed(e, r, k, t, out_i, out_before)) {
                return t;
            }
        }
    }
    return NULL;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    struct record view = *r; /* shares everything; nothing is written */
    uint64_t i;
    float before;

    if (!compare_parts(e, r, 0, 1, check, f)) {
        return false;
    }
    if (e->c->data != WORKLOAD_NATURAL || !(e->c->lr > 0.0f)) {
        return true;
    }
    return find_changed(e, &view, &i, &before) != NULL ||
           finding_text(f, finding_at("after", 0, -1, -1),
                        "the first step changed no weight at all");
}

/* One element keeps its old value. */
static bool spoil(const struct expect *e, struct record *r)
{
    uint64_t i;
    float before;
    struct record_tensor *t = find_changed(e, r, &i, &before);

    if (t == NULL) {
        return false;
    }
    t->data[i] = before;
    return true;
}

REQUIREMENT(step_every_element_changes) = {
    .id = "step.every-element-changes",
    .text = "In the first step every weight that the optimizer must "
            "change has changed, and on natural data there are such.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "step.weights-untouched reduce.scale clip.scale",
    .applies = compare_case_staged,
    .holds = holds,
    .spoil = spoil,
};
