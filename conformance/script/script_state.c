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
    NO_SLOT = SCRIPT_MAX_SLOTS,
    LONG = 1 << 20, /* points of a sequence of which nothing is known */
    MODERATE = 32,  /* a loss is scaled by at most 2 to this */
};

static void drop_gradients(struct script_state *s)
{
    s->unreduced = s->partial = 0;
    s->pending = s->reduced = false;
    s->hurt = SCRIPT_UNHURT;
}

static void begin_life(struct script_state *s)
{
    s->living = true;
    s->left_open = s->open_all = false;
    s->no_sync = s->no_all_reduce = 0;
    s->kept = s->keeps = s->holds = false;
    s->frozen = s->thawed = 0;
    s->step_set = s->summoned = false;
    s->empty = s->s->deferred;
    s->values = 0;
    drop_gradients(s);
    s->hurt_values = false;
    s->saving = NO_SLOT;
}

static void refuse_if(struct script_state *s, bool wrong, const char *why)
{
    if (wrong && !s->why[0]) {
        (void)snprintf(s->why, sizeof(s->why), "%s", why);
    }
}

/* ---- Calls that must be refused ---- */

/* Units that this life has for certain: of the bits behind them nothing can be
 * said. Each model has two layers. */
static uint64_t sure_units(const struct script_state *s)
{
    if (!s->s->has_case) {
        return UINT64_MAX;
    }
    return s->world.wrap == CASE_WRAP_LAYER || s->world.wrap == CASE_WRAP_BLOCK
               ? 3
               : 1;
}

/* Whether one of these units has gradients for certain: not where a unit may
 * have nothing that trains, or that a pass uses. And a random graph may have
 * nothing at all that trains, where some of it is frozen in passing, or all but
 * its head, to which that may be tied. */
static bool has_some(const struct script_state *s, uint64_t units)
{
    const bool drawn = s->s->has_case && strcmp(s->s->c.workload, "graph") == 0;
    const bool trains_all =
        !s->s->has_case || s->s->c.frozen == WORKLOAD_TRAINS_ALL;

    if (drawn && (s->frozen != 0 ||
                  (!trains_all && strcmp(s->s->c.size, "ties") == 0))) {
        return false;
    }
    if (s->frozen != 0) {
        return units == UINT64_MAX && s->frozen != UINT64_MAX && trains_all;
    }
    return trains_all && !drawn ? (units & sure_units(s)) != 0
                                : units == UINT64_MAX;
}

/* Which bits of enum script_when hold at rest. */
static uint32_t when_at_rest(const struct script_state *s)
{
    uint32_t now = SCRIPT_AT_REST;

    if (s->open_all) {
        return SCRIPT_OPEN_ALL;
    }
    now |= has_some(s, s->unreduced) ? SCRIPT_PENDING : 0;
    now |= has_some(s, s->partial) ? SCRIPT_PARTIAL : 0;
    now |= (s->pending || s->reduced) && has_some(s, UINT64_MAX)
               ? SCRIPT_GRADIENTS
               : 0;
    now |= s->step_set ? SCRIPT_STEP_SET : 0;
    /* Each model has two parameters. */
    now |= s->empty && (s->values & 3) != 3 ? SCRIPT_EMPTY : 0;
    now |= s->saving != NO_SLOT ? SCRIPT_SAVING : SCRIPT_IDLE;
    now |= !s->pending && !s->reduced && s->saving == NO_SLOT ? SCRIPT_FREE : 0;
    now |= (s->saved & 1) != 0 && s->saving == NO_SLOT ? SCRIPT_SAVED : 0;
    now |= (now & SCRIPT_SAVED) != 0 && script_lacks_states(s, 0)
               ? SCRIPT_STATELESS
               : 0;
    now |= (now & SCRIPT_SAVED) != 0 && !s->slot[0].local &&
                   s->slot[0].renamed != s->renamed
               ? SCRIPT_RENAMED
               : 0;
    now |= s->hurt == SCRIPT_HURT && s->reduced && !s->pending
               ? SCRIPT_NOT_FINITE
               : 0;
    return now;
}

/* Whether there may be a rank that lacks no value, where others do: it owns
 * none, or has been given them. */
static bool may_lack_none(const struct script_state *s)
{
    const uint32_t degree = case_shard_degree(&s->world);

    return s->values != 0 || degree > 2 ||
           (degree > 1 && strcmp(s->world.workload, "graph") == 0);
}

