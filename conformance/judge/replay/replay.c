/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - the judge's own reduction and optimizer, element by element, as
 * engine.h (rule 3) and op.h state them.
 */
#include "judge/replay/replay.h"

#include "cases/case_factors.h"
#include "judge/replay/replay_orders.h"

#include <fsdp/arith/bits.h>
#include <fsdp/arith/cast.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool knows_no_more(struct finding *f)
{
    return finding_text(f, finding_at(NULL, -1, -1, -1),
                        "more ranks, microbatches or uses of a parameter than "
                        "the judge knows");
}

/* The local gradients of one microbatch, of all ranks. */
static bool find_uses(const struct expect *e, const struct record *r,
                      const struct compare_part *part, uint32_t b,
                      struct replay_reduction *out, struct finding *f)
{
    struct expect_use use[REPLAY_USES];

    out->uses[b] = expect_uses(e, part->parameter, b, REPLAY_USES, use);
    if (out->uses[b] > REPLAY_USES) {
        return knows_no_more(f);
    }
    for (uint32_t j = 0; j < out->uses[b]; j++) {
        for (uint32_t k = 0; k < e->c->ranks; k++) {
            struct compare_part local = *part;

            local.rank = k;
            local.microbatch = b;
            local.parameter = use[j].parameter;
            local.base =
                use[j].backward * fsdp_numel(e->model, local.parameter);
            out->grad[b][j][k] =
                compare_values_in_whole(e, r, k, RECORD_LOCAL_GRADIENT, &local);
            if (!out->grad[b][j][k]) {
                return compare_missing(&local, RECORD_LOCAL_GRADIENT, f);
            }
        }
    }
    return true;
}

bool replay_reduction_find(const struct expect *e, const struct record *r,
                           const struct compare_part *part,
                           struct replay_reduction *out, struct finding *f)
{
    *out = (struct replay_reduction){
        .e = e,
        .unit = part->unit,
        .parameter = part->parameter,
        .first = part->first,
        .divide =
            e->unit[part->unit].divide * e->unit[part->unit].factor.before,
        .factor = e->unit[part->unit].factor,
    };
    if (e->c->ranks > WORLD_MAX_RANKS ||
        e->c->microbatches > CASE_MAX_MICROBATCHES) {
        return knows_no_more(f);
    }
    for (uint32_t b = 0; b < e->c->microbatches; b++) {
        if (!find_uses(e, r, part, b, out, f)) {
            return false;
        }
    }
    return true;
}

/* If the uses of a parameter in a pass are added up before anybody sees them,
 * their sum in the dtype of gradients. */
static float of_pass(const struct replay_reduction *reduction, uint32_t b,
                     uint32_t k, uint64_t i)
{
    const uint32_t dtype = reduction->e->unit[reduction->unit].dtype.grad;
    float sum = reduction->grad[b][0][k][i];

    for (uint32_t j = 1; j < reduction->uses[b]; j++) {
        sum = fsdp_round(dtype, sum + reduction->grad[b][j][k][i]);
    }
    return sum;
}

/* An engine from elsewhere that declares no order adds the gradient of a whole
 * pass at once. */
static void accumulate_pass(const struct replay_reduction *reduction,
                            uint32_t b, uint64_t i,
                            float pending[WORLD_MAX_RANKS], bool *has)
{
    const uint32_t dtype = reduction->e->unit[reduction->unit].dtype.accumulate;

    for (uint32_t k = 0; k < reduction->e->c->ranks; k++) {
        const float g = of_pass(reduction, b, k, i);

        pending[k] = fsdp_round(dtype, *has ? pending[k] + g : g);
    }
    *has = true;
}

