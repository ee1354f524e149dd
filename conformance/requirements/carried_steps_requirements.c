/* SPDX-License-Identifier: Apache-2.0 */
/*
 * carried_steps_requirements.c - what ranks have sent in steps and actions of
 * which no tensors are recorded: beside what they send before and behind them,
 * and what a script has looked at. Asked where ranks are isolated.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"
#include "requirements/carried.h"
#include "requirements/script_action.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- comm.carries-same --------------------------------------------------- */

/* A step is what changes a shard, once. */
static bool only_steps(const struct expect *e)
{
    return compare_case_trains(e) &&
           (compare_case_lives_once(e) || e->c->scenario == CASE_EVAL ||
            e->c->scenario == CASE_CANCEL);
}

static bool is_gathered(const struct expect *e)
{
    return e->shards > 1 && e->c->ranks <= WORLD_MAX_RANKS &&
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

/* Whether values change in one of two actions, one not before the other, or
 * between them. */
static bool changes_between(const struct expect *e, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i <= to; i++) {
        if (i >= e->n_events || changes(e, i)) {
            return true;
        }
    }
    return false;
}

/* What was sent of a unit last. */
struct last {
    uint64_t payload;
    uint32_t dtype, step;
    bool known;
    bool changed; /* within the step, by the optimizer: an evaluation follows */
};

/* Whether the unit may have changed since. */
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

/* False: it may not have changed, and *same says whether it has. */
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

/* A look, before the action or behind it, between which and it nothing changes
 * values; n_events: there is none. */
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
    bool any = false;

    for (uint32_t i = 0; case_is_script(e->c) && i < e->n_events; i++) {
        any = any || e->event[i].action->verb == SCRIPT_LOOK;
    }
    return any && is_gathered(e);
}

static bool carries_looked_at_holds(const struct expect *e,
                                    const struct record *r, struct finding *f)
{
    for (uint32_t k = 0; k < e->c->ranks; k++) {
        if (!carried_each(e, r, k, sends_what_is_looked_at, NULL, f)) {
            return false;
        }
    }
    return true;
}

static bool carries_looked_at_spoil(const struct expect *e, struct record *r)
{
    return carried_spoil(e, r, is_looked_at, NULL);
}

/* ---- comm.carries-stepped ------------------------------------------------ */

/* What a rank sends of a unit in a step. */
struct sent {
    uint64_t gathered; /* first */
    uint32_t at;
    bool gathers, reduces; /* there is one; a gradient that is not all +0 */
};

struct run {
    const struct expect *e;
    struct sent *sent; /* [ranks][units][steps] */
    uint64_t *nothing; /* [units], of the rank; 0: not known yet */
};

static struct sent *sent_in(const struct run *run, uint32_t k, uint32_t unit,
                            uint32_t step)
{
    return run->sent +
           ((size_t)k * run->e->units->n_units + unit) * run->e->c->steps +
           step;
}

static bool note_sent(const struct carried *x, void *context, struct finding *f)
{
    struct run *const run = context;
    struct sent *sent;

    (void)f;
    if (x->step >= x->e->c->steps ||
        (!carried_is_gather(x) && !carried_is_reduction(x))) {
        return true;
    }
    sent = sent_in(run, x->rank, x->c->unit, x->step);
    if (carried_is_reduction(x)) {
        uint64_t *const nothing = &run->nothing[x->c->unit];

        *nothing = *nothing ? *nothing : carried_nothing(x);
        sent->reduces = sent->reduces || x->payload != *nothing;
    } else if (!sent->gathers && x->c->dtype == FSDP_DTYPE_F32) {
        sent->gathers = true;
        sent->gathered = x->payload;
        sent->at = x->at;
    }
    return true;
}

static void run_release(struct run *run)
{
    free(run->sent);
    free(run->nothing);
}

static bool run_make(struct run *run, const struct expect *e,
                     const struct record *r, struct finding *f)
{
    const size_t units = e->units->n_units;

    *run = (struct run){
        .e = e,
        .sent =
            calloc(e->c->ranks * units * e->c->steps + 1, sizeof(*run->sent)),
        .nothing = calloc(units + 1, sizeof(*run->nothing)),
    };
    if (!run->sent || !run->nothing) {
        return finding_missing(f, finding_at("all-gather", -1, -1, 0),
                               "no memory to compare it in");
    }
    for (uint32_t k = 0; k < e->c->ranks; k++) {
        memset(run->nothing, 0, units * sizeof(*run->nothing));
        if (!carried_each(e, r, k, note_sent, run, f)) {
            return false;
        }
    }
    return true;
}

/* What the rank gathers has changed from one step to the next; both are there.
 */
static bool has_moved(const struct run *run, uint32_t k, uint32_t unit,
                      uint32_t step)
{
    const struct sent *const a = sent_in(run, k, unit, step);
    const struct sent *const b = sent_in(run, k, unit, step + 1);

    return a->gathers && b->gathers && a->gathered != b->gathered;
}

