/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_in_backward_requirements.c - a pass that is given its step ahead
 * (`set_step`): each unit is stepped where it is reduced, once, by the numbers
 * of a step behind the pass, and its gradient is no longer there.
 */
#include "requirements/families.h"
#include "requirements/script_checks.h"

#include "judge/compare/compare_checks.h"

static bool looks_at(const struct expect *e, uint32_t i)
{
    return script_at(e, i)->verb == SCRIPT_LOOK;
}

/* Whether action i is a pass that steps each unit as it reduces it. */
static bool steps_early(const struct expect *e, uint32_t i)
{
    return e->event[i].steps && script_at(e, i)->verb == SCRIPT_PASS;
}

/* ---- Values -------------------------------------------------------------- */

/* Whether the last step before look i was made in a pass. */
static bool is_behind(const struct requirement *q, const struct expect *e,
                      uint32_t i, uint32_t p, uint32_t stage)
{
    (void)q;
    (void)p;
    for (uint32_t k = i; stage == RECORD_AFTER && k-- > 0;) {
        const uint32_t verb = script_at(e, k)->verb;

        if (e->event[k].steps || verb == SCRIPT_LOAD || verb == SCRIPT_AGAIN ||
            verb == SCRIPT_ANEW) {
            return steps_early(e, k);
        }
    }
    return false;
}

/* The look that follows such a pass and precedes the step before look i; i:
 * there is none. */
static uint32_t look_before(const struct expect *e, uint32_t i)
{
    uint32_t look = i;
    uint32_t k = i;

    while (k > 0 && looks_at(e, k - 1)) {
        k--;
    }
    if (k == 0 || script_at(e, k - 1)->verb != SCRIPT_STEP) {
        return i;
    }
    for (k--; k > 0 && looks_at(e, k - 1); k--) {
        look = k - 1;
    }
    return look < i && k > 0 && steps_early(e, k - 1) ? look : i;
}

/* A NaN that is not stepped stays one. */
static bool once_of_part(const struct expect *e, const struct record *r,
                         const struct compare_part *part, struct finding *f)
{
    const uint32_t before = look_before(e, part->step);

    for (uint32_t k = 0;
         before < part->step && k < compare_n_stages_of(e, part); k++) {
        if (!compare_as_then(e, r, part, compare_stages[k], compare_stages[k],
                             before, f)) {
            return false;
        }
    }
    return true;
}

static bool is_stepped_again(const struct requirement *q,
                             const struct expect *e, uint32_t i, uint32_t p,
                             uint32_t stage)
{
    (void)q;
    (void)p;
    return stage == RECORD_AFTER && look_before(e, i) < i;
}

/* ---- Memory -------------------------------------------------------------- */

static bool peak_applies(const struct expect *e)
{
    for (uint32_t i = 0; case_is_script(e->c) && i < e->n_events; i++) {
        if (steps_early(e, i)) {
            return true;
        }
    }
    return false;
}

/* With reductions in flight at most as many units more. */
static uint64_t most_of_gradients(const struct expect *e)
{
    uint64_t largest = 0;

    for (uint32_t u = 0; u < e->units->n_units; u++) {
        const uint64_t bytes = e->unit[u].grad_chunk * sizeof(float);

        largest = bytes > largest ? bytes : largest;
    }
    return e->peak[FSDP_GRAD_SHARD] + e->peak[RECORD_HOST + FSDP_GRAD_SHARD] +
           e->c->reduces_in_flight * largest;
}

static bool peak_of_rank(const struct expect *e, const struct record_rank *rank,
                         uint32_t k, struct finding *f)
{
    const uint64_t got = rank->memory.peak[FSDP_GRAD_SHARD] +
                         rank->memory.peak[RECORD_HOST + FSDP_GRAD_SHARD];
    const uint64_t most = most_of_gradients(e);

    return got <= most ||
           finding_peak(f, finding_at("gradient shard", -1, -1, k), got, most,
                        "gradient shards at once, at the most", &rank->memory);
}

