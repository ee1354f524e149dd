/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control_gathers.c - follows one unit through a script: whether there is a
 * copy of it, since when, and how often it is gathered.
 */
#include "requirements/control_gathers.h"

#include "judge/compare/compare.h"
#include "requirements/script_action.h"

/* The state of one unit, from action to action. */
struct unit {
    uint32_t u;
    bool copy;              /* it is unsharded */
    bool by_hand;           /* it was unsharded or resharded by hand */
    bool stale;             /* a step ended a copy, and there is no new one */
    bool turned;            /* reshard-after-backward has changed since the last
                             * pass */
    bool forward, backward; /* whether it is resharded behind these */
    bool said;              /* the script speaks of its forward */
};

static bool is_pass(const struct script_action *a)
{
    return a->verb == SCRIPT_PASS || a->verb == SCRIPT_EVAL;
}

static bool stays_as_sharded(const struct expect *e, uint32_t u)
{
    const uint32_t *own = e->units->reshard_after_forward;

    if (e->options.keep_root != 0 && u == e->units->unit_of_module[0]) {
        return true;
    }
    return own && own[u] != 0 ? own[u] == 2
                              : e->options.reshard_after_forward == 0;
}

static struct unit begin(const struct expect *e, uint32_t u)
{
    return (struct unit){
        .u = u, .forward = !stays_as_sharded(e, u), .backward = true};
}

static bool is_of(const struct expect *e, uint32_t u, uint32_t module)
{
    return expect_is_of(e, module, u);
}

/* Whether the unit has a backward behind point i. */
static bool backward_follows(const struct expect *e,
                             const struct fsdp_sequence *s, uint32_t u,
                             uint32_t i)
{
    for (; i < s->n; i++) {
        if (!compare_is_forward(s->point[i]) && is_of(e, u, s->module[i])) {
            return true;
        }
    }
    return false;
}

/* How often the unit is gathered in a whole pass: phase by phase. */
static uint32_t gathers(const struct expect *e, const struct fsdp_sequence *s,
                        struct unit *x)
{
    uint32_t n = 0;
    uint32_t end;

    for (uint32_t i = 0; i < s->n; i = end) {
        const bool forward = compare_is_forward(s->point[i]);
        bool has_window = false;

        for (end = i;
             end < s->n && compare_is_forward(s->point[end]) == forward;
             end++) {
            has_window = has_window || is_of(e, x->u, s->module[end]);
        }
        if (!has_window) {
            continue;
        }
        n += !x->copy;
        x->copy = forward ? !x->forward && backward_follows(e, s, x->u, end)
                          : !x->backward;
    }
    return n;
}

/* Whether the unit is unsharded or resharded by hand inside the pass. */
static bool by_hand_inside(const struct expect *e,
                           const struct script_action *a, uint32_t u)
{
    for (uint32_t k = 0; k < a->n_inside; k++) {
        const struct script_inside *in = &e->script.inside[a->first_inside + k];

        if (in->by_hand != 0 && in->unit == u) {
            return true;
        }
    }
    return false;
}

static enum control_why why_of(const struct unit *x, bool inside)
{
    return inside                    ? CONTROL_BY_UNKNOWN
           : x->by_hand              ? CONTROL_BY_BY_HAND
           : x->stale                ? CONTROL_BY_STEP
           : x->turned && x->copy    ? CONTROL_BY_TURNED
           : x->copy || !x->backward ? CONTROL_BY_BACKWARD
           : x->said                 ? CONTROL_BY_FORWARD
                                     : CONTROL_BY_USUAL;
}

static void end_copy(struct unit *x, bool by_step)
{
    x->stale = by_step && (x->copy || x->stale);
    x->copy = x->by_hand = false;
}

static void take_set(struct unit *x, const struct script_action *a)
{
    const bool on = a->value != 0.0f;

    if (a->unit != x->u && a->unit != FSDP_NO_UNIT) {
        return;
    }
    if (a->knob == FSDP_KNOB_RESHARD_AFTER_FORWARD) {
        x->forward = on;
        x->said = true;
    } else if (a->knob == FSDP_KNOB_RESHARD_AFTER_BACKWARD) {
        x->turned = x->turned || on != x->backward;
        x->backward = on;
    }
}

