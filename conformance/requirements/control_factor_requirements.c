/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control_factor_requirements.c - scripts that change a unit's divide and
 * predivide factors while it trains: by which factor a gradient is scaled that
 * is reduced later, and that gradients which were reduced before are not scaled
 * again.
 */
#include "requirements/families.h"
#include "requirements/script_checks.h"

#include "judge/compare/compare_checks.h"

/* Whether the action sets a factor of units, or tries to set one for all units,
 * which is refused and must change none. */
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

/* Whether a factor of unit u was changed, or a change was tried, before action
 * i in the same life. */
static bool is_turned(const struct expect *e, uint32_t i, uint32_t u)
{
    while (i-- > 0 && script_at(e, i)->verb != SCRIPT_AGAIN) {
        if (turns(script_at(e, i), u)) {
            return true;
        }
    }
    return false;
}

/* Whether action i is a look behind a pass that was made with such a factor, or
 * behind an action that changes one. */
static bool shows(const struct expect *e, uint32_t i, uint32_t u)
{
    const struct script_action *before = i > 0 ? script_at(e, i - 1) : NULL;

    return before && script_at(e, i)->verb == SCRIPT_LOOK &&
           ((before->verb == SCRIPT_PASS && before->ending == SCRIPT_WHOLE) ||
            says_factor(before)) &&
           is_turned(e, i, u);
}

static bool is_divided(const struct requirement *q, const struct expect *e,
                       uint32_t i, uint32_t p, uint32_t stage)
{
    (void)q;
    return stage == RECORD_REDUCED && expect_is_trainable(expect_at(e, i), p) &&
           shows(e, i, e->unit_of_parameter[p]);
}

/* Where there is no gradient, script.values judges. */
static bool factor_of_part(const struct expect *e, const struct record *r,
                           const struct compare_part *part, struct finding *f)
{
    return !compare_values(r, RECORD_REDUCED, part) ||
           !compare_baseline(e, RECORD_REDUCED, part) ||
           !script_look_shows(e, part, RECORD_REDUCED) ||
           compare_as_baseline(e, r, part, RECORD_REDUCED, f);
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
     .check = &check_looks,
     .look = {is_divided, factor_of_part}},
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
    /* (control.factor judges that the units before that one keep theirs.) */
    {.id = "error.control-factor-of-all",
     .text = "A factor that is set for every unit is refused as INVALID where "
             "one unit's gradients would be multiplied by what is not finite.",
     .check = &check_asked_named,
     .answers = {{"set-divide-of-all", FSDP_ERR_INVALID}}},
    {0},
};
