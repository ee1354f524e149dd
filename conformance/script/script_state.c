/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_state.c - what may follow what: the state of an engine, walked
 * through by a script.
 *
 * Of a call the contract says that it does something (legal), that it is
 * INVALID and changes nothing (refused: a script says `!`), or nothing at all
 * (silent: no script has it).
 */
#include "script/script_state.h"

#include "cases/case_precision.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    LONG = 1 << 20, /* points of a sequence of which nothing is known */
    MODERATE = 32,  /* a loss is scaled by at most 2 to this */
};

void script_drop_gradients(struct script_state *s)
{
    s->unreduced = s->partial = 0;
    s->pending = s->reduced = false;
    s->hurt = SCRIPT_UNHURT;
    s->touched = false;
}

static void begin_life(struct script_state *s)
{
    s->living = true;
    s->left_open = s->open_all = false;
    s->no_sync = s->no_all_reduce = 0;
    s->kept = s->keeps = s->holds = false;
    s->frozen = s->thawed = s->predivided = 0;
    s->step_set = s->summoned = false;
    s->empty = s->s->deferred;
    s->values = 0;
    script_drop_gradients(s);
    s->hurt_values = false;
    s->saving = SCRIPT_NO_SLOT;
}

void script_refuse_if(struct script_state *s, bool wrong, const char *why)
{
    if (wrong && !s->why[0]) {
        snprintf(s->why, sizeof(s->why), "%s", why);
    }
}

/* ---- Passes ---- */

static void say_sync(struct script_state *s, uint32_t said)
{
    s->no_sync = said == SCRIPT_SYNC_ON ? 0 : UINT64_MAX;
}

/* Whether a training pass is a forward of all, and then a backward of all. */
static bool is_halved(const struct script_state *s)
{
    return !s->s->has_case || (s->s->c.recompute == WORKLOAD_KEEPS &&
                               strcmp(s->s->c.workload, "graph") != 0);
}

static void walk_inside(struct script_state *s, const struct script_inside *in,
                        uint32_t points, uint32_t length, bool trains)
{
    uint32_t at = script_place_in(in->place, length);
    uint32_t now = SCRIPT_IN_PASS;

    script_refuse_if(
        s, at > points,
        "the pass does not get to that place: one before `until` would "
        "do");
    now |= at == 0 ? SCRIPT_AT_START : 0;
    now |= at == 1 ? SCRIPT_IN_FORWARD : 0;
    now |= at < length ? SCRIPT_EARLY : 0;
    now |= at == length && trains ? SCRIPT_AT_LAST : 0;
    now |= s->holds && trains && 2 * at == length && is_halved(s) ? SCRIPT_HOLDS
                                                                  : 0;
    if (in->sync != SCRIPT_SYNC_UNSAID) {
        say_sync(s, in->sync);
    } else if (in->by_hand != 0) {
        script_refuse_if(
            s, in->by_hand == SCRIPT_RESHARD_UNIT && at != 0 && at != length,
            "whether a window of the unit is open there is not known: "
            "`at 0` and `at 1/1` none is");
        s->kept = s->kept || in->by_hand == SCRIPT_UNSHARD_UNIT;
    } else {
        script_check_call(s, in->call, now);
    }
}

/* Whether gradients may overflow without an edit: those of 16 bits, or of a
 * loss whose scale is large or grows. */
static bool may_overflow(const struct script_state *s)
{
    const struct script_scale *scale = &s->s->scale;

    return (scale->said && (scale->every > 0 || scale->exponent > MODERATE)) ||
           (s->s->has_case && case_uses_dtype(&s->s->c, FSDP_DTYPE_F16));
}

/* In a random graph the trained parameters may get no gradient. Generators that
 * did not know that still draw what they drew. */
static bool may_train_nothing(const struct script *s)
{
    return s->generator != 2 && s->generator != 3 && s->has_case &&
           s->c.frozen != 0 && strcmp(s->c.workload, "graph") == 0;
}

/* What the edits of a whole training pass do to the gradients. */
static uint32_t hurt_by(const struct script_state *s,
                        const struct script_action *a)
{
    uint32_t hurt =
        s->hurt_values || may_overflow(s) ? SCRIPT_MAYBE_HURT : SCRIPT_UNHURT;

    for (uint32_t i = 0; i < a->n_edits; i++) {
        const struct script_edit *e = &s->s->edit[a->first_edit + i];
        bool not_finite =
            e->kind == SCRIPT_EDIT_INF || e->kind == SCRIPT_EDIT_NAN;

        if (not_finite && e->parameter == SCRIPT_ALL && s->frozen == 0 &&
            !may_train_nothing(s->s)) {
            hurt = SCRIPT_HURT;
        } else if (hurt == SCRIPT_HURT || not_finite ||
                   (e->kind == SCRIPT_EDIT_TIMES && e->exponent > 0)) {
            hurt = SCRIPT_MAYBE_HURT;
        }
    }
    return hurt;
}

