/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce_scale.c - a gradient of the wrong scale hides behind Adam, and is
 * worth a name of its own.
 */
#include "judge/replay/replay_orders.h"

#include <stdio.h>

static bool applies(const struct expect *e)
{
    float divide = e->options.divide_factor;

    return compare_case_staged(e) &&
           (e->c->ranks > 1 || (divide != 0.0f && divide != 1.0f));
}

/* Whether all of the part is as if it had been scaled by `scale`. */
static bool is_scaled_by(struct replay_reduction x, const float *got,
                         uint64_t n, float scale)
{
    uint64_t bad;

    x.scale = scale;
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
                         : is_scaled_by(x, got, n, x.scale);
}

static bool wrong_factor(const struct compare_part *part, float got, float want,
                         struct finding *f)
{
    struct finding at = finding_at("reduced", part->step, -1, part->rank);
    char words[COMPARE_WORDS_BYTES];
    char note[sizeof(f->note)];
    bool simple = compare_factor_words((double)got, (double)want, words);

    at.parameter = part->parameter;
    at.unit = part->unit;
    (void)snprintf(note, sizeof(note),
                   "all of this part is scaled by another factor%s%s",
                   simple ? ": " : "", simple ? words : "");
    return finding_bits(f, at, got, want, note);
}

static bool check(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f)
{
    const float *got = compare_values(r, RECORD_REDUCED, part);
    float ranks = (float)e->c->ranks;
    struct replay_reduction x;
    float wrong[5];

    if (!e->trained[part->unit]) {
        return true;
    }
    if (got == NULL) {
        return compare_missing(part, RECORD_REDUCED, f);
    }
    if (!replay_reduction_find(e, r, part, &x, f)) {
        return false;
    }
    wrong[0] = 1.0f;
    wrong[1] = 1.0f / ranks;
    wrong[2] = 1.0f / (float)e->shards;
    wrong[3] = 1.0f / (float)e->replicas;
    wrong[4] = x.scale * x.scale;
    for (uint32_t w = 0; w < 5 && !is_right(x, got, part->n); w++) {
        if (is_scaled_by(x, got, part->n, wrong[w])) {
            return wrong_factor(part, wrong[w], x.scale, f);
        }
    }
    return true;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_parts(e, r, 0, 1, check, f);
}

/* Takes the scale from one part. */
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
    x.scale = 1.0f;
    for (uint64_t i = 0; i < t->n; i++) {
        float g = replay_reduced(&x, i);

        changed = changed || !(g == t->data[i]);
        t->data[i] = g;
    }
    return changed;
}

static bool spoil(const struct expect *e, struct record *r)
{
    struct record_rank *rank = compare_rank_to_spoil(r, 0);

    for (uint32_t i = 0; rank != NULL && i < rank->n_tensors; i++) {
        struct record_tensor *t = &rank->tensor[i];

        if (t->stage == RECORD_REDUCED && t->step == 0 && t->n > 0 &&
            t->data != NULL && unscale(e, r, 0, t)) {
            return true;
        }
    }
    return false;
}

REQUIREMENT(reduce_scale) = {
    .id = "reduce.scale",
    .text = "Reduced gradients are multiplied by 1 / divide factor "
            "exactly once.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_REDUCE,
    .needs = "grad.finite reduce.replicas-equal",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
