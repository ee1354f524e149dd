/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_bound.c - how far an optimizer that rounds otherwise may be from the
 * formulas of op.h, element by element, from the record's own values.
 *
 * With u = 2^-24. A sum of two products is rounded three times, fused ones
 * once or twice: 4 u of the sum of amounts. AdamW has more to it:
 *  - beta and 1 - beta are float32 here, elsewhere often double: 1 - beta is
 *    off by u beta, which is 4 u of (beta v + g^2) for v, and alike for m;
 *  - 1 - p is off by the roundings of a product of t betas, t u p / (1 - p) of
 *    itself;
 *  - m and v above are off before they meet.
 */
#include "judge/replay/bounds.h"
#include "judge/replay/replay.h"

#include <math.h>

static const double u = 0x1p-24;

/* How far weight and states may be off. */
struct allowance {
    double weight, state[2];
};

static struct allowance allow_adamw(const struct replay_optimizer *o,
                                    uint32_t step,
                                    const struct replay_element *x, float g)
{
    double t = step + 1.0;
    double m = fabs((double)x->state[0]) + fabs((double)g);
    double v = fabs((double)x->state[1]) + (double)g * (double)g;
    double amount = (double)o->beta1 * fabs((double)x->state[0]) +
                    (1.0 - (double)o->beta1) * fabs((double)g);
    double now = (double)o->beta2 * (double)x->state[1] +
                 (1.0 - (double)o->beta2) * (double)g * (double)g;
    double root = sqrt(now) / sqrt(1.0 - (double)o->p2) + (double)o->eps;
    double unit = (double)o->lr / (1.0 - (double)o->p1) / root;
    double relative = 8.0 + t * (double)o->p1 / (1.0 - (double)o->p1) +
                      t * (double)o->p2 / (1.0 - (double)o->p2) +
                      (now > 0.0 ? 4.0 * v / now : 0.0);

    return (struct allowance){
        .weight = 4.0 * u * fabs((double)x->weight) +
                  u * unit * (relative * amount + 4.0 * m),
        .state = {4.0 * u * m, 4.0 * u * v},
    };
}

static struct allowance allow(const struct replay_optimizer *o, uint32_t step,
                              const struct replay_element *x, float g)
{
    double w = fabs((double)x->weight);
    double d = fabs((double)g) + (double)o->weight_decay * w;

    if (o->kind == FSDP_OPTIMIZER_ADAMW) {
        return allow_adamw(o, step, x, g);
    }
    if (o->kind == FSDP_OPTIMIZER_MOMENTUM) {
        d += (double)o->momentum * fabs((double)x->state[0]);
    }
    return (struct allowance){
        .weight = 4.0 * u * (w + 2.0 * (double)o->lr * d),
        .state = {4.0 * u * d, 0.0},
    };
}

bool replay_bound_near(const struct replay_optimizer *o, uint32_t step,
                       const struct replay_element *x, float g,
                       const struct replay_element *got)
{
    const struct replay_element want = replay_step(o, *x, g);
    const struct allowance most = allow(o, step, x, g);
    struct finding unused = {0};

    for (uint32_t s = 0; s < 2; s++) {
        if (!bounds_value((double)got->state[s], (double)want.state[s],
                          most.state[s], unused, &unused)) {
            return false;
        }
    }
    return bounds_value((double)got->weight, (double)want.weight, most.weight,
                        unused, &unused);
}

static bool check_element(const struct replay_optimizer *o,
                          const struct compare_part *part,
                          const struct replay_values *v, uint64_t i,
                          struct finding at, struct finding *f)
{
    struct replay_element x = {.weight = v->before[i]};
    struct replay_element want;
    struct allowance most = {0};

    for (uint32_t s = 0; s < v->n_states; s++) {
        x.state[s] = !v->state_before[s] ? 0.0f : v->state_before[s][i];
    }
    want = v->is_stepped ? replay_step(o, x, v->gradient[i]) : x;
    if (v->is_stepped) {
        most = allow(o, part->step, &x, v->gradient[i]);
    }
    at.element = (int64_t)(part->first + i);
    for (uint32_t s = 0; s < v->n_states; s++) {
        at.stage = record_stage_name(s == 0 ? RECORD_STATE0 : RECORD_STATE1);
        if (!bounds_value((double)v->state_after[s][i], (double)want.state[s],
                          most.state[s], at, f)) {
            return false;
        }
    }
    at.stage = record_stage_name(RECORD_AFTER);
    return bounds_value((double)v->after[i], (double)want.weight, most.weight,
                        at, f);
}

bool replay_bound_step(const struct expect *e, const struct record *r,
                       const struct compare_part *part, struct finding *f)
{
    struct replay_optimizer o =
        replay_optimizer_at(e, part->parameter, part->step);
    struct finding at = finding_at_part(NULL, -1, part);
    struct replay_values v;

    if (!replay_values_find(e, r, part, &v, f)) {
        return false;
    }
    for (uint64_t i = 0; i < part->n; i++) {
        if (!check_element(&o, part, &v, i, at, f)) {
            return false;
        }
    }
    return true;
}
