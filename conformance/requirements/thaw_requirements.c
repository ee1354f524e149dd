/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thaw_requirements.c - parameters that are frozen and thawed while a model
 * trains: what of them is stepped, kept and saved, from one look of a script to
 * the next.
 */
#include "requirements/families.h"
#include "requirements/script_action.h"

#include "judge/compare/compare_checks.h"

#include <fsdp/arith/bits.h>

enum {
    NEVER = -1
};

static const struct script_action *action_at(const struct expect *e, uint32_t i)
{
    return e->event[i].action;
}

static bool turns(const struct script_action *a)
{
    return a->verb == SCRIPT_FREEZE || a->verb == SCRIPT_THAW;
}

static bool does(const struct expect *e, uint32_t verb)
{
    for (uint32_t i = 0; case_is_script(e->c) && i < e->n_events; i++) {
        if (action_at(e, i)->verb == verb) {
            return true;
        }
    }
    return false;
}

static bool changes(const struct expect *e)
{
    return does(e, SCRIPT_FREEZE) || does(e, SCRIPT_THAW);
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
        const uint32_t verb = action_at(e, k)->verb;
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
        const uint32_t verb = action_at(e, k)->verb;

        loaded = verb == SCRIPT_LOAD || (loaded && !ends_life(verb));
        loaded = loaded && (trains(e, k, p) || verb == SCRIPT_LOAD);
    }
    return loaded && trains(e, i, p);
}

/* Whether p goes on with what it had, in action i, up to the first step behind
 * the first action of this life that froze or thawed another one: later ones
 * depend on how that was stepped. */
static bool is_other(const struct expect *e, uint32_t i, uint32_t p)
{
    int64_t steps = NEVER;

    for (uint32_t k = 0; k <= i; k++) {
        const struct script_action *a = action_at(e, k);

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
        const uint32_t verb = action_at(e, k)->verb;

        if (ends_life(verb) || verb == SCRIPT_LOAD || verb == SCRIPT_ASSIGN ||
            verb == SCRIPT_SEND) {
            break;
        }
        look = verb == SCRIPT_LOOK ? k : look;
    }
    return trains(e, i, p) ? i : look;
}

/* ---- Values -------------------------------------------------------------- */

static bool as_baseline(const struct expect *e, const struct record *r,
                        const struct compare_part *part, struct finding *f)
{
    struct compare_part of = *part;

    of.any_nan = compare_any_nan(e);
    of.any_zero = e->profile == EXPECT_OWN;
    for (uint32_t k = 0; k < compare_n_stages(e); k++) {
        if (!compare_equal(e, &of, compare_stages[k],
                           compare_values(r, compare_stages[k], part),
                           compare_baseline(e, compare_stages[k], part), f)) {
            return false;
        }
    }
    return true;
}

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

static bool stepped_of_part(const struct expect *e, const struct record *r,
                            const struct compare_part *part, struct finding *f)
{
    return since_thaw(e, part->step, part->parameter) <= 0 ||
           as_baseline(e, r, part, f);
}

static bool kept_of_part(const struct expect *e, const struct record *r,
                         const struct compare_part *part, struct finding *f)
{
    struct compare_part now = *part;
    struct compare_part earlier = *part;

    now.own = true; /* a NaN that is frozen stays one */
    earlier.step = frozen_since(e, part->step, part->parameter);
    return earlier.step == part->step ||
           compare_equal(e, &now, RECORD_AFTER,
                         compare_values(r, RECORD_AFTER, part),
                         compare_values(r, RECORD_AFTER, &earlier), f);
}

static bool loaded_of_part(const struct expect *e, const struct record *r,
                           const struct compare_part *part, struct finding *f)
{
    return !is_loaded(e, part->step, part->parameter) ||
           as_baseline(e, r, part, f);
}

static bool others_of_part(const struct expect *e, const struct record *r,
                           const struct compare_part *part, struct finding *f)
{
    return !is_other(e, part->step, part->parameter) ||
           as_baseline(e, r, part, f);
}

/* Of every look. */
static bool
looks_hold(const struct expect *e, const struct record *r,
           bool (*of_part)(const struct expect *e, const struct record *r,
                           const struct compare_part *part, struct finding *f),
           struct finding *f)
{
    for (uint32_t i = 0; i < e->n_events; i++) {
        if (action_at(e, i)->verb == SCRIPT_LOOK &&
            !compare_parts(e, r, i, i + 1, of_part, f)) {
            return script_action_tell(e, i, f);
        }
    }
    return true;
}

static bool is_start(const struct expect *e, uint32_t i, uint32_t p)
{
    return compare_n_stages(e) > 1 && since_thaw(e, i, p) == 0;
}

