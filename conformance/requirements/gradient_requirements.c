/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gradient_requirements.c - local gradients, as the model leaves them on a
 * rank.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"
#include "judge/replay/bounds.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/*
 * grad.finite: poison of dead storage is NaN: a gradient that is not finite was
 * computed from something stale.
 */
static bool finite_of_part(const struct expect *e, const struct record *r,
                           const struct compare_part *part, struct finding *f)
{
    const float *got = compare_values(r, RECORD_LOCAL_GRADIENT, part);

    if (!got) {
        return compare_missing(part, RECORD_LOCAL_GRADIENT, f);
    }
    for (uint64_t i = 0; i < part->n; i++) {
        if (!isfinite(got[i])) {
            struct finding at =
                finding_at_part("local-gradient", part->microbatch, part);

            at.element = (int64_t)i;
            return finding_bits(f, at, got[i], 0.0f, "not finite");
        }
    }
    (void)e;
    return true;
}

static bool finite_holds(const struct expect *e, const struct record *r,
                         struct finding *f)
{
    return compare_gradients(e, r, 0, compare_recorded_steps(e), finite_of_part,
                             f);
}

/* Whether this gradient is compared: a record may have more, as where frozen
 * parameters lie in one piece with trained ones. */
static bool is_compared(const struct expect *e, const struct record_tensor *t)
{
    return t->stage == RECORD_LOCAL_GRADIENT &&
           t->microbatch < e->c->microbatches &&
           expect_is_trainable(e, t->parameter) &&
           (e->has_gradient[t->parameter] >> t->microbatch & 1) != 0;
}

static bool finite_spoil(const struct expect *e, struct record *r)
{
    struct record_tensor *t = compare_find_tensor(e, r, is_compared);

    if (!t) {
        return false;
    }
    t->data[0] = NAN;
    return true;
}

/*
 * grad.distinct: when all ranks have the same batch, a missing reduction gives
 * the right answer.
 */
static bool distinct_applies(const struct expect *e)
{
    return compare_case_staged(e) && e->c->data == WORKLOAD_NATURAL &&
           e->c->ranks * e->c->microbatches > 1 && compare_any_gradient(e);
}

/* Batch j of a step: rank j % K, microbatch j / K. */
static const float *gradient_of(const struct expect *e, const struct record *r,
                                uint32_t j, uint32_t p)
{
    struct compare_part part = {.rank = j % e->c->ranks,
                                .microbatch = j / e->c->ranks,
                                .parameter = p,
                                .n = fsdp_numel(e->model, p)};

    return compare_values(r, RECORD_LOCAL_GRADIENT, &part);
}

static bool is_zero(const float *x, uint64_t n)
{
    while (n > 0 && x[n - 1] == 0.0f) {
        n--;
    }
    return n == 0;
}

/* Whether all gradients of batch j are 0, as they are behind a ReLU that is
 * shut for all samples. With few samples that is not rare, and may happen in
 * two batches. */
static bool is_shut(const struct expect *e, const struct record *r, uint32_t j)
{
    bool shown = false;

    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        const float *x = gradient_of(e, r, j, p);

        if (x && !is_zero(x, fsdp_numel(e->model, p))) {
            return false;
        }
        shown = shown || x;
    }
    return shown;
}

static bool are_distinct(const struct expect *e, const struct record *r,
                         uint32_t a, uint32_t b)
{
    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        const float *x = gradient_of(e, r, a, p);
        const float *y = gradient_of(e, r, b, p);

        if (x && y && memcmp(x, y, fsdp_numel(e->model, p) * sizeof(*x)) != 0) {
            return true;
        }
    }
    return is_shut(e, r, a);
}

/* Whether the gradients of batch j are known: only if its rank is sampled. */
static bool is_shown(const struct expect *e, const struct record *r, uint32_t j)
{
    return compare_is_sampled(r, j % e->c->ranks);
}

static bool distinct_holds(const struct expect *e, const struct record *r,
                           struct finding *f)
{
    uint32_t n = e->c->ranks * e->c->microbatches;

    for (uint32_t b = 1; b < n; b++) {
        for (uint32_t a = 0; a < b; a++) {
            if (is_shown(e, r, a) && is_shown(e, r, b) &&
                !are_distinct(e, r, a, b)) {
                char note[sizeof(f->note)];

                snprintf(note, sizeof(note),
                         "has the gradients of rank %u, microbatch %u",
                         a % e->c->ranks, a / e->c->ranks);
                return finding_text(f,
                                    finding_at("local-gradient", 0,
                                               b / e->c->ranks,
                                               b % e->c->ranks),
                                    note);
            }
        }
    }
    return true;
}