/* A step with gradients that are not finite makes values so, too; but if the
 * loss is scaled, a step with infinities is skipped. */
static void take_step(struct script_state *s)
{
    s->hurt_values = s->hurt_values || s->hurt == SCRIPT_MAYBE_HURT ||
                     (s->hurt == SCRIPT_HURT && !s->s->scale.said);
}

/* With one replica no sums are left that replicas have yet to add up. */
static void end_training_pass(struct script_state *s,
                              const struct script_action *a, uint64_t no_sync)
{
    const bool alone = s->s->has_case && s->world.replicas == 1;
    const uint64_t apart = alone ? 0 : s->no_all_reduce & ~no_sync;
    uint32_t hurt = hurt_by(s, a);

    s->hurt = hurt > s->hurt ? hurt : s->hurt;
    s->touched = s->touched || a->n_edits > 0;
    s->unreduced = no_sync;
    s->partial = (s->partial & no_sync) | apart;
    s->pending = (s->unreduced | s->partial) != 0;
    if (!s->step_set) {
        s->reduced = s->reduced || (no_sync | apart) != UINT64_MAX;
    } else if ((no_sync | apart) != UINT64_MAX) { /* that is stepped */
        take_step(s);
        s->reduced = s->reduced && s->pending;
        s->hurt = s->pending ? s->hurt : SCRIPT_UNHURT;
    }
}

static void walk_pass(struct script_state *s, const struct script_action *a)
{
    bool trains = a->verb == SCRIPT_PASS;
    uint32_t length =
        s->length[trains ? FSDP_SEQUENCE_TRAIN : FSDP_SEQUENCE_EVAL];
    uint32_t points =
        a->ending == SCRIPT_WHOLE ? length : script_place_in(a->until, length);
    uint64_t no_sync;

    script_refuse_if(
        s, s->s->has_case && a->batch.microbatch >= s->s->c.microbatches,
        "a step of this case has fewer microbatches: they count from 0");
    script_refuse_if(
        s, points > length,
        "the pass is not as long as that; A/B is a part of any length");
    if (a->sync != SCRIPT_SYNC_UNSAID) {
        say_sync(s, a->sync);
    }
    no_sync = s->no_sync;
    for (uint32_t i = 0; i < a->n_inside; i++) {
        walk_inside(s, &s->s->inside[a->first_inside + i], points, length,
                    trains);
    }
    script_refuse_if(s, s->step_set && a->ending == SCRIPT_LEFT_OPEN,
                     "a pass that is left open steps for nobody");
    /* The unsharded run recomputes nothing, and would stop at another point. */
    script_refuse_if(s,
                     s->step_set && a->ending == SCRIPT_CANCELLED &&
                         s->s->has_case && s->s->c.recompute != 0,
                     "a pass that has its step and is recomputed is whole");
    s->kept = (s->kept || s->keeps) && a->ending != SCRIPT_CANCELLED;
    if (a->ending == SCRIPT_CANCELLED) {
        if (s->step_set) { /* units that have closed by then are stepped */
            const uint32_t hurt = hurt_by(s, a);

            s->hurt = hurt > s->hurt ? hurt : s->hurt;
            take_step(s);
        }
        script_drop_gradients(s);
    } else if (a->ending == SCRIPT_LEFT_OPEN) {
        script_refuse_if(s, s->saving != SCRIPT_NO_SLOT,
                         "a save has not been waited for: `wait` comes first");
        s->left_open = true;
    } else if (trains) {
        end_training_pass(s, a, no_sync);
    }
    s->step_set = false;
}

/* ---- Lives ---- */

/* Whether units have options of their own: these depend on the wrap. */
static bool by_unit(const struct run_case *c)
{
    return case_has_units_dtypes(c) || c->factors == CASE_UNIT_FACTORS;
}

bool script_same_bits(const struct run_case *a, const struct run_case *b)
{
    const bool exact =
        a->precision == CASE_F32 && a->factors == CASE_USUAL_FACTORS;

    if (a->fold == FSDP_FOLD_TREE && exact) {
        return a->grains == b->grains;
    }
    return a->ranks == b->ranks && a->replicas == b->replicas &&
           (a->wrap == b->wrap || (a->fold != FSDP_FOLD_RING && !by_unit(a)));
}