static bool peak_spoil(const struct expect *e, struct record_rank *rank)
{
    rank->memory.peak[FSDP_GRAD_SHARD] = most_of_gradients(e) + 1;
    return true;
}

/* ---- Calls that must be refused ------------------------------------------ */

static bool is_options(const struct expect *e)
{
    return e->c->scenario == CASE_OPTIONS;
}

/* Whether the script has a save behind such a pass that must be the same as an
 * earlier one. */
static bool saves_the_same(const struct expect *e)
{
    bool steps = false;

    for (uint32_t i = 0; case_is_script(e->c) && i < e->n_events; i++) {
        const struct script_action *a = script_at(e, i);

        steps = steps || a->verb == SCRIPT_BACKWARD_STEP;
        if (steps && a->verb == SCRIPT_WAIT && a->same) {
            return true;
        }
    }
    return false;
}

const struct requirement step_in_backward_requirements[] = {
    {.since = "1.1",
     .must = 1,
     .level = LEVEL_STEP,
     .claim = "step-in-backward"},
    {.id = "step-in-backward.same-bits",
     .text = "Behind a pass that was given its step, weights and states are "
             "those of a step behind the pass, bit for bit.",
     .general = true,
     .needs = "run.shows-every-step script.collectives step-in-backward.once "
              "assign.own-part assign.states-stay",
     .profile = PROFILE_BITS,
     .check = &check_looks,
     .look = {is_behind}},
    /* Nothing else shows how many steps the engine has counted. */
    {.id = "step-in-backward.same-files",
     .text = "States that are saved behind passes that were given their steps "
             "are the same files as those of steps behind passes.",
     .should = true,
     .needs = "run.survives run.ranks-present step-in-backward.same-bits",
     .applies = saves_the_same,
     .check = &check_answers,
     .answers = {{"saved-again", FSDP_OK}}},
    /* A gradient that is left there would be used again. */
    {.id = "step-in-backward.once",
     .text = "A step behind a pass that was given its step finds no gradient, "
             "and moves nothing.",
     .needs = "run.shows-every-step",
     .check = &check_looks,
     .look = {is_stepped_again, once_of_part}},
    {.id = "step-in-backward.gradient-peak",
     .text = "Where passes are given their steps no more gradient shards are "
             "live at once than those of one unit, those in flight, and those "
             "that other passes leave.",
     .level = LEVEL_MEMORY,
     .needs = "run.shows-every-step",
     .applies = peak_applies,
     .check = &check_each_rank,
     .rank = {peak_of_rank, peak_spoil}},
    {.id = "error.step-in-backward",
     .text = "A step is given to no pass that has begun, not while all is "
             "unsharded, not for other groups and not with a scale, and until "
             "its pass there is no other step and no clip: each is refused as "
             "INVALID.",
     .level = LEVEL_ERRORS,
     .needs = "run.completes",
     .check = &check_asked,
     .answers = {{"backward-step-in-pass", FSDP_ERR_INVALID},
                 {"backward-step-while-open", FSDP_ERR_INVALID},
                 {"backward-step-groups", FSDP_ERR_INVALID},
                 {"backward-step-scaled", FSDP_ERR_INVALID},
                 {"backward-step-then-step", FSDP_ERR_INVALID},
                 {"backward-step-then-clip", FSDP_ERR_INVALID}}},
    /* The second window would see weights that were stepped behind the
     * first. */
    {.id = "error.step-in-backward-windows",
     .text = "Where a unit has two backward windows in a pass, a step in "
             "backward is refused as INVALID, and the message has the unit's "
             "number.",
     .level = LEVEL_ERRORS,
     .needs = "run.survives run.ranks-present error.says-why",
     .applies = is_options,
     .check = &check_answers,
     .answers = {{"backward-step-windows", FSDP_ERR_INVALID},
                 {"backward-step-unit", 1, 1}}},
    {0},
};
