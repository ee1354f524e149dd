/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group_requirements.c - each parameter is stepped by the numbers of its group.
 * A wrong step is compared with those that other numbers would make; if it is
 * none of them, step.* reports it.
 */
#include "requirements/families.h"

#include "cases/case_factors.h"
#include "judge/compare/compare_checks.h"
#include "judge/replay/replay.h"

#include <fsdp/arith/bits.h>
#include <math.h>

static bool is_same(float a, float b)
{
    return fsdp_f32_bits(a) == fsdp_f32_bits(b);
}

static struct replay_element element(const struct replay_values *v,
                                     const float *weight,
                                     const float *const *state, uint64_t i)
{
    struct replay_element x = {.weight = weight[i]};

    for (uint32_t s = 0; s < v->n_states; s++) {
        x.state[s] = !state[s] ? 0.0f : state[s][i];
    }
    return x;
}

/* The result of optimizer o for the part's element i. */
static struct replay_element next(const struct replay_values *v,
                                  const struct replay_optimizer *o, uint64_t i)
{
    return replay_step(o, element(v, v->before, v->state_before, i),
                       v->gradient[i]);
}

/* Whether optimizer o makes `got` of the part's element i: bit for bit, or, for
 * an engine with its own arithmetic, within its roundings. */
static bool makes(const struct expect *e, const struct compare_part *part,
                  const struct replay_values *v,
                  const struct replay_optimizer *o, uint64_t i,
                  struct replay_element got)
{
    const struct replay_element before =
        element(v, v->before, v->state_before, i);
    const struct replay_element x = replay_step(o, before, v->gradient[i]);

    return (is_same(got.weight, x.weight) &&
            is_same(got.state[0], x.state[0]) &&
            is_same(got.state[1], x.state[1])) ||
           (e->profile == EXPECT_OWN &&
            replay_bound_near(o, part->step, &before, v->gradient[i], &got));
}

static bool is_step_of(const struct expect *e, const struct compare_part *part,
                       const struct replay_values *v,
                       const struct replay_optimizer *o)
{
    for (uint64_t i = 0; i < part->n; i++) {
        if (!makes(e, part, v, o, i, element(v, v->after, v->state_after, i))) {
            return false;
        }
    }
    return true;
}

/* ---- Mistakes ------------------------------------------------------------*/

/* Mistake k of a parameter in a step; false: there are not so many. */
typedef bool mistake_of(const struct expect *e, uint32_t parameter,
                        uint32_t step, uint32_t k,
                        struct replay_optimizer *out);

/* The optimizer of the parameter if it were in this group. */
static struct replay_optimizer as_in(const struct expect *e, uint32_t parameter,
                                     uint32_t step, uint32_t group)
{
    const bool decays =
        (e->model->parameter_flags[parameter] & FSDP_NO_DECAY) == 0;
    struct replay_optimizer o = replay_optimizer_at(e, parameter, step);

    o.lr = case_group_lr(e->c, group);
    o.weight_decay = decays ? case_group_decay(e->c, group) : 0.0f;
    replay_numbers(e, group, step, &o);
    return o;
}

/* Mistakes: the numbers of another group, or of the options; then only their
 * products, and only their eps. At last products that were not kept, but made
 * anew. */
static bool other_betas(const struct expect *e, uint32_t parameter,
                        uint32_t step, uint32_t k, struct replay_optimizer *out)
{
    const uint32_t n = case_groups(e->c) + 1;
    const uint32_t from = k % n + 1 == n ? REPLAY_OPTIONS : k % n;
    const struct replay_optimizer own = replay_optimizer_at(e, parameter, step);

    struct replay_optimizer other = own;

    replay_numbers(e, from, step, &other);
    *out = k < n ? other : own;
    if (k >= n && k < 2 * n) {
        out->p1 = other.p1;
        out->p2 = other.p2;
    } else if (k >= 2 * n && k < 3 * n) {
        out->eps = other.eps;
    } else if (k == 3 * n) {
        out->p1 = powf(own.beta1, (float)step + 1.0f);
        out->p2 = powf(own.beta2, (float)step + 1.0f);
    }
    return k <= 3 * n;
}