static void check_call(struct script_state *s, uint32_t call, uint32_t now)
{
    const struct script_call_row *row = &script_calls[call];

    if ((row->when & now) == 0 && !s->why[0]) {
        (void)snprintf(s->why, sizeof(s->why),
                       "nothing says that %s is refused here; it is %s",
                       row->name, script_when_text(row->when));
    }
    refuse_if(s,
              s->s->has_case && s->s->c.ranks < 2 &&
                  script_calls[call].refusal == SCRIPT_IS_A_MISMATCH,
              "one rank cannot disagree: a world of two could");
    refuse_if(s,
              s->kept && (call == SCRIPT_CALL_PARAM_AT_REST ||
                          call == SCRIPT_CALL_PARAM_AFTER_CANCEL),
              "a unit may be unsharded: `step` ends that");
    refuse_if(s,
              call == SCRIPT_CALL_DEFERRED_PIECES && s->s->generator != 0 &&
                  may_lack_none(s),
              "a rank that lacks no value has its pieces");
    if (call == SCRIPT_CALL_LOAD_DAMAGED) {
        s->saved &= ~1u; /* it is what was damaged */
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

    refuse_if(s, at > points,
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
        refuse_if(s,
                  in->by_hand == SCRIPT_RESHARD_UNIT && at != 0 && at != length,
                  "whether a window of the unit is open there is not known: "
                  "`at 0` and `at 1/1` none is");
        s->kept = s->kept || in->by_hand == SCRIPT_UNSHARD_UNIT;
    } else {
        check_call(s, in->call, now);
    }
}

/* Whether gradients may be too large without an edit: those of 16 bits, or of
 * a loss that is scaled by much, or by more and more. */
static bool may_overflow(const struct script_state *s)
{
    const struct script_scale *scale = &s->s->scale;

    return (scale->said && (scale->every > 0 || scale->exponent > MODERATE)) ||
           (s->s->has_case && case_uses_dtype(&s->s->c, FSDP_DTYPE_F16));
}

/* Of a random graph the parameters that train may have no gradient. What
 * generators drew that did not know stays as it is. */
static bool may_train_nothing(const struct script *s)
{
    return s->generator != 2 && s->generator != 3 && s->has_case &&
           s->c.frozen != 0 && s->c.wrap == CASE_WRAP_DRAWN;
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

/* By what hurts, values are hurt; under a scale a step by infinities is
 * skipped. */
static void take_step(struct script_state *s)
{
    s->hurt_values = s->hurt_values || s->hurt == SCRIPT_MAYBE_HURT ||
                     (s->hurt == SCRIPT_HURT && !s->s->scale.said);
}

/* Where there is one replica alone, all of it is reduced. */
static void end_training_pass(struct script_state *s,
                              const struct script_action *a, uint64_t no_sync)
{
    const bool alone = s->s->has_case && s->world.replicas == 1;
    const uint64_t apart = alone ? 0 : s->no_all_reduce & ~no_sync;
    uint32_t hurt = hurt_by(s, a);

    s->hurt = hurt > s->hurt ? hurt : s->hurt;
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

    refuse_if(s, s->s->has_case && a->batch.microbatch >= s->s->c.microbatches,
              "a step of this case has fewer microbatches: they count from 0");
    refuse_if(s, points > length,
              "the pass is not as long as that; A/B is a part of any length");
    if (a->sync != SCRIPT_SYNC_UNSAID) {
        say_sync(s, a->sync);
    }
    no_sync = s->no_sync;
    for (uint32_t i = 0; i < a->n_inside; i++) {
        walk_inside(s, &s->s->inside[a->first_inside + i], points, length,
                    trains);
    }
    refuse_if(s, s->step_set && a->ending == SCRIPT_LEFT_OPEN,
              "a pass that is left open steps for nobody");
    /* The unsharded run recomputes nothing, and would stop at another point. */
    refuse_if(s,
              s->step_set && a->ending == SCRIPT_CANCELLED && s->s->has_case &&
                  s->s->c.recompute != 0,
              "a pass that has its step and is recomputed is whole");
    s->kept = (s->kept || s->keeps) && a->ending != SCRIPT_CANCELLED;
    if (a->ending == SCRIPT_CANCELLED) {
        if (s->step_set) { /* what has closed by then is stepped */
            const uint32_t hurt = hurt_by(s, a);

            s->hurt = hurt > s->hurt ? hurt : s->hurt;
            take_step(s);
        }
        drop_gradients(s);
    } else if (a->ending == SCRIPT_LEFT_OPEN) {
        refuse_if(s, s->saving != NO_SLOT,
                  "a save has not been waited for: `wait` comes first");
        s->left_open = true;
    } else if (trains) {
        end_training_pass(s, a, no_sync);
    }
    s->step_set = false;
}

/* ---- Checkpoints ---- */

static void walk_save(struct script_state *s, const struct script_action *a)
{
    refuse_if(s, s->pending || s->reduced,
              "a save while there are gradients is refused (zero drops them)");
    refuse_if(s, s->saving != NO_SLOT,
              "a save is refused while another has not been waited for: `wait` "
              "comes first");
    s->saving = a->slot;
    s->saving_hurt = s->hurt_values;
    s->slot[a->slot].local = a->form == FSDP_SAVE_LOCAL;
    s->slot[a->slot].wrap = s->world.wrap;
    s->slot[a->slot].degree = case_shard_degree(&s->world);
    s->slot[a->slot].frozen = s->frozen;
    s->slot[a->slot].thawed = s->thawed;
    s->slot[a->slot].renamed = s->renamed;
    s->slot[a->slot].what = a->what;
}

static void walk_wait(struct script_state *s, const struct script_action *a)
{
    refuse_if(s, s->saving != a->slot,
              "this slot is not being saved: `save` comes first");
    s->saved |= 1u << a->slot;
    s->broken &= ~(1u << a->slot);
    s->broken |= (uint32_t)s->saving_hurt << a->slot;
    s->saving = NO_SLOT;
    refuse_if(
        s, a->same && (s->saved >> a->same_slot & 1) == 0,
        "the slot that it is compared with has not been saved: `save` and "
        "`wait` come first");
}

/* Tensors of the model are not in it, for certain or not. */
static bool is_partial(const struct script_state *s, uint32_t slot)
{
    const uint32_t tensors =
        FSDP_SAVE_PARAMETERS | FSDP_SAVE_STATES | FSDP_SAVE_BUFFERS;

    return s->slot[slot].what != 0 && (~s->slot[slot].what & tensors) != 0;
}

static bool other_names(const struct script_state *s, uint32_t slot)
{
    return s->slot[slot].renamed != s->renamed || is_partial(s, slot);
}

static void walk_load(struct script_state *s, const struct script_action *a)
{
    refuse_if(s, s->saving != NO_SLOT,
              "a load is refused while a save has not been waited for: `wait` "
              "comes first");
    refuse_if(s, (s->saved >> a->slot & 1) == 0,
              "this slot has not been saved, or has been damaged: `save` and "
              "`wait` come first");
    refuse_if(s,
              s->slot[a->slot].local &&
                  (s->slot[a->slot].wrap != s->world.wrap ||
                   s->slot[a->slot].degree != case_shard_degree(&s->world)),
              "the local form loads where wrap and shard degree are the same");
    refuse_if(s,
              s->slot[a->slot].local && (s->slot[a->slot].frozen != s->frozen ||
                                         s->slot[a->slot].thawed != s->thawed),
              "the local form loads where the same parameters are frozen");
    refuse_if(s, !a->lenient && !script_has_states(s, a->slot),
              "a parameter is trained now that may have been frozen when this "
              "was saved, without states: `freeze` comes first");
    refuse_if(
        s, other_names(s, a->slot) && (!a->lenient || s->slot[a->slot].local),
        "a parameter has another name than when this was saved, or a part "
        "was left out: `lenient` takes it, but not of the local form");
    refuse_if(s, a->lenient && (s->s->given >> a->slot & 1) != 0,
              "what another world had is not known here: without `lenient`");
    drop_gradients(s);
    s->kept = false;
    s->empty = s->empty && other_names(s, a->slot);
    s->hurt_values =
        (a->lenient && s->hurt_values) || (s->broken >> a->slot & 1) != 0;
}

/* ---- Lives ---- */

/* What units have of their own depends on which units there are. */
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
        refuse_if(s, true, "another world needs the setting `case`");
        return;
    }
    script_case_in(&s->world, &a->world, &next);
    refuse_if(s, case_check(&next) != NULL, case_check(&next));
    refuse_if(
        s, (next.wrap == CASE_WRAP_DRAWN) != (s->world.wrap == CASE_WRAP_DRAWN),
        "units that are drawn with the model are its only ones");
    refuse_if(s, !script_same_bits(&s->world, &next),
              "under fold tree the ranks may change, if the grains stay; under "
              "fold rank strategy and wrap; else the strategy alone. In 16 "
              "bits, or with other factors, the ranks stay");
    s->world = next;
}

