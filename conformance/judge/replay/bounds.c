/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bounds.c - compares a run's losses, weights and norms with the unsharded
 * run's, each difference against the bound that is derived for it.
 */
#include "judge/replay/bounds.h"

#include <math.h>
#include <stdio.h>

enum {
    BOUNDS_SAMPLES = 256 /* a step of any workload has no more */
};

/* Twice the unit roundoff of float32: both sides are rounded. */
static const double eps = 0x1p-23;

double bounds_roundings(const struct expect *e)
{
    double n = BOUNDS_SAMPLES + (double)e->c->ranks * e->c->microbatches;

    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        for (uint32_t d = 0; d < e->model->parameter_n_dims[p]; d++) {
            n += (double)e->model->parameter_shape[p][d];
        }
    }
    return n;
}

static bool too_far(double error, double bound, struct finding at,
                    struct finding *f)
{
    char note[sizeof(f->note)];

    snprintf(note, sizeof(note), "the error %.3g is %.3g times the bound %.3g",
             error, error / bound, bound);
    (void)finding_text(f, at, note);
    f->ratio = error / bound;
    return false;
}

bool bounds_value(double got, double want, double bound, struct finding at,
                  struct finding *f)
{
    double error = fabs(got - want);

    if (!(error <= bound)) {
        return too_far(error, bound, at, f);
    }
    if (bound > 0.0 && error / bound > f->ratio) {
        f->ratio = error / bound;
    }
    return true;
}

/* Twice the unit roundoff of a dtype of 16 bits; of others 0. */
static double eps_of(uint32_t dtype)
{
    return dtype == FSDP_DTYPE_BF16  ? 0x1p-8
           : dtype == FSDP_DTYPE_F16 ? 0x1p-11
                                     : 0.0;
}

/* The roundings of a unit's gradient: when it is made, added up, sent, summed
 * over ranks and scaled. */
static double of_gradient(const struct run_case *c,
                          const struct expect_dtypes *d)
{
    return eps_of(d->grad) + c->microbatches * eps_of(d->accumulate) +
           2.0 * eps_of(d->reduce) + c->ranks * eps_of(d->sum);
}

double bounds_narrow(const struct expect *e)
{
    double gradient = 0.0;
    double sum = 0.0;

    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        const uint32_t u = e->unit_of_parameter[p];

        if (u < e->units->n_units) {
            sum += 2.0 * eps_of(e->unit[u].dtype.param);
            gradient = fmax(gradient, of_gradient(e->c, &e->unit[u].dtype));
        }
    }
    return sum + gradient;
}

double bounds_relative(const struct expect *e, uint32_t steps)
{
    double narrow = e->c->precision == CASE_F32 ? 0.0 : bounds_narrow(e);

    return (bounds_roundings(e) * eps + narrow) * (1.0 + steps);
}

static double norm_of(const float *x, uint64_t n)
{
    double norm = 0.0;

    for (uint64_t i = 0; i < n; i++) {
        norm += (double)x[i] * (double)x[i];
    }
    return sqrt(norm);
}

static bool hold(const float *got, const float *want, uint64_t n, double bound,
                 struct finding at, struct finding *f)
{
    double error = 0.0;

    for (uint64_t i = 0; i < n; i++) {
        double d = (double)got[i] - (double)want[i];

        error += d * d;
    }
    return bounds_value(sqrt(error), 0.0, bound, at, f);
}

/*
 * In a parameter of few elements the samples of one rank may cancel each other
 * to anything. How large the added terms were is told by the greatest result of
 * all ranks and microbatches of the step.
 */
double bounds_norm_of_step(const struct expect *e,
                           const struct compare_part *part)
{
    double most = 0.0;

    for (uint32_t b = 0; e->baseline && b < e->c->microbatches; b++) {
        struct compare_part at = *part;

        at.microbatch = b;
        for (uint32_t k = 0; k < e->c->ranks; k++) {
            const float *x = compare_values_in_whole(
                e, e->baseline, k, RECORD_LOCAL_GRADIENT, &at);

            most = fmax(most, x ? norm_of(x, part->n) : 0.0);
        }
    }
    return most;
}

bool bounds_hold(const struct expect *e, const float *got, const float *want,
                 uint64_t n, uint32_t steps, struct finding at,
                 struct finding *f)
{
    return hold(got, want, n, bounds_relative(e, steps) * norm_of(want, n), at,
                f);
}

bool bounds_part(const struct expect *e, const struct compare_part *part,
                 uint32_t stage, const float *got, const float *want,
                 uint32_t steps, struct finding *f)
{
    struct finding at =
        finding_at_part(record_stage_name(stage), part->microbatch, part);
    double norm;
    double more = 0.0;

    if (!got) {
        return compare_missing(part, stage, f);
    }
    if (!want) {
        return finding_missing(f, at,
                               "the values to compare with are not recorded");
    }
    norm = norm_of(want, part->n);
    if (stage == RECORD_LOCAL_GRADIENT) {
        norm = fmax(norm, bounds_norm_of_step(e, part));
    } else {
        more = bounds_adamw(e, part, steps);
    }
    return hold(got, want, part->n, bounds_relative(e, steps) * norm + more, at,
                f);
}

static bool before_is_near(const struct expect *e, const struct record *r,
                           const struct compare_part *part, struct finding *f)
{
    return bounds_part(e, part, RECORD_BEFORE,
                       compare_values(r, RECORD_BEFORE, part),
                       compare_baseline(e, RECORD_BEFORE, part), part->step, f);
}

bool bounds_start_alike(const struct expect *e, const struct record *r,
                        uint32_t step)
{
    struct finding unused = {0};

    return compare_parts(e, r, step, step + 1, before_is_near, &unused);
}

bool bounds_spoil(struct record *r, uint32_t stage, uint32_t step)
{
    return bounds_spoil_tensor(compare_tensor_to_spoil(r, stage, step));
}

bool bounds_spoil_tensor(struct record_tensor *t)
{
    if (!t) {
        return false;
    }
    t->data[0] = t->data[0] * 2.0f + 64.0f;
    return true;
}
