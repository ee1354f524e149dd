/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assign_requirements.c - values that are given to parameters at rest, to each
 * rank or by rank 0 to all: each rank then has them for the elements that it
 * owns, and nothing else has changed.
 */
#include "requirements/families.h"
#include "requirements/script_checks.h"

#include "judge/compare/compare_checks.h"

#include <fsdp/arith/bits.h>
#include <string.h>

enum {
    SLICE = 64 /* values at a time */
};

static bool is_look(const struct expect *e, uint32_t i)
{
    return script_at(e, i)->verb == SCRIPT_LOOK;
}

static bool gives_any(uint32_t verb)
{
    return verb == SCRIPT_ASSIGN || verb == SCRIPT_SEND;
}

/* Whether action i may stand between the action that gives values and the looks
 * that show them. */
static bool leaves_all(const struct expect *e, uint32_t i)
{
    const uint32_t verb = script_at(e, i)->verb;

    return verb == SCRIPT_LOOK || gives_any(verb) || verb == SCRIPT_WRONG ||
           verb == SCRIPT_SUMMON;
}

/* Whether action i gives values to p, and under which name of p: if there are
 * several, the first name, which is given last. */
static bool gives(const struct expect *e, uint32_t i, uint32_t p, uint32_t *by)
{
    const struct script_action *a = script_at(e, i);

    *by = a->parameter == SCRIPT_ALL ? p : a->parameter;
    return gives_any(a->verb) && *by < e->model->n_parameters &&
           expect_original(e, *by) == p;
}

/* The last action before look i that gives values to p, if no other action
 * changes p in between; i: there is none. */
static uint32_t given_at(const struct expect *e, uint32_t i, uint32_t p,
                         uint32_t *by)
{
    for (uint32_t k = i; k > 0 && leaves_all(e, k - 1); k--) {
        if (gives(e, k - 1, p, by)) {
            return k - 1;
        }
    }
    return i;
}

/* The last look before an action of this kind that look i comes behind; i:
 * none. */
static uint32_t look_before(const struct expect *e, uint32_t i, uint32_t verb)
{
    bool found = false;

    for (uint32_t k = i; k > 0 && leaves_all(e, k - 1); k--) {
        found = found || script_at(e, k - 1)->verb == verb;
        if (found && is_look(e, k - 1)) {
            return k - 1;
        }
    }
    return i;
}

/* ---- assign.own-part, send.own-part -------------------------------------- */

/* The last action before action i that unsharded everything. */
static uint32_t summoned_at(const struct expect *e, uint32_t i)
{
    while (i > 0 && script_at(e, i)->verb != SCRIPT_SUMMON &&
           script_at(e, i)->verb != SCRIPT_UNSHARD) {
        i--;
    }
    return i;
}

/* The values that action i gives under that name to the elements of the
 * part. */
static bool want(const struct expect *e, const struct record *r,
                 struct compare_part part, uint32_t i, uint32_t by, float *out)
{
    const struct script_action *a = script_at(e, i);
    const float *own;

    if (a->source == SCRIPT_INITIAL) {
        return e->model->initial(e->model->context, by, part.first, part.n,
                                 out) == FSDP_OK;
    }
    if (a->source == SCRIPT_SUMMONED) {
        part.step = summoned_at(e, i);
        part.parameter = by;
        own = compare_values_in_whole(e, r, part.rank, RECORD_SUMMONED, &part);
        if (own) {
            memcpy(out, own, part.n * sizeof(*out));
        }
        return own != NULL;
    }
    for (uint64_t k = 0; k < part.n; k++) {
        out[k] = script_value(a->number, by, part.first + k);
    }
    return true;
}

static bool own_of_part(const struct expect *e, const struct record *r,
                        const struct compare_part *part, struct finding *f)
{
    uint32_t by;
    const uint32_t i = given_at(e, part->step, part->parameter, &by);
    const float *got = compare_values(r, RECORD_AFTER, part);

    if (!script_look_shows(e, part, RECORD_AFTER)) {
        return true;
    }
    if (!got) {
        return compare_missing(part, RECORD_AFTER, f);
    }
    for (uint64_t at = 0; at < part->n; at += SLICE) {
        struct compare_part some = *part;
        float value[SLICE];

        some.first += at;
        some.n = part->n - at < SLICE ? part->n - at : SLICE;
        if (!want(e, r, some, i, by, value)) {
            return compare_missing(part, RECORD_SUMMONED, f);
        }
        for (uint64_t k = 0; k < some.n; k++) {
            if (fsdp_f32_bits(got[at + k]) != fsdp_f32_bits(value[k])) {
                return compare_element(e, part, RECORD_AFTER, at + k,
                                       got[at + k], value[k], f);
            }
        }
    }
    return true;
}

/* ---- assign.states-stay, send.others-stay -------------------------------- */

/* Whether p is given no value from look `before` to look i. */
static bool is_other(const struct expect *e, uint32_t i, uint32_t p,
                     uint32_t before)
{
    uint32_t by;
    const uint32_t at = given_at(e, i, p, &by);

    return at == i || at < before;
}

