/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thaw_requirements.c - parameters that are frozen and thawed while a model
 * trains: which ones are stepped, and what is kept and saved, from one look of
 * a script to the next.
 */
#include "requirements/families.h"
#include "requirements/script_checks.h"

#include "judge/compare/compare_checks.h"

#include <fsdp/arith/bits.h>

enum {
    NEVER = -1
};

static bool turns(const struct script_action *a)
{
    return a->verb == SCRIPT_FREEZE || a->verb == SCRIPT_THAW;
}

static bool changes(const struct expect *e)
{
    return script_does(e, SCRIPT_FREEZE) || script_does(e, SCRIPT_THAW);
}

static bool trains(const struct expect *e, uint32_t i, uint32_t p)
{
    return expect_is_trainable(expect_at(e, i), p);
}

/* ---- How long ------------------------------------------------------------ */

static bool ends_life(uint32_t verb)
{
    return verb == SCRIPT_AGAIN || verb == SCRIPT_ANEW;
}

/* Steps behind the thaw of p, in action i; NEVER: it is frozen there, was
 * trained from the beginning, or has been loaded since. */
static int64_t since_thaw(const struct expect *e, uint32_t i, uint32_t p)
{
    int64_t n = NEVER;

    for (uint32_t k = 0; k <= i; k++) {
        const uint32_t verb = script_at(e, k)->verb;
        const bool before =
            k > 0 ? trains(e, k - 1, p) : expect_is_trainable(e, p);

        if (ends_life(verb) || verb == SCRIPT_LOAD || !trains(e, k, p)) {
            n = NEVER;
        } else if (!before) {
            n = 0;
        } else if (e->event[k].steps && n != NEVER) {
            n++;
        }
    }
    return n;
}

/* Whether what p has in action i comes from a load, stepped or not. */
static bool is_loaded(const struct expect *e, uint32_t i, uint32_t p)
{
    bool loaded = false;

    for (uint32_t k = 0; k <= i; k++) {
        const uint32_t verb = script_at(e, k)->verb;

        loaded = verb == SCRIPT_LOAD || (loaded && !ends_life(verb));
        loaded = loaded && (trains(e, k, p) || verb == SCRIPT_LOAD);
    }
    return loaded && trains(e, i, p);
}

/* Whether p goes on with what it had, in action i, up to the first step behind
 * the first action of this life that froze or thawed another one: later ones
 * depend on how that was stepped. */
static bool goes_on(const struct expect *e, uint32_t i, uint32_t p)
{
    int64_t steps = NEVER;

    for (uint32_t k = 0; k <= i; k++) {
        const struct script_action *a = script_at(e, k);

        if (ends_life(a->verb)) {
            steps = NEVER;
        } else if (steps == NEVER) {
            steps = turns(a) ? 0 : NEVER;
        } else {
            steps += e->event[k].steps;
        }
    }
    return (steps == 0 || steps == 1) && trains(e, i, p) &&
           since_thaw(e, i, p) == NEVER && !is_loaded(e, i, p);
}

/* The last look before i from which on p was frozen; i: there is none. */
static uint32_t frozen_since(const struct expect *e, uint32_t i, uint32_t p)
{
    uint32_t look = i;

    for (uint32_t k = i; k-- > 0 && !trains(e, k, p);) {
        const uint32_t verb = script_at(e, k)->verb;

        if (ends_life(verb) || verb == SCRIPT_LOAD || verb == SCRIPT_ASSIGN ||
            verb == SCRIPT_SEND) {
            break;
        }
        look = verb == SCRIPT_LOOK ? k : look;
    }
    return trains(e, i, p) ? i : look;
}

/* ---- Values -------------------------------------------------------------- */