static bool is_stepped(const struct expect *e, uint32_t i, uint32_t p)
{
    return since_thaw(e, i, p) > 0;
}

static bool is_kept(const struct expect *e, uint32_t i, uint32_t p)
{
    return frozen_since(e, i, p) < i;
}

/* Whether a look shows such a parameter. */
static bool shows(const struct expect *e,
                  bool (*is)(const struct expect *e, uint32_t i, uint32_t p))
{
    for (uint32_t i = 0; changes(e) && i < e->n_events; i++) {
        for (uint32_t p = 0; p < e->model->n_parameters; p++) {
            if (action_at(e, i)->verb == SCRIPT_LOOK && is(e, i, p)) {
                return true;
            }
        }
    }
    return false;
}

static bool spoil_look(const struct expect *e, struct record *r, uint32_t stage,
                       bool (*is)(const struct expect *e, uint32_t i,
                                  uint32_t p))
{
    for (uint32_t k = r->n_ranks; k > 0; k--) {
        struct record_rank *rank = compare_rank_to_spoil(r, k - 1);

        for (uint32_t i = 0; rank && i < rank->n_tensors; i++) {
            struct record_tensor *t = &rank->tensor[i];

            if (t->stage == stage && t->n > 0 && t->data &&
                t->step < e->n_events &&
                action_at(e, t->step)->verb == SCRIPT_LOOK &&
                is(e, t->step, t->parameter)) {
                t->data[0] =
                    t->data[0] < 0.0f || t->data[0] > 0.0f ? -t->data[0] : 1.0f;
                return true;
            }
        }
    }
    return false;
}

#define LOOKED_AT(name, is, stage)                                           \
    static bool name##_applies(const struct expect *e)                       \
    {                                                                        \
        return shows(e, is);                                                 \
    }                                                                        \
    static bool name##_holds(const struct expect *e, const struct record *r, \
                             struct finding *f)                              \
    {                                                                        \
        return looks_hold(e, r, name##_of_part, f);                          \
    }                                                                        \
    static bool name##_spoil(const struct expect *e, struct record *r)       \
    {                                                                        \
        return spoil_look(e, r, stage, is);                                  \
    }

LOOKED_AT(starts, is_start, RECORD_STATE0)
LOOKED_AT(stepped, is_stepped, RECORD_AFTER)
LOOKED_AT(kept, is_kept, RECORD_AFTER)
LOOKED_AT(loaded, is_loaded, RECORD_AFTER)
LOOKED_AT(others, is_other, RECORD_AFTER)

const struct requirement thaw_requirements[] = {
    {.since = "1.1",
     .must = 1,
     .level = LEVEL_STEP,
     .needs = "run.shows-every-step thaw.reduces assign.own-part "
              "assign.states-stay",
     .claim = "thaw"},
    {.id = "thaw.starts",
     .text = "The states of what is thawed are +0 until its first step, "
             "whatever they were before it was frozen.",
     .general = true,
     .needs = "run.shows-every-step thaw.states-rest",
     .applies = starts_applies,
     .holds = starts_holds,
     .spoil = starts_spoil},
    {.id = "thaw.stepped",
     .text = "What is thawed is stepped from the next pass on, by betas' "
             "products of the steps that it has taken since.",
     .general = true,
     .needs = "run.shows-every-step thaw.reduces thaw.starts "
              "thaw.frozen-keeps thaw.others-stay thaw.loaded "
              "mixed.after-frozen-forward",
     .profile = PROFILE_BITS,
     .applies = stepped_applies,
     .holds = stepped_holds,
     .spoil = stepped_spoil},
    {.id = "thaw.frozen-keeps",
     .text = "What is frozen keeps its bits until it is thawed: its moments "
             "and its decay move it no more.",
     .general = true,
     .applies = kept_applies,
     .holds = kept_holds,
     .spoil = kept_spoil},
    {.id = "thaw.others-stay",
     .text = "What is trained before a parameter is frozen or thawed, and "
             "behind that, goes on with its states and its steps.",
     .general = true,
     .profile = PROFILE_BITS,
     .applies = others_applies,
     .holds = others_holds,
     .spoil = others_spoil},
    /* Of another set, too: states that nobody needs are left where they are. */
    {.id = "thaw.loaded",
     .text = "What is loaded into a life that trains other parameters has the "
             "weights and states that were saved, and goes on with the steps "
             "that each parameter had taken.",
     .general = true,
     .profile = PROFILE_BITS,
     .applies = loaded_applies,
     .holds = loaded_holds,
     .spoil = loaded_spoil},
    {0},
};
