/* SPDX-License-Identifier: Apache-2.0 */
/* script_checks.c - see script_checks.h. */
#include "requirements/script_checks.h"

#include "judge/compare/compare_memory.h"

/* ---- Calls that must be refused ------------------------------------------ */

/* Whether the case's script makes this call, at rest or in a pass. */
static bool asks(const struct expect *e, uint32_t call)
{
    for (uint32_t i = 0; case_is_script(e->c) && i < e->n_events; i++) {
        const struct script_action *a = e->event[i].action;

        if (a->verb == SCRIPT_WRONG && a->call == call) {
            return true;
        }
        for (uint32_t k = 0; k < a->n_inside; k++) {
            const struct script_inside *in =
                &e->script.inside[a->first_inside + k];

            if (script_is_wrong(in) && in->call == call) {
                return true;
            }
        }
    }
    return false;
}

static bool asks_all(const struct requirement *q, const struct expect *e)
{
    for (uint32_t i = 0; i < REQUIREMENT_MAX_ANSWERS && q->answers[i].name;
         i++) {
        if (!asks(e, script_action_call(q->answers[i].name))) {
            return false;
        }
    }
    return true;
}

static bool asked_hold(const struct requirement *q, const struct expect *e,
                       const struct record *r, struct finding *f)
{
    return check_answers.holds(q, e, r, f);
}

static bool asked_named_hold(const struct requirement *q,
                             const struct expect *e, const struct record *r,
                             struct finding *f)
{
    return check_answers_named.holds(q, e, r, f);
}

static bool asked_spoil(const struct requirement *q, const struct expect *e,
                        struct record *r)
{
    return check_answers.spoil(q, e, r);
}

const struct requirement_check check_asked = {
    .applies = asks_all, .holds = asked_hold, .spoil = asked_spoil};
const struct requirement_check check_asked_named = {
    .applies = asks_all, .holds = asked_named_hold, .spoil = asked_spoil};

/* ---- Looks --------------------------------------------------------------- */

static bool is_look(const struct expect *e, uint32_t i)
{
    return i < e->n_events && script_at(e, i)->verb == SCRIPT_LOOK;
}

static bool is_about(const struct requirement *q, const struct expect *e,
                     uint32_t i, uint32_t p, uint32_t stage)
{
    return !q->look.is || q->look.is(q, e, i, p, stage);
}

bool script_look_shows(const struct expect *e, const struct compare_part *part,
                       uint32_t stage)
{
    return is_about(part->q, e, part->step, part->parameter, stage);
}

/* Looks are judged only for parameters that are in a unit and stored under this
 * name. */
static bool looks_apply(const struct requirement *q, const struct expect *e)
{
    for (uint32_t i = 0; case_is_script(e->c) && i < e->n_events; i++) {
        for (uint32_t p = 0; is_look(e, i) && p < e->model->n_parameters; p++) {
            if (e->unit_of_parameter[p] != FSDP_NO_UNIT &&
                expect_original(e, p) == p && fsdp_numel(e->model, p) > 0 &&
                (is_about(q, e, i, p, RECORD_AFTER) ||
                 is_about(q, e, i, p, RECORD_STATE0) ||
                 is_about(q, e, i, p, RECORD_REDUCED))) {
                return true;
            }
        }
    }
    return false;
}

static bool all_as_baseline(const struct expect *e, const struct record *r,
                            const struct compare_part *part, struct finding *f)
{
    return !script_look_shows(e, part, RECORD_AFTER) ||
           compare_all_as_baseline(e, r, part, f);
}

static bool looks_hold(const struct requirement *q, const struct expect *e,
                       const struct record *r, struct finding *f)
{
    for (uint32_t i = 0; i < e->n_events; i++) {
        if (is_look(e, i) &&
            !compare_parts_of(q, e, r, i, i + 1,
                              q->look.holds ? q->look.holds : all_as_baseline,
                              f)) {
            return script_action_tell(e, i, f);
        }
    }
    return true;
}

/* Changes a value that a look shows; a NaN, too, becomes another number. */
static bool looks_spoil(const struct requirement *q, const struct expect *e,
                        struct record *r)
{
    for (uint32_t k = r->n_ranks; k > 0; k--) {
        struct record_rank *rank = compare_rank_to_spoil(r, k - 1);

        for (uint32_t i = 0; rank && i < rank->n_tensors; i++) {
            struct record_tensor *t = &rank->tensor[i];

            if (t->n > 0 && t->data && is_look(e, t->step) &&
                t->parameter < e->model->n_parameters &&
                is_about(q, e, t->step, t->parameter, t->stage)) {
                return compare_spoil_value(t);
            }
        }
    }
    return false;
}

const struct requirement_check check_looks = {
    .applies = looks_apply, .holds = looks_hold, .spoil = looks_spoil};

/* ---- What rests behind an action ----------------------------------------- */

bool script_rests(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, uint32_t kind,
                  bool (*is)(const struct script_action *a), struct finding *f)
{
    const char *const stage = compare_kind_of_bytes(kind);

    for (uint32_t i = 0; i < e->n_events; i++) {
        const uint64_t want =
            expect_rest_of(expect_at(e, i), k, kind, e->event[i].rest);
        uint64_t got;

        if (!is(script_at(e, i))) {
            continue;
        }
        if (!rank->memory.after_step || i >= rank->n_steps) {
            return finding_text(f, finding_at("memory", i, -1, k),
                                "memory after this action is not recorded");
        }
        got = rank->memory.after_step[i].live[kind];
        if (got != want) {
            (void)finding_bytes(f, finding_at(stage, i, -1, k), got, want,
                                "live behind this action");
            return script_action_tell(e, i, f);
        }
    }
    return true;
}

bool script_spoil_rest(const struct expect *e, struct record_rank *rank,
                       uint32_t kind, bool (*is)(const struct script_action *a))
{
    for (uint32_t i = 0;
         rank->memory.after_step && i < e->n_events && i < rank->n_steps; i++) {
        if (is(script_at(e, i))) {
            rank->memory.after_step[i].live[kind]++;
            return true;
        }
    }
    return false;
}

/* ---- Collectives of an action -------------------------------------------- */

struct record_collective *script_find_collective(
    const struct expect *e, struct record *r,
    bool (*is)(const struct expect *e, uint32_t i,
               const struct record_collective *c, uint32_t of),
    uint32_t of)
{
    struct record_rank *rank = compare_rank_to_spoil(r, r->n_ranks - 1);

    for (uint32_t i = 0; rank && i < rank->n_steps && i < e->n_events; i++) {
        struct record_sequence *s = &rank->sequence[rank->step_sequence[i]];

        for (uint32_t k = 0; k < s->n; k++) {
            if (is(e, i, &s->c[k], of)) {
                return &s->c[k];
            }
        }
    }
    return NULL;
}