/* Gives the last batch the gradients of the first that has any. */
static bool distinct_spoil(const struct expect *e, struct record *r)
{
    uint32_t last = e->c->ranks * e->c->microbatches - 1;
    struct record_rank *rank;
    uint32_t first = 0;
    bool changed = false;

    while (last > 0 && !is_shown(e, r, last)) {
        last--;
    }
    rank = compare_rank_to_spoil(r, last % e->c->ranks);
    while (first < last && (!is_shown(e, r, first) || is_shut(e, r, first))) {
        first++;
    }
    if (first == last) {
        return false;
    }
    for (uint32_t i = 0; rank && i < rank->n_tensors; i++) {
        struct record_tensor *t = &rank->tensor[i];
        const float *from;

        if (t->stage != RECORD_LOCAL_GRADIENT || t->step != 0 ||
            t->microbatch != last / e->c->ranks || t->n == 0 || !t->data) {
            continue;
        }
        if (t->parameter >= e->model->n_parameters ||
            t->n != fsdp_numel(e->model, t->parameter)) {
            return false;
        }
        from = gradient_of(e, r, first, t->parameter);
        if (!from) {
            return false;
        }
        memcpy(t->data, from, t->n * sizeof(*t->data));
        changed = true;
    }
    return changed;
}

/* What the baseline has for the rank's gradient, or NULL. */
static const float *baseline_gradient(const struct expect *e,
                                      const struct compare_part *part)
{
    return !e->baseline ? NULL
                        : compare_values_in_whole(e, e->baseline, part->rank,
                                                  RECORD_LOCAL_GRADIENT, part);
}

/*
 * grad.local: what the model computes inside a window depends on weights and
 * data alone.
 */
static bool local_of_part(const struct expect *e, const struct record *r,
                          const struct compare_part *part, struct finding *f)
{
    struct compare_part own = *part;

    own.any_zero = e->profile == EXPECT_OWN;
    return compare_equal(e, &own, RECORD_LOCAL_GRADIENT,
                         compare_values(r, RECORD_LOCAL_GRADIENT, part),
                         baseline_gradient(e, part), f);
}

/* A step that starts from other weights has its fault earlier. */
static bool local_holds(const struct expect *e, const struct record *r,
                        struct finding *f)
{
    for (uint32_t t = 0; t < compare_recorded_steps(e); t++) {
        if (t > 0 && !compare_starts_alike(e, r, t)) {
            return true;
        }
        if (!compare_gradients(e, r, t, t + 1, local_of_part, f)) {
            return false;
        }
    }
    return true;
}

/*
 * grad.bound: another arithmetic rounds otherwise, but computes the same
 * gradient.
 */
static bool bound_of_part(const struct expect *e, const struct record *r,
                          const struct compare_part *part, struct finding *f)
{
    return !expect_is_trainable(e, part->parameter) ||
           bounds_part(e, part, RECORD_LOCAL_GRADIENT,
                       compare_values(r, RECORD_LOCAL_GRADIENT, part),
                       baseline_gradient(e, part), part->step, f);
}

/* A step that starts from other weights has its fault earlier. */
static bool bound_holds(const struct expect *e, const struct record *r,
                        struct finding *f)
{
    for (uint32_t t = 0; t < compare_recorded_steps(e); t++) {
        if (t > 0 && !bounds_start_alike(e, r, t)) {
            return true;
        }
        if (!compare_gradients(e, r, t, t + 1, bound_of_part, f)) {
            return false;
        }
    }
    return true;
}

static bool bound_spoil(const struct expect *e, struct record *r)
{
    return bounds_spoil_tensor(compare_find_tensor(e, r, is_compared));
}

const struct requirement gradient_requirements[] = {
    {.since = "1.0",
     .must = 1,
     .level = LEVEL_GRADIENT,
     .applies = compare_case_staged},
    {.id = "grad.finite",
     .text = "Every local gradient is recorded and finite.",
     .needs = "gather.unsharded-values gather.sees-updated-weights",
     .holds = finite_holds,
     .spoil = finite_spoil},
    {.id = "grad.distinct",
     .text = "On natural data no two ranks or microbatches of a step have the "
             "same local gradient, unless it is zero.",
     .needs = "grad.finite",
     .applies = distinct_applies,
     .holds = distinct_holds,
     .spoil = distinct_spoil},
    {.id = "grad.local",
     .text = "From the weights of the baseline every rank and microbatch gets "
             "the local gradient that the baseline gets, bit for bit.",
     .needs = "layout.initial-values gather.unsharded-values "
              "gather.sees-updated-weights grad.finite grad.distinct "
              "mixed.dtypes-at-points mixed.gradient-dtype",
     .profile = PROFILE_BITS,
     .holds = local_holds,
     .check = &check_each_part,
     .part = {.stage = RECORD_LOCAL_GRADIENT}},
    {.id = "grad.bound",
     .text = "In an arithmetic of its own, from the weights of the baseline, "
             "every rank and microbatch gets the baseline's local gradient "
             "within the bound of roundings.",
     .since = "1.1",
     .across = true,
     .needs = "layout.initial-values gather.unsharded-values "
              "gather.sees-updated-weights grad.finite grad.distinct "
              "mixed.dtypes-at-points",
     .profile = PROFILE_BOUND,
     .holds = bound_holds,
     .spoil = bound_spoil},
    {0},
};