/* Mistake: groups are counted without the empty ones. */
static bool shifted(const struct expect *e, uint32_t parameter, uint32_t step,
                    uint32_t k, struct replay_optimizer *out)
{
    const uint32_t own = case_group_of(e->c, parameter);
    uint32_t group = 0;

    for (uint32_t g = 0; g < own; g++) {
        bool used = false;

        for (uint32_t p = 0; p < e->model->n_parameters; p++) {
            used = used || case_group_of(e->c, p) == g;
        }
        group += used ? 1 : 0;
    }
    *out = as_in(e, parameter, step, group);
    return k == 0 && group != own;
}

static uint32_t first_of_unit(const struct expect *e, uint32_t parameter)
{
    uint32_t p = 0;

    while (e->unit_of_parameter[p] != e->unit_of_parameter[parameter]) {
        p++;
    }
    return p;
}

/* Mistake: all parameters of a unit are stepped as its first one. */
static bool uncut(const struct expect *e, uint32_t parameter, uint32_t step,
                  uint32_t k, struct replay_optimizer *out)
{
    const uint32_t group = case_group_of(e->c, first_of_unit(e, parameter));

    *out = as_in(e, parameter, step, group);
    return k == 0 && group != case_group_of(e->c, parameter);
}

static bool decayed(const struct expect *e, uint32_t parameter, uint32_t step,
                    uint32_t k, struct replay_optimizer *out)
{
    *out = replay_optimizer_at(e, parameter, step);
    out->weight_decay = case_group_decay(e->c, case_group_of(e->c, parameter));
    return k == 0 &&
           (e->model->parameter_flags[parameter] & FSDP_NO_DECAY) != 0;
}

/* ---- Checked -------------------------------------------------------------*/

/* The row's `kind` says which mistake it is about; `words` say what that
 * mistake does. */
static mistake_of *const mistakes[] = {other_betas, shifted, uncut, decayed};
enum {
    OTHER_BETAS,
    SHIFTED,
    UNCUT,
    DECAYED
};

static bool is_not(const struct expect *e, const struct record *r,
                   const struct compare_part *part, struct finding *f)
{
    mistake_of *const mistake = mistakes[part->q->kind];
    const struct replay_optimizer own =
        replay_optimizer_at(e, part->parameter, part->step);
    struct finding at = finding_at_part("after", -1, part);
    struct replay_optimizer wrong;
    struct replay_values v;

    if (!replay_values_find(e, r, part, &v, f)) {
        return false;
    }
    if (!v.is_stepped || is_step_of(e, part, &v, &own)) {
        return true;
    }
    for (uint32_t k = 0; mistake(e, part->parameter, part->step, k, &wrong);
         k++) {
        if (is_step_of(e, part, &v, &wrong)) {
            return finding_text(f, at, part->q->words);
        }
    }
    return true;
}

/* ---- Spoiled: all that was stepped, in the last step that is recorded -----*/

/* Whether the wrong optimizer makes other values than the right one, so that
 * the mistake can be seen. */
static bool is_told(const struct expect *e, const struct compare_part *part,
                    const struct replay_values *v,
                    const struct replay_optimizer *wrong)
{
    const struct replay_optimizer own =
        replay_optimizer_at(e, part->parameter, part->step);

    for (uint64_t i = 0; i < part->n; i++) {
        if (!makes(e, part, v, &own, i, next(v, wrong, i))) {
            return true;
        }
    }
    return false;
}

static bool spoil_part(const struct expect *e, struct record *r,
                       struct record_rank *rank, struct record_tensor *after,
                       const struct replay_optimizer *wrong)
{
    const struct compare_part part = {
        .unit = e->unit_of_parameter[after->parameter],
        .parameter = after->parameter,
        .first = after->first,
        .n = after->n,
        .step = after->step};
    struct replay_values v;
    struct finding unused;

    if (!replay_values_find(e, r, &part, &v, &unused) || !v.is_stepped ||
        !is_told(e, &part, &v, wrong)) {
        return false;
    }
    for (uint64_t i = 0; i < part.n; i++) {
        const struct replay_element x = next(&v, wrong, i);

        after->data[i] = x.weight;
        for (uint32_t j = 0; j < rank->n_tensors; j++) {
            struct record_tensor *t = &rank->tensor[j];

            if (t->step == part.step && t->parameter == part.parameter &&
                t->first == part.first && t->n == part.n && t->data &&
                (t->stage == RECORD_STATE0 || t->stage == RECORD_STATE1)) {
                t->data[i] = x.state[t->stage == RECORD_STATE0 ? 0 : 1];
            }
        }
    }
    return true;
}

