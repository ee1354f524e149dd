/* SPDX-License-Identifier: Apache-2.0 */
/*
 * carried_steps_requirements.c - what ranks have sent in steps and actions
 * without recorded tensors, compared with what they sent before and afterwards,
 * and with the looks of a script. Asked where ranks are isolated.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"
#include "requirements/carried.h"
#include "requirements/script_action.h"

#include <stdlib.h>

/* ---- comm.carries-same --------------------------------------------------- */

/* Whether shards change only by steps, each of which changes them once. */
static bool only_steps(const struct expect *e)
{
    return compare_case_trains(e) &&
           (compare_case_lives_once(e) || e->c->scenario == CASE_EVAL ||
            e->c->scenario == CASE_CANCEL);
}

static bool is_gathered(const struct expect *e)
{
    return e->shards > 1 && !e->any_fold && e->c->ranks <= WORLD_MAX_RANKS &&
           (only_steps(e) || case_is_script(e->c));
}

/* Whether an action gives parameters other values. */
static bool changes(const struct expect *e, uint32_t i)
{
    switch (e->event[i].action->verb) {
    case SCRIPT_LOAD:
    case SCRIPT_AGAIN:
    case SCRIPT_ANEW:
    case SCRIPT_ASSIGN:
    case SCRIPT_SEND:
        return true;
    default:
        return e->event[i].steps;
    }
}

/* Whether values change in any of the actions from `from` to `to`. */
static bool changes_between(const struct expect *e, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i <= to; i++) {
        if (i >= e->n_events || changes(e, i)) {
            return true;
        }
    }
    return false;
}

/* The last gather of a unit. */
struct last {
    uint64_t payload;
    uint32_t dtype, step;
    bool known;
    bool changed; /* within the step: an evaluation follows the optimizer */
};

/* Whether the unit may have changed since its last gather. */
static bool may_differ(const struct last *last, const struct carried *x)
{
    const struct expect *const e = x->e;

    if (case_is_script(e->c)) {
        return changes_between(e, last->step, x->step);
    }
    return carried_is_evaluated(e, x->c->unit)
               ? last->step == x->step && !last->changed
               : last->step != x->step;
}

/* Whether the unit may have changed since its last gather. If not, *same says
 * whether the same was sent. */
static bool is_new(struct last *last, const struct carried *x, bool *same)
{
    const bool is_known = last->known && last->dtype == x->c->dtype;
    const bool is_new = !is_known || may_differ(last, x);

    *same = is_known && last->payload == x->payload;
    last->changed =
        is_known && last->step == x->step && (last->changed || !*same);
    last->known = true;
    last->payload = x->payload;
    last->dtype = x->c->dtype;
    last->step = x->step;
    return is_new;
}

static bool sends_the_same(const struct carried *x, void *context,
                           struct finding *f)
{
    bool same;

    return !carried_is_gather(x) ||
           is_new((struct last *)context + x->c->unit, x, &same) || same ||
           finding_text(f, carried_place(x, "all-gather"),
                        "what the rank has sent is not what it sent before, "
                        "and nothing has changed its shard since");
}

static struct last *make_last(const struct expect *e)
{
    return calloc(e->units->n_units + 1, sizeof(struct last));
}

static bool carries_same_holds(const struct expect *e, const struct record *r,
                               struct finding *f)
{
    for (uint32_t k = 0; k < e->c->ranks; k++) {
        struct last *const last = make_last(e);
        const bool good =
            last ? carried_each(e, r, k, sends_the_same, last, f)
                 : finding_missing(f, finding_at("all-gather", -1, -1, k),
                                   "no memory to compare it in");

        free(last);
        if (!good) {
            return false;
        }
    }
    return true;
}

static bool is_old(const struct carried *x, void *context)
{
    bool same;

    return carried_is_gather(x) &&
           !is_new((struct last *)context + x->c->unit, x, &same);
}

static bool carries_same_spoil(const struct expect *e, struct record *r)
{
    struct last *const last = make_last(e);
    const bool done = last && carried_spoil(e, r, is_old, last);

    free(last);
    return done;
}

/* ---- comm.carries-looked-at ---------------------------------------------- */

/* A look, before or behind the action, with no change of values between the
 * two; n_events: there is none. */
static uint32_t look_at(const struct expect *e, uint32_t action)
{
    for (uint32_t i = 0; action < e->n_events && i < e->n_events; i++) {
        if (e->event[i].action->verb == SCRIPT_LOOK &&
            !(i < action ? changes_between(e, i, action)
                         : changes_between(e, action, i))) {
            return i;
        }
    }
    return e->n_events;
}

static bool is_looked_at(const struct carried *x, void *context)
{
    bool missing = true;
    uint32_t look;

    (void)context;
    if (!carried_is_gather(x)) {
        return false;
    }
    look = look_at(x->e, x->step);
    return look < x->e->n_events &&
           (carried_is_shard(x, RECORD_AFTER, look, &missing) || !missing);
}

static bool sends_what_is_looked_at(const struct carried *x, void *context,
                                    struct finding *f)
{
    bool missing;
    uint32_t look;

    (void)context;
    if (!carried_is_gather(x)) {
        return true;
    }
    look = look_at(x->e, x->step);
    return look == x->e->n_events ||
           carried_is_shard(x, RECORD_AFTER, look, &missing) || missing ||
           (finding_text(f, carried_place(x, "all-gather"),
                         "what the rank has sent is not its shard, as a look "
                         "shows it") ||
            script_action_tell(x->e, x->step, f));
}

static bool looks(const struct expect *e)
{
    return script_does(e, SCRIPT_LOOK) && is_gathered(e);
}

const struct requirement carried_steps_requirements[] = {
    {.since = "1.1",
     .must = 1,
     .level = LEVEL_COMM,
     .looked_at = carried_is_known},
    {.id = "comm.carries-same",
     .text = "Where ranks are isolated, a rank sends the same in all "
             "all-gathers of a unit between which nothing changes its shard: "
             "no step, load or values that are given.",
     .needs = "comm.carries-shards comm.carries-looked-at",
     .applies = is_gathered,
     .holds = carries_same_holds,
     .spoil = carries_same_spoil},
    {.id = "comm.carries-looked-at",
     .text = "Where ranks are isolated, what a rank has sent in an all-gather "
             "of a script is its shard, as a look shows it between which and "
             "that nothing changes it.",
     .needs = "comm.as-carried",
     .applies = looks,
     .check = &check_carried,
     .carried = {sends_what_is_looked_at, is_looked_at}},
    {0},
};
