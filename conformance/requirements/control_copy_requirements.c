/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control_copy_requirements.c - unsharded copies of units that are kept behind
 * a forward or a backward, or made and given back by hand: how often a unit is
 * gathered in each pass, worked out here unit by unit and apart from the
 * oracle's walk; and why, so that a fault has the name of its cause.
 */
#include "requirements/control_gathers.h"
#include "requirements/families.h"
#include "requirements/script_checks.h"

#include "judge/compare/compare_checks.h"

/* ---- Counts ---------------------------------------------------------------
 */

static bool has_cause(const struct expect *e, enum control_why cause)
{
    const uint32_t n_events = control_tells_of_copies(e) ? e->n_events : 0;

    for (uint32_t i = 0; e->shards > 1 && i < n_events; i++) {
        for (uint32_t u = 0; u < e->units->n_units; u++) {
            uint32_t n;

            if (control_gathers(e, i, u, &n) == cause) {
                return true;
            }
        }
    }
    return false;
}

static bool counts_hold(const struct expect *e,
                        const struct record_sequence *got, struct finding at,
                        enum control_why cause, struct finding *f)
{
    const uint32_t i = (uint32_t)at.step;

    for (uint32_t u = 0; u < e->units->n_units; u++) {
        const uint32_t n = compare_count_of(got, FSDP_ALL_GATHER, u);
        uint32_t want;

        if (control_gathers(e, i, u, &want) == cause && n != want) {
            at.unit = u;
            (void)finding_count(f, at, n, want, "all-gathers of this unit");
            return script_action_tell(e, i, f);
        }
    }
    return true;
}

/* Turns a gather with this cause into a collective of another kind; where no
 * gather is due, turns the first collective into one more gather. */
static bool counts_spoil(const struct expect *e, struct record *r,
                         enum control_why cause)
{
    struct record_rank *rank = compare_rank_to_spoil(r, r->n_ranks - 1);

    for (uint32_t i = 0; rank && i < rank->n_steps && i < e->n_events; i++) {
        struct record_sequence *s = &rank->sequence[rank->step_sequence[i]];

        for (uint32_t k = 0; k < s->n; k++) {
            uint32_t n;

            if (s->c[k].kind == FSDP_ALL_GATHER &&
                s->c[k].unit < e->units->n_units &&
                control_gathers(e, i, s->c[k].unit, &n) == cause) {
                s->c[k].kind = FSDP_BARRIER;
                return true;
            }
        }
        for (uint32_t u = 0; s->n > 0 && u < e->units->n_units; u++) {
            uint32_t n;

            if (control_gathers(e, i, u, &n) == cause && n == 0) {
                s->c[0].kind = FSDP_ALL_GATHER;
                s->c[0].unit = u;
                return true;
            }
        }
    }
    return false;
}

#define COUNTED(name, cause)                                           \
    static bool name##_applies(const struct expect *e)                 \
    {                                                                  \
        return has_cause(e, cause);                                    \
    }                                                                  \
    static bool name##_in_action(const struct expect *e,               \
                                 const struct record_sequence *got,    \
                                 struct finding at, struct finding *f) \
    {                                                                  \
        return counts_hold(e, got, at, cause, f);                      \
    }                                                                  \
    static bool name##_spoil(const struct expect *e, struct record *r) \
    {                                                                  \
        return counts_spoil(e, r, cause);                              \
    }

COUNTED(forward, CONTROL_BY_FORWARD)
COUNTED(backward, CONTROL_BY_BACKWARD)
COUNTED(step, CONTROL_BY_STEP)
COUNTED(by_hand, CONTROL_BY_BY_HAND)
COUNTED(turned, CONTROL_BY_TURNED)

/* ---- What is live, and what is seen ---------------------------------------
 */

static bool reshards(const struct expect *e)
{
    return script_does(e, SCRIPT_RESHARD_UNIT) && e->c->prefetch_forward == 0 &&
           e->c->prefetch_backward == 0 && e->c->reduces_in_flight == 0;
}

static bool is_reshard(const struct script_action *a)
{
    return a->verb == SCRIPT_RESHARD_UNIT;
}

static bool reshard_of_rank(const struct expect *e,
                            const struct record_rank *rank, uint32_t k,
                            struct finding *f)
{
    return script_rests(e, rank, k, FSDP_PARAM_FULL, is_reshard, f);
}

static bool reshard_spoil(const struct expect *e, struct record_rank *rank)
{
    return script_spoil_rest(e, rank, FSDP_PARAM_FULL, is_reshard);
}