/* A tensor is there before and behind the action, with the same bits, or at
 * neither look. */
static bool stays_of_part(const struct expect *e, const struct record *r,
                          const struct compare_part *part, struct finding *f)
{
    static const uint32_t stages[] = {RECORD_REDUCED, RECORD_STATE0,
                                      RECORD_STATE1, RECORD_AFTER};
    const uint32_t before = look_before(e, part->step, part->q->kind);
    struct compare_part then = *part;

    then.step = before;
    for (uint32_t k = 0; before < part->step && k < 4; k++) {
        const bool is_weight = stages[k] == RECORD_AFTER;
        const bool shown = is_weight || compare_values(r, stages[k], part) ||
                           compare_values(r, stages[k], &then);

        if (shown &&
            (!is_weight || is_other(e, part->step, part->parameter, before)) &&
            !compare_as_then(e, r, part, stages[k], stages[k], before, f)) {
            return false;
        }
    }
    return true;
}

static bool is_given(const struct requirement *q, const struct expect *e,
                     uint32_t i, uint32_t p, uint32_t stage)
{
    uint32_t by;
    const uint32_t at = given_at(e, i, p, &by);

    return stage == RECORD_AFTER && at < i && script_at(e, at)->verb == q->kind;
}

static bool stays_beside(const struct requirement *q, const struct expect *e,
                         uint32_t i, uint32_t p, uint32_t stage)
{
    const uint32_t before = look_before(e, i, q->kind);

    return before < i && (stage == RECORD_AFTER
                              ? is_other(e, i, p, before)
                              : stage == RECORD_STATE0 &&
                                    e->c->optimizer != FSDP_OPTIMIZER_SGD &&
                                    expect_is_trainable(expect_at(e, i), p));
}

/* ---- assign.padding-zero ------------------------------------------------- */

/* Whether the script assigns, and a pass behind that sends the values that are
 * there. */
static bool sends(const struct expect *e)
{
    bool assigns = false;

    for (uint32_t i = 0; case_is_script(e->c) && i < e->n_events; i++) {
        if (assigns && script_at(e, i)->verb == SCRIPT_PASS && e->shards > 1) {
            return true;
        }
        assigns = assigns || script_at(e, i)->verb == SCRIPT_ASSIGN;
    }
    return false;
}

const struct requirement assign_requirements[] = {
    {.since = "1.1", .must = 1, .level = LEVEL_STEP, .claim = "assign"},
    {.id = "assign.own-part",
     .text = "Behind an assign every rank has what it owns of the values that "
             "were given, bit for bit.",
     .needs = "run.shows-every-step",
     .check = &check_looks,
     .look = {is_given, own_of_part},
     .kind = SCRIPT_ASSIGN},
    {.id = "assign.states-stay",
     .text = "An assign changes no state, no gradient, and no weight that it "
             "gives no value to.",
     .needs = "run.shows-every-step assign.own-part",
     .check = &check_looks,
     .look = {stays_beside, stays_of_part},
     .kind = SCRIPT_ASSIGN},
    {.id = "assign.padding-zero",
     .text = "Padding stays +0 behind an assign: no value that is given lies "
             "in it.",
     .level = LEVEL_COMM,
     .needs = "run.completes stream.no-race script.collectives",
     .applies = sends,
     .check = &check_zero,
     .zero = {offsetof(struct record_memory, dirty_padding), FINDING_COUNT, -1,
              "wire",
              "elements of padding in all-gathers and reduce-scatters that "
              "were not +0"}},
    {.id = "send.own-part",
     .text = "When rank 0 has sent values every rank has what it owns of them, "
             "bit for bit.",
     .needs = "run.shows-every-step",
     .claim = "send-values",
     .check = &check_looks,
     .look = {is_given, own_of_part},
     .kind = SCRIPT_SEND},
    {.id = "send.others-stay",
     .text = "Sending rank 0's values changes no state, no gradient, and no "
             "weight that it has no value of.",
     .needs = "run.shows-every-step send.own-part",
     .claim = "send-values",
     .check = &check_looks,
     .look = {stays_beside, stays_of_part},
     .kind = SCRIPT_SEND},
    {.id = "error.assign-in-pass",
     .text = "An assign between BEGIN and END, or while all is unsharded, is "
             "refused as INVALID.",
     .level = LEVEL_ERRORS,
     .needs = "run.completes",
     .check = &check_asked,
     .answers = {{"assign-in-pass", FSDP_ERR_INVALID},
                 {"assign-while-open", FSDP_ERR_INVALID}}},
    {.id = "error.assign-range",
     .text = "An assign of elements that a parameter does not have is refused "
             "as INVALID, and so is one of a parameter that is none, by its "
             "number.",
     .level = LEVEL_ERRORS,
     .needs = "run.completes",
     .check = &check_asked_named,
     .answers = {{"assign-beyond", FSDP_ERR_INVALID},
                 {"assign-far", FSDP_ERR_INVALID},
                 {"assign-unknown-parameter", FSDP_ERR_INVALID}}},
    {0},
};