static bool starts_of_part(const struct expect *e, const struct record *r,
                           const struct compare_part *part, struct finding *f)
{
    if (since_thaw(e, part->step, part->parameter) != 0) {
        return true;
    }
    for (uint32_t k = 1; k < compare_n_stages(e); k++) {
        const float *x = compare_values(r, compare_stages[k], part);

        if (!x) {
            return compare_missing(part, compare_stages[k], f);
        }
        for (uint64_t i = 0; i < part->n; i++) {
            if (fsdp_f32_bits(x[i]) != 0) {
                return compare_element(e, part, compare_stages[k], i, x[i],
                                       0.0f, f);
            }
        }
    }
    return true;
}

static bool kept_of_part(const struct expect *e, const struct record *r,
                         const struct compare_part *part, struct finding *f)
{
    const uint32_t since = frozen_since(e, part->step, part->parameter);

    return since == part->step ||
           compare_as_then(e, r, part, RECORD_AFTER, RECORD_AFTER, since, f);
}

static bool is_start(const struct requirement *q, const struct expect *e,
                     uint32_t i, uint32_t p, uint32_t stage)
{
    (void)q;
    return stage == RECORD_STATE0 && compare_n_stages(e) > 1 &&
           since_thaw(e, i, p) == 0;
}

static bool is_stepped(const struct requirement *q, const struct expect *e,
                       uint32_t i, uint32_t p, uint32_t stage)
{
    (void)q;
    return stage == RECORD_AFTER && since_thaw(e, i, p) > 0;
}

static bool is_kept(const struct requirement *q, const struct expect *e,
                    uint32_t i, uint32_t p, uint32_t stage)
{
    (void)q;
    return stage == RECORD_AFTER && frozen_since(e, i, p) < i;
}

static bool is_what_was_loaded(const struct requirement *q,
                               const struct expect *e, uint32_t i, uint32_t p,
                               uint32_t stage)
{
    (void)q;
    return stage == RECORD_AFTER && is_loaded(e, i, p);
}

static bool is_other(const struct requirement *q, const struct expect *e,
                     uint32_t i, uint32_t p, uint32_t stage)
{
    (void)q;
    return stage == RECORD_AFTER && goes_on(e, i, p);
}

const struct requirement thaw_requirements[] = {
    {.since = "1.1",
     .must = 1,
     .level = LEVEL_STEP,
     .needs = "run.shows-every-step thaw.reduces assign.own-part "
              "assign.states-stay",
     .claim = "thaw",
     .applies = changes,
     .check = &check_looks},
    {.id = "thaw.starts",
     .text = "The states of what is thawed are +0 until its first step, "
             "whatever they were before it was frozen.",
     .general = true,
     .needs = "run.shows-every-step thaw.states-rest",
     .look = {is_start, starts_of_part}},
    {.id = "thaw.stepped",
     .text = "What is thawed is stepped from the next pass on, by betas' "
             "products of the steps that it has taken since.",
     .general = true,
     .needs = "run.shows-every-step thaw.reduces thaw.starts "
              "thaw.frozen-keeps thaw.others-stay thaw.loaded "
              "mixed.after-frozen-forward",
     .profile = PROFILE_BITS,
     .look = {is_stepped}},
    {.id = "thaw.frozen-keeps",
     .text = "What is frozen keeps its bits until it is thawed: its moments "
             "and its decay move it no more.",
     .general = true,
     .look = {is_kept, kept_of_part}},
    {.id = "thaw.others-stay",
     .text = "What is trained before a parameter is frozen or thawed, and "
             "behind that, goes on with its states and its steps.",
     .general = true,
     .profile = PROFILE_BITS,
     .look = {is_other}},
    /* Also when other parameters train now: states that are not needed are not
     * loaded. */
    {.id = "thaw.loaded",
     .text = "What is loaded into a life that trains other parameters has the "
             "weights and states that were saved, and goes on with the steps "
             "that each parameter had taken.",
     .general = true,
     .profile = PROFILE_BITS,
     .look = {is_what_was_loaded}},
    {0},
};