static void walk_world(struct script_state *s, const struct script_action *a)
{
    struct run_case next;

    if (a->world.ranks == 0) {
        return;
    }
    if (!s->s->has_case) {
        script_refuse_if(s, true, "another world needs the setting `case`");
        return;
    }
    script_case_in(&s->world, &a->world, &next);
    script_refuse_if(s, case_check(&next) != NULL, case_check(&next));
    script_refuse_if(
        s, (next.wrap == CASE_WRAP_DRAWN) != (s->world.wrap == CASE_WRAP_DRAWN),
        "units that are drawn with the model are its only ones");
    script_refuse_if(
        s, !script_same_bits(&s->world, &next),
        "under fold tree the ranks may change, if the grains stay; under "
        "fold rank strategy and wrap; else the strategy alone. In 16 "
        "bits, or with other factors, the ranks stay");
    s->world = next;
}

static void end_life(struct script_state *s, const struct script_action *a)
{
    script_refuse_if(s, s->saving != SCRIPT_NO_SLOT,
                     "a save has not been waited for: `wait` comes first");
    begin_life(s);
    s->renamed = a->renamed;
    if (a->verb == SCRIPT_ANEW) {
        walk_world(s, a);
    }
}

/* ---- */

static void walk_optimizer(struct script_state *s,
                           const struct script_action *a)
{
    script_refuse_if(
        s, s->pending,
        "it is refused while gradients are pending that sync has not "
        "reduced, or not across replicas: a pass with `s` and all-reduce "
        "1 reduces them, `zero` drops them");
    script_refuse_if(s, s->step_set,
                     "the next pass has been given a step: it comes first");
    if (a->verb == SCRIPT_STEP) {
        s->kept = false;
        take_step(s);
        return;
    }
    script_refuse_if(s, !(a->max_norm > 0.0f), "the largest norm is above 0");
    script_refuse_if(s, a->p != 1.0f && a->p != 2.0f && !isinf(a->p),
                     "p is 1, 2 or inf");
    script_refuse_if(s, a->strict && s->hurt == SCRIPT_HURT,
                     "the norm is not finite: `! clip-nonfinite` says so");
    script_refuse_if(
        s, a->strict && (s->hurt != SCRIPT_UNHURT || s->hurt_values),
        "whether the norm is finite is not known here: without `strict` "
        "it may be either");
    s->touched = true;
}

/* Whether the contract allows the action between unshard_all and
 * reshard_all. */
static bool is_for_open(const struct script_action *a)
{
    return a->verb == SCRIPT_RESHARD || a->verb == SCRIPT_SYNC ||
           a->verb == SCRIPT_WAIT || a->verb == SCRIPT_AGAIN ||
           a->verb == SCRIPT_ANEW || a->verb == SCRIPT_WRONG;
}

static void walk_set(struct script_state *s, const struct script_action *a)
{
    const uint64_t units =
        a->unit == FSDP_NO_UNIT ? UINT64_MAX : 1ull << a->unit;
    uint64_t *of = a->knob == FSDP_KNOB_GRADIENT_SYNC ? &s->no_sync
                   : a->knob == FSDP_KNOB_ALL_REDUCE  ? &s->no_all_reduce
                                                      : NULL;
    const bool divides = a->value >= 256.0f;

    assert(a->unit == FSDP_NO_UNIT || a->unit < SCRIPT_MAX_UNITS);
    if (of) {
        *of = a->value != 0.0f ? *of & ~units : *of | units;
    } else if (a->knob == FSDP_KNOB_RESHARD_AFTER_BACKWARD) {
        s->keeps = a->value == 0.0f || (s->keeps && a->unit != FSDP_NO_UNIT);
    } else if (a->knob == FSDP_KNOB_RESHARD_AFTER_FORWARD) {
        s->holds = a->value == 0.0f && (s->holds || a->unit == FSDP_NO_UNIT);
    } else if (a->knob == FSDP_KNOB_PREDIVIDE_FACTOR) {
        s->predivided =
            divides ? s->predivided | units : s->predivided & ~units;
    }
}

static bool needs_values(uint32_t verb)
{
    return verb == SCRIPT_PASS || verb == SCRIPT_EVAL || verb == SCRIPT_LOOK ||
           verb == SCRIPT_SUMMON || verb == SCRIPT_UNSHARD ||
           verb == SCRIPT_UNSHARD_UNIT || verb == SCRIPT_SAVE ||
           verb == SCRIPT_SUMMON_SOME;
}

/* Refuses what the earlier actions of this life do not allow. */
static void refuse_in_life(struct script_state *s,
                           const struct script_action *a)
{
    script_refuse_if(
        s, s->left_open && a->verb != SCRIPT_AGAIN && a->verb != SCRIPT_ANEW,
        "a pass was left open: only `again`, `anew` or the end may "
        "follow");
    script_refuse_if(
        s, a->verb == SCRIPT_ANEW && s->s->scale.said,
        "who scales its loss keeps the scale in this process: `again`");
    script_refuse_if(s, s->open_all && !is_for_open(a),
                     "everything is unsharded: `reshard` comes first");
    script_refuse_if(
        s, s->empty && needs_values(a->verb),
        "parameters have no values yet: `assign all`, `send all` or `load` "
        "comes first");
}