static bool mistake_spoil(const struct requirement *q, const struct expect *e,
                          struct record *r)
{
    mistake_of *const mistake = mistakes[q->kind];
    struct record_rank *rank = compare_rank_to_spoil(r, 0);
    const uint32_t last = compare_recorded_steps(e) - 1;

    for (uint32_t i = 0; rank && i < rank->n_tensors; i++) {
        struct record_tensor *t = &rank->tensor[i];
        struct replay_optimizer wrong;

        for (uint32_t k = 0;
             t->stage == RECORD_AFTER && t->step == last && t->n > 0 &&
             t->data && t->parameter < e->model->n_parameters &&
             mistake(e, t->parameter, last, k, &wrong);
             k++) {
            if (spoil_part(e, r, rank, t, &wrong)) {
                return true;
            }
        }
    }
    return false;
}

static bool mistake_holds(const struct requirement *q, const struct expect *e,
                          const struct record *r, struct finding *f)
{
    return compare_parts_of(q, e, r, 0, compare_recorded_steps(e), is_not, f);
}

static const struct requirement_check check_mistake = {.holds = mistake_holds,
                                                       .spoil = mistake_spoil};

/* ---- Where they apply ----------------------------------------------------*/

static bool has_betas(const struct expect *e)
{
    return compare_case_staged(e) && case_has_numbers(e->c) &&
           e->c->optimizer != FSDP_OPTIMIZER_SGD;
}

static bool has_empty(const struct expect *e)
{
    return compare_case_staged(e) && e->c->factors == CASE_EMPTY_GROUP;
}

static bool is_cut(const struct expect *e)
{
    bool any = false;

    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        any = any || case_group_of(e->c, first_of_unit(e, p)) !=
                         case_group_of(e->c, p);
    }
    return any && compare_case_staged(e) && case_has_numbers(e->c);
}

static bool spares_some(const struct expect *e)
{
    bool any = false;

    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        any = any || (e->model->parameter_flags[p] & FSDP_NO_DECAY) != 0;
    }
    return any && compare_case_staged(e) && case_has_numbers(e->c) &&
           e->c->weight_decay != 0.0f;
}

const struct requirement group_requirements[] = {
    {.since = "1.1",
     .must = 1,
     .level = LEVEL_STEP,
     .needs = "step.weights-untouched",
     .claim = "groups-betas",
     .check = &check_mistake},
    {.id = "groups.betas",
     .text = "Betas, eps and momentum of a parameter, and the products of its "
             "betas, are those of its own group.",
     .needs = "step.weights-untouched groups.cut groups.empty",
     .applies = has_betas,
     .kind = OTHER_BETAS,
     .words =
         "all of this part was stepped by the betas, eps or momentum of "
         "another group, or of the options, or by other products of the betas"},
    {.id = "groups.cut",
     .text = "In a unit with several groups each element is stepped by its own "
             "group's numbers.",
     .applies = is_cut,
     .kind = UNCUT,
     .words = "all of this part was stepped by the group of its unit's first "
              "parameter"},
    {.id = "groups.empty",
     .text = "A group without parameters moves no other group's numbers.",
     .applies = has_empty,
     .kind = SHIFTED,
     .words = "all of this part was stepped by the group's numbers that has "
              "its place where the empty one is not counted"},
    {.id = "groups.no-decay",
     .text = "A parameter that must not decay does not, whatever its group "
             "says.",
     .applies = spares_some,
     .kind = DECAYED,
     .words = "all of this part has decayed, and it must not"},
    {0},
};