static void end_life(struct script_state *s, const struct script_action *a)
{
    refuse_if(s, s->saving != NO_SLOT,
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
    refuse_if(s, s->pending,
              "it is refused while gradients are pending that sync has not "
              "reduced, or not across replicas: a pass with `s` and all-reduce "
              "1 reduces them, `zero` drops them");
    refuse_if(s, s->step_set,
              "the next pass has been given a step: it comes first");
    if (a->verb == SCRIPT_STEP) {
        s->kept = false;
        take_step(s);
        return;
    }
    refuse_if(s, !(a->max_norm > 0.0f), "the largest norm is above 0");
    refuse_if(s, a->p != 1.0f && a->p != 2.0f && !isinf(a->p),
              "p is 1, 2 or inf");
    refuse_if(s, a->strict && s->hurt == SCRIPT_HURT,
              "the norm is not finite: `! clip-nonfinite` says so");
    refuse_if(s, a->strict && (s->hurt != SCRIPT_UNHURT || s->hurt_values),
              "whether the norm is finite is not known here: without `strict` "
              "it may be either");
}

/* Whether the contract allows it between unshard_all and reshard_all. */
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

    assert(a->unit == FSDP_NO_UNIT || a->unit < SCRIPT_MAX_UNITS);
    if (of) {
        *of = a->value != 0.0f ? *of & ~units : *of | units;
    } else if (a->knob == FSDP_KNOB_RESHARD_AFTER_BACKWARD) {
        s->keeps = a->value == 0.0f || (s->keeps && a->unit != FSDP_NO_UNIT);
    } else if (a->knob == FSDP_KNOB_RESHARD_AFTER_FORWARD) {
        s->holds = a->value == 0.0f && (s->holds || a->unit == FSDP_NO_UNIT);
    }
}

