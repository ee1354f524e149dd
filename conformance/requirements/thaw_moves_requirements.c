/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thaw_moves_requirements.c - parameters that are frozen and thawed while a
 * model trains: which of their states rest, what is reduced, and when a change
 * is refused.
 */
#include "requirements/families.h"
#include "requirements/script_checks.h"

#include "judge/compare/compare_checks.h"

static bool turns(const struct script_action *a)
{
    return a->verb == SCRIPT_FREEZE || a->verb == SCRIPT_THAW;
}

static bool changes(const struct expect *e)
{
    return script_does(e, SCRIPT_FREEZE) || script_does(e, SCRIPT_THAW);
}

/* ---- What is reduced, and rests -------------------------------------------
 */

static bool reduces_in_action(const struct expect *e,
                              const struct record_sequence *got,
                              struct finding at, struct finding *f)
{
    static const uint32_t kinds[] = {FSDP_REDUCE_SCATTER, FSDP_ALL_REDUCE};
    const uint32_t i = (uint32_t)at.step;
    const struct expect *now = expect_at(e, i);

    for (uint32_t u = 0; u < e->units->n_units; u++) {
        at.unit = u;
        for (uint32_t k = 0; k < 2; k++) {
            const uint32_t n = compare_count_of(got, kinds[k], u);
            const uint32_t want =
                compare_count_of(&e->event[i].seen, kinds[k], u);

            if (n != want && script_at(e, i)->ending != SCRIPT_CANCELLED) {
                (void)finding_count(f, at, n, want, "reductions of this unit");
                return script_action_tell(e, i, f);
            }
        }
    }
    for (uint32_t k = 0; k < got->n; k++) {
        const uint32_t u = got->c[k].unit;

        at.unit = u;
        if (compare_reduces(&got->c[k]) && u < e->units->n_units &&
            got->c[k].n != now->unit[u].grad_chunk) {
            (void)finding_count(f, at, got->c[k].n, now->unit[u].grad_chunk,
                                "elements of a reduction, a shard");
            return script_action_tell(e, i, f);
        }
    }
    return true;
}

static bool reduces_some(const struct expect *e)
{
    for (uint32_t i = 0; changes(e) && i < e->n_events; i++) {
        for (uint32_t k = 0; k < e->event[i].seen.n; k++) {
            if (compare_reduces(&e->event[i].seen.c[k])) {
                return true;
            }
        }
    }
    return false;
}

static bool is_reduction(const struct expect *e, uint32_t i,
                         const struct record_collective *c, uint32_t of)
{
    (void)e;
    (void)i;
    (void)of;
    return compare_reduces(c);
}

static bool reduces_spoil(const struct expect *e, struct record *r)
{
    struct record_collective *c = script_find_collective(e, r, is_reduction, 0);

    if (c) {
        c->n++;
    }
    return c != NULL;
}

/* Late states are made by a step, not by the thaw. */
static bool has_states(const struct expect *e)
{
    return changes(e) && e->c->optimizer != FSDP_OPTIMIZER_SGD &&
           !e->late_states;
}

static bool states_of_rank(const struct expect *e,
                           const struct record_rank *rank, uint32_t k,
                           struct finding *f)
{
    return script_rests(e, rank, k, FSDP_OPTIM, turns, f);
}

static bool states_spoil(const struct expect *e, struct record_rank *rank)
{
    return script_spoil_rest(e, rank, FSDP_OPTIM, turns);
}

/* ---- The dtype of the wire ------------------------------------------------
 */

/* A unit that has something to train is frozen as a whole before it is reduced
 * for the first time. */
static bool begins_frozen(const struct expect *e)
{
    for (uint32_t i = 0; changes(e) && i < e->n_events; i++) {
        const struct expect *now = expect_at(e, i);
        bool all = true;

        for (uint32_t u = 0; u < e->units->n_units; u++) {
            all = all && now->unit[u].trains;
        }
        if (script_at(e, i)->verb == SCRIPT_PASS) {
            return !all && e->c->precision != CASE_F32 && reduces_some(e);
        }
    }
    return false;
}

static bool dtype_in_action(const struct expect *e,
                            const struct record_sequence *got,
                            struct finding at, struct finding *f)
{
    for (uint32_t k = 0; k < got->n; k++) {
        const struct record_collective *c = &got->c[k];

        if (compare_reduces(c) && c->unit < e->units->n_units &&
            !compare_moves(e, c, k, e->unit[c->unit].dtype.reduce, at, f)) {
            return script_action_tell(e, (uint32_t)at.step, f);
        }
    }
    return true;
}

static bool dtype_spoil(const struct expect *e, struct record *r)
{
    struct record_collective *c = script_find_collective(e, r, is_reduction, 0);

    if (c) {
        c->dtype = FSDP_DTYPE_I32;
    }
    return c != NULL;
}

const struct requirement thaw_moves_requirements[] = {
    {.since = "1.1", .must = 1, .level = LEVEL_ERRORS, .claim = "thaw"},
    {.id = "thaw.reduces",
     .text = "From the next pass on reductions are those of the units that "
             "have something to train then, and carry what their layout says.",
     .level = LEVEL_COMM,
     .general = true,
     .needs = "run.shows-every-step",
     .applies = reduces_some,
     .check = &check_each_step,
     .step = {.holds = reduces_in_action},
     .spoil = reduces_spoil},
    {.id = "thaw.states-rest",
     .text = "States rest for what is trained alone, from a thaw on and up to "
             "a freeze, to the byte.",
     .level = LEVEL_MEMORY,
     .general = true,
     .needs = "run.shows-every-step",
     .applies = has_states,
     .check = &check_each_rank,
     .rank = {states_of_rank, states_spoil}},
    /* Whether a pass is the first one says nothing of the wire. */
    {.id = "mixed.after-frozen-forward",
     .text = "The reduce dtype holds from the first reduction on, whatever was "
             "frozen in the passes before it.",
     .level = LEVEL_COMM,
     .needs = "run.shows-every-step",
     .applies = begins_frozen,
     .check = &check_each_step,
     .step = {.holds = dtype_in_action},
     .spoil = dtype_spoil},
    {.id = "error.freeze",
     .text = "What is trained cannot be changed in a pass, while there are "
             "gradients, while a save goes on, or while all is unsharded: each "
             "is refused as INVALID.",
     .needs = "run.completes",
     .check = &check_asked,
     .answers = {{"freeze-in-pass", FSDP_ERR_INVALID},
                 {"freeze-with-gradients", FSDP_ERR_INVALID},
                 {"freeze-while-saving", FSDP_ERR_INVALID},
                 {"freeze-while-open", FSDP_ERR_INVALID}}},
    {.id = "error.freeze-arguments",
     .text = "A parameter that is none, and another value than 0 or 1, are "
             "refused as INVALID; of the first the message has the number.",
     .needs = "run.completes",
     .check = &check_asked_named,
     .answers = {{"freeze-unknown-parameter", FSDP_ERR_INVALID},
                 {"freeze-by-two", FSDP_ERR_INVALID}}},
    {.id = "error.load-without-states",
     .text = "A checkpoint that has no states of what is trained now is "
             "refused as INVALID, by the parameter's name, and changes "
             "nothing.",
     .needs = "run.completes",
     .check = &check_asked_named,
     .answers = {{"load-without-states", FSDP_ERR_INVALID}}},
    {0},
};