/* Whether the shard of rank k must move in the step, as it did in the first
 * one, or, of more than two ranks, that of one of its group: somebody else has
 * a gradient of what the rank owns. */
static bool must_move(const struct run *run, uint32_t k, uint32_t unit,
                      uint32_t step)
{
    const uint32_t first = k - k % run->e->shards;
    bool moves = true;
    bool reduces = false;

    for (uint32_t i = first; i < first + run->e->shards; i++) {
        const struct sent *const b = sent_in(run, i, unit, step + 1);
        const bool two = run->e->shards == 2;

        moves =
            moves &&
            (two && i != k ? true : b->gathers && has_moved(run, i, unit, 0));
        reduces = reduces ||
                  ((!two || i != k) && sent_in(run, i, unit, step)->reduces);
    }
    return moves && reduces;
}

/* Of rank k, or of all of its group where there are more than two. */
static bool stands_still(const struct run *run, uint32_t k, uint32_t unit,
                         uint32_t step)
{
    const uint32_t first = k - k % run->e->shards;

    for (uint32_t i = first; i < first + run->e->shards; i++) {
        if ((run->e->shards > 2 || i == k) && has_moved(run, i, unit, step)) {
            return false;
        }
    }
    return true;
}

static bool rank_moves(const struct run *run, uint32_t k, struct finding *f)
{
    const struct expect *const e = run->e;

    for (uint32_t u = 0; u < e->units->n_units; u++) {
        for (uint32_t s = 0; s + 1 < e->c->steps; s++) {
            struct finding at = finding_at("all-gather", s + 1, -1, k);

            at.unit = u;
            if (must_move(run, k, u, s) && stands_still(run, k, u, s)) {
                return finding_text(f, at,
                                    "what the rank has sent is what it sent in "
                                    "the step before, which has reduced "
                                    "gradients");
            }
        }
    }
    return true;
}

static bool carries_stepped_holds(const struct expect *e,
                                  const struct record *r, struct finding *f)
{
    struct run run;
    bool good = run_make(&run, e, r, f);

    for (uint32_t k = 0; good && k < e->c->ranks; k++) {
        good = rank_moves(&run, k, f);
    }
    run_release(&run);
    return good;
}

/* All of the last rank's group send what they sent in the step before. */
static void stand_still(const struct run *run, struct record *r, uint32_t unit,
                        uint32_t step)
{
    const uint32_t k = run->e->c->ranks - 1;

    for (uint32_t m = k - k % run->e->shards; m <= k; m++) {
        struct record_rank *const rank = compare_rank_to_spoil(r, m);
        const struct sent *const to = sent_in(run, m, unit, step + 1);

        if (rank && to->gathers) {
            rank->account.payloads.hash[to->at] =
                sent_in(run, m, unit, step)->gathered;
        }
    }
}

/* Behind the first step, which says whether a shard moves. */
static bool carries_stepped_spoil(const struct expect *e, struct record *r)
{
    struct finding f;
    struct run run;
    const bool good = run_make(&run, e, r, &f);
    bool done = false;

    for (uint32_t u = 0; good && u < e->units->n_units; u++) {
        for (uint32_t s = 1; !done && s + 1 < e->c->steps; s++) {
            done = must_move(&run, e->c->ranks - 1, u, s);
            if (done) {
                stand_still(&run, r, u, s);
            }
        }
    }
    run_release(&run);
    return done;
}

static bool is_stepped(const struct expect *e)
{
    return compare_case_staged(e) && e->c->data == WORKLOAD_NATURAL &&
           is_gathered(e) && e->c->steps > 2;
}

const struct requirement carried_steps_requirements[] = {
    {.id = "comm.carries-same",
     .text = "Where ranks are isolated, a rank sends the same in all "
             "all-gathers of a unit between which nothing changes its shard: "
             "no step, load or values that are given.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_COMM,
     .needs = "comm.carries-shards comm.carries-looked-at",
     .applies = is_gathered,
     .looked_at = carried_is_known,
     .holds = carries_same_holds,
     .spoil = carries_same_spoil},
    {.id = "comm.carries-looked-at",
     .text = "Where ranks are isolated, what a rank has sent in an all-gather "
             "of a script is its shard, as a look shows it between which and "
             "that nothing changes it.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_COMM,
     .needs = "comm.as-carried",
     .applies = looks,
     .looked_at = carried_is_known,
     .holds = carries_looked_at_holds,
     .spoil = carries_looked_at_spoil},
    {.id = "comm.carries-stepped",
     .text = "Where ranks are isolated, what is sent in all-gathers of a unit "
             "does not stay the same over a step in which gradients of it "
             "that are not all 0 were reduced, as it did not in the first "
             "one.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_COMM,
     .needs = "comm.carries-shards comm.carries-gradients",
     .applies = is_stepped,
     .looked_at = carried_is_known,
     .holds = carries_stepped_holds,
     .spoil = carries_stepped_spoil},
    {0},
};