static bool needs_values(uint32_t verb)
{
    return verb == SCRIPT_PASS || verb == SCRIPT_EVAL || verb == SCRIPT_LOOK ||
           verb == SCRIPT_SUMMON || verb == SCRIPT_UNSHARD ||
           verb == SCRIPT_UNSHARD_UNIT || verb == SCRIPT_SAVE ||
           verb == SCRIPT_SUMMON_SOME;
}

static void walk_life(struct script_state *s, const struct script_action *a)
{
    if (!s->living) {
        begin_life(s);
    }
    refuse_if(s,
              s->left_open && a->verb != SCRIPT_AGAIN && a->verb != SCRIPT_ANEW,
              "a pass was left open: only `again`, `anew` or the end may "
              "follow");
    refuse_if(s, a->verb == SCRIPT_ANEW && s->s->scale.said,
              "who scales its loss keeps the scale in this process: `again`");
    refuse_if(s, s->open_all && !is_for_open(a),
              "everything is unsharded: `reshard` comes first");
    refuse_if(s, s->empty && needs_values(a->verb),
              "parameters have no values yet: `assign all` or `load` comes "
              "first");
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
        refuse_if(s, s->s->scale.said,
                  "who scales its loss steps behind the pass: `step`");
        s->step_set = true;
        break;
    case SCRIPT_ZERO:
        drop_gradients(s);
        break;
    case SCRIPT_SYNC:
        say_sync(s, a->sync);
        break;
    case SCRIPT_SET:
        walk_set(s, a);
        break;
    case SCRIPT_FREEZE:
    case SCRIPT_THAW:
        refuse_if(s, s->pending || s->reduced,
                  "it is refused while there are gradients: `zero` drops them");
        refuse_if(s, s->saving != NO_SLOT,
                  "it is refused while a save has not been waited for: `wait` "
                  "comes first");
        script_freeze(s, a);
        break;
    case SCRIPT_UNSHARD:
        s->open_all = s->summoned = true;
        s->kept = false;
        break;
    case SCRIPT_SUMMON:
        s->summoned = true;
        s->kept = false;
        break;
    case SCRIPT_SUMMON_SOME:
        s->kept = false;
        break;
    case SCRIPT_ASSIGN:
        refuse_if(s, a->source == SCRIPT_SUMMONED && !s->summoned,
                  "nothing was summoned in this life: `summon` comes first");
        s->kept = false;
        s->empty = s->empty && a->parameter != SCRIPT_ALL;
        s->values |= a->parameter < 64 ? 1ull << a->parameter : 0;
        break;
    case SCRIPT_UNSHARD_UNIT:
        s->kept = true;
        break;
    case SCRIPT_RESHARD:
        refuse_if(s, !s->open_all, "nothing to reshard: `unshard` comes first");
        s->open_all = false;
        break;
    case SCRIPT_SAVE:
        walk_save(s, a);
        break;
    case SCRIPT_WAIT:
        walk_wait(s, a);
        break;
    case SCRIPT_LOAD:
        walk_load(s, a);
        break;
    case SCRIPT_WRONG:
        check_call(s, a->call, when_at_rest(s));
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
    *out = (struct script_state){
        .s = s, .saving = NO_SLOT, .saved = s->given, .length = {LONG, LONG}};
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
        refuse_if(state, state->living,
                  "models are offered before the first life");
        check_call(state, a->call, SCRIPT_UNTRAINED);
    }
}

void script_state_end(struct script_state *state)
{
    refuse_if(state, state->living && state->saving != NO_SLOT,
              "a save has not been waited for: `wait` comes first");
}
