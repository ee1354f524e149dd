/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control_factor_requirements.c - what scripts say of a unit's divide and
 * predivide factors while it trains: by which of them a gradient is scaled that
 * is reduced later, and that nothing is which was reduced before.
 */
#include "requirements/families.h"
#include "requirements/script_action.h"

#include "judge/compare/compare_checks.h"

#include <math.h>

static const struct script_action *action_at(const struct expect *e, uint32_t i)
{
    return e->event[i].action;
}

/* It says factors of units; one of all that is refused turns none. */
static bool says_factor(const struct script_action *a)
{
    return script_sets_factor(a) || (a->verb == SCRIPT_WRONG &&
                                     a->call == SCRIPT_CALL_SET_DIVIDE_OF_ALL);
}

static bool turns(const struct script_action *a, uint32_t u)
{
    return says_factor(a) &&
           (a->verb == SCRIPT_WRONG || a->unit == u || a->unit == FSDP_NO_UNIT);
}

/* Whether a factor of unit u was turned, or was to be, in the life that action
 * i is in. */
static bool is_turned(const struct expect *e, uint32_t i, uint32_t u)
{
    while (i-- > 0 && action_at(e, i)->verb != SCRIPT_AGAIN) {
        if (turns(action_at(e, i), u)) {
            return true;
        }
    }
    return false;
}

/* A look behind a pass that was made with such a factor, or behind what turns
 * one. */
static bool shows(const struct expect *e, uint32_t i, uint32_t u)
{
    const struct script_action *before = i > 0 ? action_at(e, i - 1) : NULL;

    return before && action_at(e, i)->verb == SCRIPT_LOOK &&
           ((before->verb == SCRIPT_PASS && before->ending == SCRIPT_WHOLE) ||
            says_factor(before)) &&
           is_turned(e, i, u);
}

static bool factor_of_part(const struct expect *e, const struct record *r,
                           const struct compare_part *part, struct finding *f)
{
    const float *got = compare_values(r, RECORD_REDUCED, part);
    const float *want = compare_baseline(e, RECORD_REDUCED, part);
    struct compare_part of = *part;

    of.any_nan = compare_any_nan(e);
    of.any_zero = e->profile == EXPECT_OWN;
    return !got || !want || /* script.values knows of which there are none */
           !shows(e, part->step, part->unit) ||
           !expect_is_trainable(expect_at(e, part->step), part->parameter) ||
           compare_equal(e, &of, RECORD_REDUCED, got, want, f);
}

/* The first look that shows any unit's, or all actions. */
static uint32_t first_shown(const struct expect *e)
{
    for (uint32_t i = 0; case_is_script(e->c) && i < e->n_events; i++) {
        for (uint32_t u = 0; u < e->units->n_units; u++) {
            if (expect_at(e, i)->unit[u].trains && shows(e, i, u)) {
                return i;
            }
        }
    }
    return e->n_events;
}

static bool turns_factors(const struct expect *e)
{
    return case_is_script(e->c) && first_shown(e) < e->n_events;
}

static bool factor_holds(const struct expect *e, const struct record *r,
                         struct finding *f)
{
    for (uint32_t i = first_shown(e); i < e->n_events; i++) {
        if (action_at(e, i)->verb == SCRIPT_LOOK &&
            !compare_parts(e, r, i, i + 1, factor_of_part, f)) {
            return script_action_tell(e, i, f);
        }
    }
    return true;
}

/* Whether a tensor is of what factor_of_part compares. */
static bool is_shown(const struct expect *e, const struct record_tensor *t)
{
    return t->stage == RECORD_REDUCED && t->n > 0 && t->data &&
           t->step < e->n_events &&
           expect_is_trainable(expect_at(e, t->step), t->parameter) &&
           shows(e, t->step, e->unit_of_parameter[t->parameter]);
}

static bool factor_spoil(const struct expect *e, struct record *r)
{
    for (uint32_t k = r->n_ranks; k > 0; k--) {
        struct record_rank *rank = compare_rank_to_spoil(r, k - 1);

        for (uint32_t i = 0; rank && i < rank->n_tensors; i++) {
            float *x = rank->tensor[i].data;

            if (is_shown(e, &rank->tensor[i])) {
                x[0] = isnan(x[0]) || x[0] == 0.0f ? 1.0f : 0.0f;
                return true;
            }
        }
    }
    return false;
}

const struct requirement control_factor_requirements[] = {
    {.since = "1.1",
     .must = 1,
     .level = LEVEL_ERRORS,
     .needs = "run.completes",
     .claim = "factor-controls"},
    {.id = "control.factor",
     .text = "Gradients of a unit are divided by the factors that were set "
             "last before the pass that reduces them, whatever was refused "
             "since; what was reduced before stays as it is.",
     .level = LEVEL_REDUCE,
     .beside_training = true,
     .needs = "run.shows-every-step control.unit-sync control.all-reduce "
              "control.partial-sum",
     .profile = PROFILE_BITS,
     .applies = turns_factors,
     .holds = factor_holds,
     .spoil = factor_spoil},
    {.id = "error.control-factors",
     .text = "Factors of a unit that are 0, negative or not finite, or by "
             "which a gradient would be multiplied by what is not finite, and "
             "any in a pass, are refused as INVALID; the message says of which "
             "unit and knob.",
     .check = &check_asked_named,
     .answers = {{"set-divide-to-zero", FSDP_ERR_INVALID},
                 {"set-divide-negative", FSDP_ERR_INVALID},
                 {"set-divide-to-nan", FSDP_ERR_INVALID},
                 {"set-predivide-to-zero", FSDP_ERR_INVALID},
                 {"set-predivide-infinite", FSDP_ERR_INVALID},
                 {"set-predivide-tiny", FSDP_ERR_INVALID},
                 {"set-factor-in-pass", FSDP_ERR_INVALID}}},
    /* And control.factor tells of the units before it. */
    {.id = "error.control-factor-of-all",
     .text = "A factor that is set for every unit is refused as INVALID where "
             "one unit's gradients would be multiplied by what is not finite.",
     .check = &check_asked_named,
     .answers = {{"set-divide-of-all", FSDP_ERR_INVALID}}},
    {0},
};