/* The first gradient of a sum is kept as it is, because +0 + -0 is not -0. */
void replay_accumulate(const struct replay_reduction *reduction, uint32_t b,
                       uint64_t i, float pending[WORLD_MAX_RANKS], bool *has)
{
    const uint32_t dtype = reduction->e->unit[reduction->unit].dtype.accumulate;

    if (reduction->e->any_fold && reduction->uses[b] > 1) {
        accumulate_pass(reduction, b, i, pending, has);
        return;
    }
    for (uint32_t j = 0; j < reduction->uses[b]; j++) {
        for (uint32_t k = 0; k < reduction->e->c->ranks; k++) {
            /* replay_reduction_find has seen that all are there.
             * NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
            float g = reduction->grad[b][j][k][i];

            pending[k] = fsdp_round(dtype, *has ? pending[k] + g : g);
        }
        *has = true;
    }
}

/* A parameter without a gradient contributes +0. */
float replay_reduced(const struct replay_reduction *reduction, uint64_t i)
{
    const struct run_case *c = reduction->e->c;
    const size_t bytes = c->ranks * sizeof(float); /* of `pending` in use */
    float pending[WORLD_MAX_RANKS];
    float sum = 0.0f;
    bool is_pending = false, is_sum = false;

    memset(pending, 0, bytes);
    for (uint32_t b = 0; b < c->microbatches; b++) {
        replay_accumulate(reduction, b, i, pending, &is_pending);
        for (uint32_t k = 0;
             reduction->predivides_each && c->sync[b] == 0 && k < c->ranks;
             k++) {
            pending[k] *= reduction->factor.before;
        }
        if (c->sync[b] != 0) {
            uint64_t place = expect_place_of_gradient(
                reduction->e, reduction->parameter, reduction->first + i);
            float g = expect_reduce(reduction->e, reduction->unit, place,
                                    pending, reduction->factor);

            sum = is_sum ? sum + g : g;
            is_sum = true;
            is_pending = false;
            memset(pending, 0, bytes);
        }
    }
    return sum;
}

/* For an engine that declares no order. The first element that no order gives
 * is compared with the fold by rank. */
static bool in_some_order(const struct compare_part *part,
                          const struct replay_reduction *reduction,
                          const float *got, struct finding *f)
{
    uint64_t bad;
    struct finding at =
        finding_at_part(record_stage_name(RECORD_REDUCED), -1, part);

    if (orders_hold(reduction, got, part->n, &bad)) {
        return true;
    }
    at.element = (int64_t)(part->first + bad);
    (void)finding_bits(f, at, got[bad], replay_reduced(reduction, bad),
                       "no order of the ranks' gradients gives this");
    replay_hint(reduction, got, part->n, f);
    return false;
}

bool replay_compare_reduced(const struct expect *e, const struct record *r,
                            const struct compare_part *part, struct finding *f)
{
    const float *got = compare_values(r, RECORD_REDUCED, part);
    struct replay_reduction reduction;

    if (!e->stepped[part->parameter]) {
        return !got || finding_text(
                           f, finding_at("reduced", part->step, -1, part->rank),
                           "a gradient in a unit that has no backward");
    }
    if (!got) {
        return compare_missing(part, RECORD_REDUCED, f);
    }
    if (!replay_reduction_find(e, r, part, &reduction, f)) {
        return false;
    }
    if (e->any_fold) {
        return in_some_order(part, &reduction, got, f);
    }
    for (uint64_t i = 0; i < part->n; i++) {
        if (!compare_element(e, part, RECORD_REDUCED, i, got[i],
                             replay_reduced(&reduction, i), f)) {
            replay_hint(&reduction, got, part->n, f);
            return false;
        }
    }
    return true;
}

bool replay_reduced_holds(const struct expect *e, const struct record *r,
                          struct finding *f)
{
    return compare_parts(e, r, 0, compare_recorded_steps(e),
                         replay_compare_reduced, f);
}

void replay_numbers(const struct expect *e, uint32_t group, uint32_t step,
                    struct replay_optimizer *o)
{
    struct case_numbers n;

    if (group == REPLAY_OPTIONS || !case_numbers_of_group(e->c, group, &n)) {
        n = (struct case_numbers){e->options.momentum, e->options.beta1,
                                  e->options.beta2, e->options.eps};
    }
    o->momentum = n.momentum;
    o->beta1 = n.beta1;
    o->beta2 = n.beta2;
    o->eps = n.eps;
    o->p1 = o->p2 = 1.0f;
    for (uint32_t t = 0; t <= step; t++) {
        o->p1 *= o->beta1;
        o->p2 *= o->beta2;
    }
}

struct replay_optimizer replay_optimizer_at(const struct expect *e,
                                            uint32_t parameter, uint32_t step)
{
    bool decays = (e->model->parameter_flags[parameter] & FSDP_NO_DECAY) == 0;
    uint32_t group = case_group_of(e->c, parameter);
    struct replay_optimizer o = {
        .kind = e->options.optimizer,
        .lr = case_group_lr(e->c, group),
        .weight_decay = decays ? case_group_decay(e->c, group) : 0.0f};

    replay_numbers(e, group, step, &o);
    return o;
}

static struct replay_element step_adamw(const struct replay_optimizer *o,
                                        struct replay_element x, float g)
{
    float m = fmaf(o->beta1, x.state[0], (1.0f - o->beta1) * g);
    float v = fmaf(o->beta2, x.state[1], ((1.0f - o->beta2) * g) * g);
    float w = fmaf(-(o->lr * o->weight_decay), x.weight, x.weight);

    w = fmaf(-(o->lr / (1.0f - o->p1)),
             m / (sqrtf(v) / sqrtf(1.0f - o->p2) + o->eps), w);
    return (struct replay_element){.weight = w, .state = {m, v}};
}

struct replay_element replay_step(const struct replay_optimizer *o,
                                  struct replay_element x, float g)
{
    float d;

    if (o->kind == FSDP_OPTIMIZER_ADAMW) {
        return step_adamw(o, x, g);
    }
    d = !(o->weight_decay != 0.0f) ? g : fmaf(o->weight_decay, x.weight, g);
    if (o->kind == FSDP_OPTIMIZER_MOMENTUM) {
        x.state[0] = fmaf(o->momentum, x.state[0], d);
        d = x.state[0];
    }
    x.weight = fmaf(-o->lr, d, x.weight);
    return x;
}

bool replay_spoil_reduced(const struct expect *e, struct record *r)
{
    struct record_tensor *t = compare_tensor_to_spoil(r, RECORD_REDUCED, 0);

    if (!e->any_fold) {
        return compare_spoil_stage(r, RECORD_REDUCED, 0);
    }
    if (!t) {
        return false;
    }
    /* A change of more than another order of adding up could make, and less
     * than bf16 would make. */
    t->data[0] = fsdp_f32_from_bits(fsdp_f32_bits(t->data[0]) ^ 0x1555u);
    return true;
}

uint32_t replay_stepped_stage(const struct expect *e)
{
    return e->c->scenario == CASE_CLIP ? RECORD_CLIPPED : RECORD_REDUCED;
}

bool replay_values_find(const struct expect *e, const struct record *r,
                        const struct compare_part *part,
                        struct replay_values *out, struct finding *f)
{
    static const uint32_t states[] = {[FSDP_OPTIMIZER_SGD] = 0,
                                      [FSDP_OPTIMIZER_MOMENTUM] = 1,
                                      [FSDP_OPTIMIZER_ADAMW] = 2};

    if (e->options.optimizer > FSDP_OPTIMIZER_ADAMW) {
        return finding_text(f, finding_at("after", part->step, -1, -1),
                            "an optimizer that the judge does not know");
    }
    *out = (struct replay_values){
        .n_states = states[e->options.optimizer],
        .is_stepped = e->stepped[part->parameter],
        .before = compare_values(r, RECORD_BEFORE, part),
        .gradient = compare_values(r, replay_stepped_stage(e), part),
        .after = compare_values(r, RECORD_AFTER, part)};
    if (!out->before) {
        return compare_missing(part, RECORD_BEFORE, f);
    }
    if (!out->gradient && out->is_stepped) {
        return compare_missing(part, replay_stepped_stage(e), f);
    }
    if (!out->after) {
        return compare_missing(part, RECORD_AFTER, f);
    }
    if (!expect_is_trainable(e, part->parameter)) {
        out->n_states = 0;
    }
    for (uint32_t s = 0; s < out->n_states; s++) {
        uint32_t stage = s == 0 ? RECORD_STATE0 : RECORD_STATE1;
        struct compare_part earlier = *part;

        out->state_after[s] = compare_values(r, stage, part);
        if (!out->state_after[s]) {
            return compare_missing(part, stage, f);
        }
        if (part->step > 0) {
            earlier.step = part->step - 1;
            out->state_before[s] = compare_values(r, stage, &earlier);
            if (!out->state_before[s]) {
                return compare_missing(&earlier, stage, f);
            }
        }
    }
    return true;
}

/* Says so if all updates are the same multiple of the right ones. As weights
 * are rounded, their sum is compared. */
static void hint_at_update(const struct replay_optimizer *o,
                           const struct replay_values *v, uint64_t n,
                           struct finding *f)
{
    double got = 0.0;
    double want = 0.0;
    double ratio;
    double times;

    for (uint64_t i = 0; i < n && o->kind == FSDP_OPTIMIZER_SGD; i++) {
        struct replay_element x = replay_step(
            o, (struct replay_element){.weight = v->before[i]}, v->gradient[i]);
        double update = (double)x.weight - (double)v->before[i];

        got += update * ((double)v->after[i] - (double)v->before[i]);
        want += update * update;
    }
    ratio = got / want;
    times = round(fabs(ratio) < 1.0 ? 1.0 / ratio : ratio);
    if (!(want > 0.0) || !(fabs(times) <= 1024.0) ||
        !(fabs((fabs(ratio) < 1.0 ? 1.0 / ratio : ratio) - times) <
          1e-3 * fabs(times)) ||
        times == 1.0) {
        return;
    }
    if (times == -1.0) {
        snprintf(f->note, sizeof(f->note),
                 "the whole update of this part has the wrong sign");
    } else {
        snprintf(f->note, sizeof(f->note),
                 "the whole update of this part (weights after less "
                 "before) is what it should be, %s %.0f",
                 fabs(ratio) < 1.0 ? "divided by" : "times", times);
    }
}

bool replay_compare_step(const struct expect *e, const struct record *r,
                         const struct compare_part *part, struct finding *f)
{
    struct replay_optimizer o =
        replay_optimizer_at(e, part->parameter, part->step);
    struct replay_values v;

    if (!replay_values_find(e, r, part, &v, f)) {
        return false;
    }
    for (uint64_t i = 0; i < part->n; i++) {
        /* replay_values_find has seen that all are there.
         * NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
        struct replay_element x = {.weight = v.before[i]};

        for (uint32_t s = 0; s < v.n_states; s++) {
            x.state[s] = !v.state_before[s] ? 0.0f : v.state_before[s][i];
        }
        if (v.is_stepped) {
            x = replay_step(&o, x, v.gradient[i]);
        }
        for (uint32_t s = 0; s < v.n_states; s++) {
            /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): as above */
            float after = v.state_after[s][i];

            if (!compare_element(e, part,
                                 s == 0 ? RECORD_STATE0 : RECORD_STATE1, i,
                                 after, x.state[s], f)) {
                return false;
            }
        }
        if (!compare_element(e, part, RECORD_AFTER, i, v.after[i], x.weight,
                             f)) {
            if (v.is_stepped) {
                hint_at_update(&o, &v, part->n, f);
            }
            return false;
        }
    }
    return true;
}
