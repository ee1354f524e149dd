/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bounds_adamw.c - how far AdamW may carry two runs apart whose gradients
 * differ by roundings alone.
 *
 * AdamW divides a gradient by its own size: an element whose gradient is
 * nothing but roundings (the bias of the keys in an attention, to which a
 * softmax is blind) goes a whole learning rate into a direction that they
 * choose. With m^ = sum a_i g_i and v^ = sum b_i g_i^2, both weights adding up
 * to 1, |m^| / sqrt(v^) <= R_t = sqrt(sum a_i^2 / b_i) (Cauchy-Schwarz). Where
 * a gradient is off by q of itself both change by q of themselves, so that two
 * runs go apart by 2 lr R_t min(1, q) in step t. q is the bound of the whole
 * gradient over the element's, the greatest of the recorded steps. A gradient
 * that is 0 in all of them has no roundings.
 */
#include "judge/replay/bounds.h"
#include "judge/replay/replay.h"

#include <math.h>

enum {
    LOOKED_AT = 8 /* recorded steps, of which no case has more */
};

/* The sum of R_t over steps [0, steps). */
static double reach(const struct replay_optimizer *o, uint32_t steps)
{
    double b1 = (double)o->beta1;
    double b2 = (double)o->beta2;
    double sum = 0.0;
    double all = 0.0; /* of b1^2i / b2^i */

    for (uint32_t t = 0; t < steps; t++) {
        double a = (1.0 - b1) / (1.0 - pow(b1, t + 1.0));
        double b = (1.0 - b2) / (1.0 - pow(b2, t + 1.0));

        all += pow(b1 * b1 / b2, t);
        sum += sqrt(a * a / b * all);
    }
    return sum;
}

/* The norm of a parameter's whole gradient in the baseline, or of what its
 * ranks would add up to if none cancelled another, whichever is greater; 0: not
 * there. */
static double norm_of(const struct expect *e, struct compare_part part)
{
    const uint32_t u = e->unit_of_parameter[part.parameter];
    const float *g;
    double norm = 0.0;
    double added = 0.0;

    part.first = 0;
    part.n = fsdp_numel(e->model, part.parameter);
    g = compare_baseline(e, RECORD_REDUCED, &part);
    for (uint64_t i = 0; g && i < part.n; i++) {
        norm += (double)g[i] * (double)g[i];
    }
    if (g && u < e->units->n_units) {
        added = e->c->ranks * bounds_norm_of_step(e, &part) *
                (double)e->unit[u].factor.before *
                (double)e->unit[u].factor.behind;
    }
    return fmax(sqrt(norm), added);
}

/* q of element i in one step, with 1 for what is more. */
static double doubt(double bound, float g)
{
    double size = fabs((double)g);

    if (size <= 0.0) {
        return 0.0;
    }
    return bound < size ? bound / size : 1.0;
}

double bounds_adamw(const struct expect *e, const struct compare_part *part,
                    uint32_t steps)
{
    const struct replay_optimizer o =
        replay_optimizer_at(e, part->parameter, 0);
    const float *gradient[LOOKED_AT] = {NULL};
    double bound[LOOKED_AT] = {0.0};
    uint32_t n = compare_recorded_steps(e);
    struct compare_part at = *part;
    double sum = 0.0;

    if (o.kind != FSDP_OPTIMIZER_ADAMW) {
        return 0.0;
    }
    n = n < steps ? n : steps;
    n = n < LOOKED_AT ? n : LOOKED_AT;
    for (uint32_t t = 0; t < n; t++) {
        at.step = t;
        gradient[t] = compare_baseline(e, RECORD_REDUCED, &at);
        bound[t] = bounds_relative(e, t) * norm_of(e, at);
    }
    for (uint64_t i = 0; i < part->n; i++) {
        double q = 0.0;

        for (uint32_t t = 0; t < n; t++) {
            if (gradient[t]) {
                q = fmax(q, doubt(bound[t], gradient[t][i]));
            }
        }
        sum += q * q;
    }
    return 2.0 * (double)o.lr * reach(&o, steps) * sqrt(sum);
}