/* Whether action i unshards a unit that has any elements. */
static bool lends(const struct expect *e, uint32_t i)
{
    if (script_at(e, i)->verb != SCRIPT_UNSHARD_UNIT) {
        return false;
    }
    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        if (e->unit_of_parameter[p] == script_at(e, i)->unit &&
            fsdp_numel(e->model, p) > 0) {
            return true;
        }
    }
    return false;
}

static bool unshards(const struct expect *e)
{
    for (uint32_t i = 0; case_is_script(e->c) && i < e->n_events; i++) {
        if (lends(e, i)) {
            return true;
        }
    }
    return false;
}

static bool values_hold(const struct expect *e, const struct record *r,
                        struct finding *f)
{
    for (uint32_t i = 0; i < e->n_events; i++) {
        for (uint32_t k = 0; k < e->c->ranks; k++) {
            if (script_at(e, i)->verb == SCRIPT_UNSHARD_UNIT &&
                !script_action_shows(e, r, i, k, script_at(e, i)->unit, f)) {
                return false;
            }
        }
    }
    return true;
}

static bool values_spoil(const struct expect *e, struct record *r)
{
    uint32_t i = 0;

    while (i < e->n_events && !lends(e, i)) {
        i++;
    }
    return compare_spoil_stage(r, RECORD_SUMMONED, i);
}

const struct requirement control_copy_requirements[] = {
    {.since = "1.1", .must = 1, .level = LEVEL_COMM, .claim = "unit-controls"},
    {.id = "control.reshard-forward",
     .text = "A unit is resharded behind its forward as it was said last, and "
             "gathered again only where it was.",
     .needs = "run.shows-every-step",
     .applies = forward_applies,
     .check = &check_each_step,
     .step = {.holds = forward_in_action},
     .spoil = forward_spoil},
    {.id = "control.reshard-backward",
     .text = "A unit that is not resharded behind its backward is not gathered "
             "for its next window.",
     .needs = "run.shows-every-step",
     .applies = backward_applies,
     .check = &check_each_step,
     .step = {.holds = backward_in_action},
     .spoil = backward_spoil},
    /* A kept copy is the usual way to train with the weights of the step
     * before. */
    {.id = "control.fresh-after-step",
     .text = "No window behind a step, or an assign, sees a copy from before "
             "it: each unit is gathered anew.",
     .needs = "run.shows-every-step",
     .applies = step_applies,
     .check = &check_each_step,
     .step = {.holds = step_in_action},
     .spoil = step_spoil},
    {.id = "control.unshard-ahead",
     .text =
         "A unit that is unsharded by hand is gathered once, then; one that "
         "is resharded by hand is gathered by its next window.",
     .needs = "run.shows-every-step",
     .applies = by_hand_applies,
     .check = &check_each_step,
     .step = {.holds = by_hand_in_action},
     .spoil = by_hand_spoil},
    {.id = "control.next-begin",
     .text = "A knob that is turned at rest changes nothing until the next "
             "BEGIN: a copy that is there is used once more.",
     .needs = "run.shows-every-step control.reshard-backward",
     .applies = turned_applies,
     .check = &check_each_step,
     .step = {.holds = turned_in_action},
     .spoil = turned_spoil},
    {.id = "control.reshard",
     .text = "What is resharded by hand is live no longer.",
     .level = LEVEL_MEMORY,
     .needs = "run.shows-every-step control.unshard-ahead",
     .applies = reshards,
     .check = &check_each_rank,
     .rank = {reshard_of_rank, reshard_spoil}},
    {.id = "control.unshard-values",
     .text = "A unit that is unsharded at rest lends the values that its "
             "window would, bit for bit.",
     .level = LEVEL_GATHER,
     .needs = "run.shows-every-step",
     .profile = PROFILE_BITS,
     .applies = unshards,
     .holds = values_hold,
     .spoil = values_spoil},
    {.id = "error.reshard-in-window",
     .text = "A unit that is resharded by hand in a window of its own, or "
             "between its forward and its backward where it stays unsharded, "
             "is refused as INVALID.",
     .level = LEVEL_ERRORS,
     .needs = "run.completes",
     .check = &check_asked,
     .answers = {{"reshard-in-window", FSDP_ERR_INVALID},
                 {"reshard-kept", FSDP_ERR_INVALID},
                 {"unshard-while-open", FSDP_ERR_INVALID},
                 {"reshard-while-open", FSDP_ERR_INVALID}}},
    {.id = "error.by-hand-arguments",
     .text = "A unit beyond the units is neither unsharded nor resharded, but "
             "refused as INVALID, with its number.",
     .level = LEVEL_ERRORS,
     .needs = "run.completes",
     .check = &check_asked_named,
     .answers = {{"unshard-unknown-unit", FSDP_ERR_INVALID},
                 {"reshard-unknown-unit", FSDP_ERR_INVALID}}},
    {0},
};