static void walk_step_ahead(struct script_state *s)
{
    script_refuse_if(s, s->s->scale.said,
                     "who scales its loss steps behind the pass: `step`");
    s->step_set = true;
}

static void walk_checkpoint(struct script_state *s,
                            const struct script_action *a)
{
    if (a->verb == SCRIPT_SAVE) {
        script_save(s, a);
    } else if (a->verb == SCRIPT_WAIT) {
        script_wait(s, a);
    } else {
        script_load(s, a);
    }
}

static void walk_freeze(struct script_state *s, const struct script_action *a)
{
    script_refuse_if(s, s->pending || s->reduced,
                     "it is refused while there are gradients: `zero` drops "
                     "them");
    script_refuse_if(s, s->saving != SCRIPT_NO_SLOT,
                     "it is refused while a save has not been waited for: "
                     "`wait` comes first");
    script_freeze(s, a);
}

/* Actions that show whole parameters, or give them values, between passes. */
static void walk_values(struct script_state *s, const struct script_action *a)
{
    const bool gives = a->verb == SCRIPT_ASSIGN || a->verb == SCRIPT_SEND;

    script_refuse_if(s, gives && a->source == SCRIPT_SUMMONED && !s->summoned,
                     "nothing was summoned in this life: `summon` comes first");
    s->kept = a->verb == SCRIPT_UNSHARD_UNIT;
    if (gives) {
        s->empty = s->empty && a->parameter != SCRIPT_ALL;
        s->values |= a->parameter < 64 ? 1ull << a->parameter : 0;
    } else {
        s->open_all = s->open_all || a->verb == SCRIPT_UNSHARD;
        s->summoned = s->summoned || a->verb == SCRIPT_UNSHARD ||
                      a->verb == SCRIPT_SUMMON;
    }
}

static void walk_life(struct script_state *s, const struct script_action *a)
{
    if (!s->living) {
        begin_life(s);
    }
    refuse_in_life(s, a);
    switch (a->verb) {
    case SCRIPT_PASS:
    case SCRIPT_EVAL:
        walk_pass(s, a);
        break;
    case SCRIPT_STEP:
    case SCRIPT_CLIP:
        walk_optimizer(s, a);
        break;
    case SCRIPT_BACKWARD_STEP:
        walk_step_ahead(s);
        break;
    case SCRIPT_ZERO:
        script_drop_gradients(s);
        break;
    case SCRIPT_SYNC:
        say_sync(s, a->sync);
        break;
    case SCRIPT_SET:
        walk_set(s, a);
        break;
    case SCRIPT_FREEZE:
    case SCRIPT_THAW:
        walk_freeze(s, a);
        break;
    case SCRIPT_UNSHARD:
    case SCRIPT_SUMMON:
    case SCRIPT_SUMMON_SOME:
    case SCRIPT_ASSIGN:
    case SCRIPT_SEND:
    case SCRIPT_UNSHARD_UNIT:
        walk_values(s, a);
        break;
    case SCRIPT_RESHARD:
        script_refuse_if(s, !s->open_all,
                         "nothing to reshard: `unshard` comes first");
        s->open_all = false;
        break;
    case SCRIPT_SAVE:
    case SCRIPT_WAIT:
    case SCRIPT_LOAD:
        walk_checkpoint(s, a);
        break;
    case SCRIPT_WRONG:
        script_check_call(s, a->call, script_when_at_rest(s));
        break;
    case SCRIPT_AGAIN:
    case SCRIPT_ANEW:
        end_life(s, a);
        break;
    default: /* LOOK, RESHARD_UNIT: at rest, anything may be looked at */
        break;
    }
}

void script_state_begin(const struct script *s, const uint32_t lengths[2],
                        struct script_state *out)
{
    *out = (struct script_state){.s = s,
                                 .saving = SCRIPT_NO_SLOT,
                                 .saved = s->given,
                                 .length = {LONG, LONG}};
    if (lengths) {
        memcpy(out->length, lengths, sizeof(out->length));
    }
    if (s->has_case) {
        out->world = s->c;
    }
}

void script_state_take(struct script_state *state,
                       const struct script_action *a)
{
    if (!script_is_offer(a)) {
        walk_life(state, a);
    } else {
        script_refuse_if(state, state->living,
                         "models are offered before the first life");
        script_check_call(state, a->call, SCRIPT_UNTRAINED);
    }
}

void script_state_end(struct script_state *state)
{
    script_refuse_if(state, state->living && state->saving != SCRIPT_NO_SLOT,
                     "a save has not been waited for: `wait` comes first");
}