/* The unit in a pass; *n: how often it is gathered there. */
static enum control_why take_pass(const struct expect *e,
                                  const struct script_action *a, struct unit *x,
                                  uint32_t *n)
{
    const struct fsdp_sequence *s =
        e->model->sequence[a->verb == SCRIPT_EVAL ? FSDP_SEQUENCE_EVAL
                                                  : FSDP_SEQUENCE_TRAIN];
    const enum control_why why =
        why_of(x, by_hand_inside(e, a, x->u) || a->ending != SCRIPT_WHOLE);

    *n = gathers(e, s, x);
    x->by_hand = x->stale = x->turned = false;
    if (a->ending != SCRIPT_WHOLE) {
        end_copy(x, false);
    }
    return why;
}

/* What action i does with the unit, and how often it gathers it. Once it was
 * unsharded inside a pass this is not known, until a step or another life. */
static enum control_why take(const struct expect *e, uint32_t i, struct unit *x,
                             uint32_t *n)
{
    const struct script_action *a = script_at(e, i);
    const bool *stepped = e->event[i].stepped;
    enum control_why why;

    *n = 0;
    switch (a->verb) {
    case SCRIPT_PASS:
    case SCRIPT_EVAL:
        why = take_pass(e, a, x, n);
        if (stepped && stepped[x->u]) {
            end_copy(x, true);
        }
        return why;
    case SCRIPT_SET:
        take_set(x, a);
        return CONTROL_BY_USUAL;
    case SCRIPT_UNSHARD_UNIT:
        if (a->unit == x->u) {
            *n = !x->copy;
            x->copy = x->by_hand = true;
        }
        return a->unit == x->u ? CONTROL_BY_BY_HAND : CONTROL_BY_USUAL;
    case SCRIPT_RESHARD_UNIT:
        if (a->unit == x->u) {
            end_copy(x, false);
            x->by_hand = true; /* the next gather is due to this */
        }
        return CONTROL_BY_UNKNOWN;
    case SCRIPT_ASSIGN:
    case SCRIPT_SEND:
    case SCRIPT_STEP: /* a step refreshes no copy */
        end_copy(x, true);
        return x->stale ? CONTROL_BY_STEP : CONTROL_BY_UNKNOWN;
    case SCRIPT_AGAIN:
        *x = begin(e, x->u);
        return CONTROL_BY_UNKNOWN;
    case SCRIPT_LOAD:
    case SCRIPT_SUMMON:
    case SCRIPT_SUMMON_SOME:
    case SCRIPT_UNSHARD:
    case SCRIPT_RESHARD:
        end_copy(x, false);
        return CONTROL_BY_UNKNOWN;
    default:
        return CONTROL_BY_UNKNOWN;
    }
}

/* Follows the unit from the first action to action i. If a script unshards it
 * inside a pass, the answer is unknown from there to the next step or life. */
enum control_why control_gathers(const struct expect *e, uint32_t i, uint32_t u,
                                 uint32_t *n)
{
    struct unit x = begin(e, u);
    bool known = true;
    enum control_why why = CONTROL_BY_USUAL;

    for (uint32_t k = 0; k <= i; k++) {
        const struct script_action *a = script_at(e, k);

        why = take(e, k, &x, n);
        known = (known && !(is_pass(a) && why == CONTROL_BY_UNKNOWN)) ||
                a->verb == SCRIPT_STEP || a->verb == SCRIPT_AGAIN;
    }
    return known ? why : CONTROL_BY_UNKNOWN;
}

bool control_tells_of_copies(const struct expect *e)
{
    for (uint32_t i = 0; case_is_script(e->c) && i < e->n_events; i++) {
        const struct script_action *a = script_at(e, i);

        if (a->verb == SCRIPT_UNSHARD_UNIT || a->verb == SCRIPT_RESHARD_UNIT ||
            (a->verb == SCRIPT_SET &&
             (a->knob == FSDP_KNOB_RESHARD_AFTER_FORWARD ||
              a->knob == FSDP_KNOB_RESHARD_AFTER_BACKWARD))) {
            return true;
        }
    }
    return false;
}
