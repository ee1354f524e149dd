/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_draw_action.c - what an action of a drawn script says, but for passes:
 * its numbers, slots, units, parameters, the call that must be refused.
 */
#include "script/script_draw_parts.h"

#include <math.h>

#define N_OF(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

static uint32_t below(struct drawer *d, uint32_t n)
{
    return chance_below(&d->chance, n);
}

static bool one_in(struct drawer *d, uint32_t n)
{
    return chance_one_in(&d->chance, n);
}

static float draw_lr(struct drawer *d)
{
    static const float part[] = {0.125f, 0.25f, 0.5f, 0.75f,
                                 1.0f,   1.25f, 1.5f, 2.0f};

    return case_default_lr(&d->s->c) * part[below(d, N_OF(part))];
}

static float draw_decay(struct drawer *d)
{
    static const float decay[] = {0.0f, 0.001f, 0.01f, 0.1f, 0.25f};

    return decay[below(d, N_OF(decay))];
}

void draw_step(struct drawer *d, struct script_action *a)
{
    const uint32_t groups = d->s->groups;

    a->n_lr = one_in(d, 3) ? 1 : groups;
    for (uint32_t g = 0; g < a->n_lr; g++) {
        a->lr[g] = draw_lr(d);
    }
    if (one_in(d, 2)) {
        a->n_decay = one_in(d, 3) ? 1 : groups;
        for (uint32_t g = 0; g < a->n_decay; g++) {
            a->decay[g] = draw_decay(d);
        }
    }
}

static void draw_clip(struct drawer *d, struct script_action *a)
{
    static const float norm[] = {0.5f, 1.0f, 0x1p-6f, 0.001f, 100.0f, 0x1p40f};
    static const float p[] = {1.0f, 2.0f, INFINITY};

    a->max_norm = one_in(d, 3) ? INFINITY : norm[below(d, N_OF(norm))];
    a->p = p[below(d, N_OF(p))];
    /* Weights may grow out of bounds over many steps, so the norm may not be
     * finite. */
    a->strict = d->state.hurt == SCRIPT_UNHURT && !d->state.hurt_values &&
                !d->many && one_in(d, 3);
}

static void draw_save(struct drawer *d, struct script_action *a)
{
    static const uint32_t form[] = {FSDP_SAVE_FULL, FSDP_SAVE_SHARDED,
                                    FSDP_SAVE_SHARDED, FSDP_SAVE_LOCAL};

    a->slot = below(d, SCRIPT_MAX_SLOTS);
    a->form = form[below(d, N_OF(form))];
    a->rank0_only = a->form == FSDP_SAVE_FULL && one_in(d, 2);
    if (!draw_has_forms(d)) {
        return;
    }
    if (one_in(d, 3)) {
        a->what = 1 + below(d, 2 * FSDP_SAVE_EXTRA - 1);
    }
    if (a->form == FSDP_SAVE_FULL && one_in(d, 3)) {
        a->dtype = one_in(d, 2) ? FSDP_DTYPE_BF16 : FSDP_DTYPE_F16;
    }
}

/* A load is lenient where only that is legal, and now and then elsewhere; but
 * not if it would leave a model some parameters with values and others
 * without. */
static bool draw_lenient(struct drawer *d, uint32_t slot)
{
    const struct script_state *s = &d->state;
    struct script_state then = *s;

    if (!draw_has_forms(d) ||
        (draw_lacks_values(d) && s->slot[slot].renamed != s->renamed)) {
        return false;
    }
    script_state_take(
        &then, &(struct script_action){.verb = SCRIPT_LOAD, .slot = slot});
    return then.why[0] || one_in(d, 4);
}

/* A parameter has another name in one life of three, and mostly its own again
 * in the next. */
static void draw_again(struct drawer *d, struct script_action *a)
{
    if (draw_has_forms(d) && one_in(d, d->state.renamed ? 4 : 2)) {
        a->renamed = 1 + draw_parameter(d);
    }
}

static void draw_summon(struct drawer *d, struct script_action *a)
{
    const bool all = one_in(d, 3);

    a->unit = all ? FSDP_NO_UNIT : below(d, draw_units(&d->s->c));
    a->on_rank0 = all || one_in(d, 3);
}

/* A slot that has been saved, if there is one. */
static uint32_t draw_saved(struct drawer *d)
{
    uint32_t slot = below(d, SCRIPT_MAX_SLOTS);

    for (uint32_t i = 0; i < SCRIPT_MAX_SLOTS; i++) {
        if ((d->state.saved >> (slot + i) % SCRIPT_MAX_SLOTS & 1) != 0) {
            return (slot + i) % SCRIPT_MAX_SLOTS;
        }
    }
    return slot;
}

static void draw_anew(struct drawer *d, struct script_action *a)
{
    a->world = (struct script_world){.wrap = CASE_N_WRAPS};
    if (one_in(d, 2) && !draw_world(d, &d->state.world, &a->world)) {
        a->world = (struct script_world){.wrap = CASE_N_WRAPS};
    }
}

static float draw_factor(struct drawer *d)
{
    static const float factor[] = {1.0f, 2.0f, 3.0f, 7.0f, 0.75f, 1.5f, 0.125f};

    return factor[below(d, N_OF(factor))];
}

/* Half of the time, a knob other than gradient sync and all-reduce, for
 * generators that know of units; false: not this time. */
static bool draw_other_knob(struct drawer *d, struct script_action *a)
{
    static const uint32_t knob[] = {
        FSDP_KNOB_RESHARD_AFTER_FORWARD, FSDP_KNOB_RESHARD_AFTER_BACKWARD,
        FSDP_KNOB_DIVIDE_FACTOR, FSDP_KNOB_PREDIVIDE_FACTOR};

    if (!draw_has_units(d) || one_in(d, 2)) {
        return false;
    }
    a->knob = knob[below(d, N_OF(knob))];
    a->unit = one_in(d, 3) ? FSDP_NO_UNIT : below(d, draw_units(&d->s->c));
    a->value = one_in(d, 2) ? 0.0f : 1.0f;
    if (script_sets_factor(a)) {
        a->value = draw_factor(d);
    }
    return true;
}

/* While some unit is off, units are set on more often than off. Replicas can be
 * left with partial sums, so all-reduce is drawn more often with them. */
static void draw_set(struct drawer *d, struct script_action *a)
{
    if (draw_other_knob(d, a)) {
        return;
    }
    a->knob = one_in(d, d->s->c.replicas > 1 ? 2 : 6) ? FSDP_KNOB_ALL_REDUCE
                                                      : FSDP_KNOB_GRADIENT_SYNC;
    a->unit = one_in(d, 3) ? FSDP_NO_UNIT : below(d, draw_units(&d->s->c));
    a->value =
        one_in(d, (d->state.no_sync | d->state.no_all_reduce) != 0 ? 4 : 2)
            ? 0.0f
            : 1.0f;
}

/* One parameter, or all; a thaw is mostly of a parameter that was frozen by
 * itself. Bit 63 belongs to no parameter: if it is set, all were frozen at
 * once. */
static void draw_freeze(struct drawer *d, struct script_action *a)
{
    a->parameter = one_in(d, 6) ? SCRIPT_ALL : draw_parameter(d);
    if (a->verb == SCRIPT_THAW && one_in(d, 2) && d->state.frozen != 0 &&
        d->state.frozen >> 63 == 0) {
        a->parameter = (uint32_t)__builtin_ctzll(d->state.frozen);
    }
}

/* Values for all parameters, or for one. If anything was summoned in this life,
 * every other time what was summoned. Rank 0 sends whole parameters. */
static void draw_values(struct drawer *d, struct script_action *a)
{
    a->parameter = one_in(d, 3) ? SCRIPT_ALL : draw_parameter(d);
    a->source = one_in(d, 4) ? SCRIPT_INITIAL : SCRIPT_OF_NUMBER;
    if (d->state.summoned && one_in(d, 2)) {
        a->source = SCRIPT_SUMMONED;
    }
    if (a->source == SCRIPT_OF_NUMBER) {
        a->number = below(d, 100);
    }
    if (a->verb == SCRIPT_ASSIGN) {
        a->slice = one_in(d, 3) ? 1 + below(d, 16) : 0;
    }
    if (draw_lacks_values(d) && !one_in(d, 3)) {
        a->parameter = SCRIPT_ALL;
    }
}

bool draw_lacks_states(const struct drawer *d)
{
    return (d->state.saved & 1) != 0 && script_lacks_states(&d->state, 0);
}

/* A strict load of checkpoint a, if that has other tensors than the model. */
static bool draw_wrong_load(struct drawer *d, uint32_t *call)
{
    const uint32_t now = script_when_at_rest(&d->state);

    *call = (now & SCRIPT_PARTS) != 0     ? SCRIPT_CALL_LOAD_PARTS
            : (now & SCRIPT_RENAMED) != 0 ? SCRIPT_CALL_LOAD_RENAMED
            : (now & SCRIPT_ROUNDED) != 0 ? SCRIPT_CALL_LOAD_ROUNDED
                                          : SCRIPT_N_CALLS;
    return *call != SCRIPT_N_CALLS && !one_in(d, 3);
}

/* A call that is refused where the script stands, if there is one. If a norm is
 * not finite, a step is set, or replicas have not added up, it is mostly a call
 * that is refused for that. */
static void draw_wrong(struct drawer *d, struct script_action *a)
{
    a->call = SCRIPT_CALL_CLIP_NONFINITE;
    if (d->state.hurt == SCRIPT_HURT && !one_in(d, 4)) {
        return;
    }
    if (draw_has_units(d) && draw_lacks_states(d) && !one_in(d, 4)) {
        a->call = SCRIPT_CALL_LOAD_WITHOUT_STATES;
        return;
    }
    if (draw_lacks_values(d) && !one_in(d, 4)) {
        a->call = SCRIPT_CALL_DEFERRED_BEGIN + below(d, 4);
        return;
    }
    if (d->state.step_set) {
        a->call = one_in(d, 2) ? SCRIPT_CALL_BACKWARD_STEP_THEN_STEP
                               : SCRIPT_CALL_BACKWARD_STEP_THEN_CLIP;
        return;
    }
    if (draw_has_forms(d) && draw_wrong_load(d, &a->call)) {
        return;
    }
    a->call = one_in(d, 2) ? SCRIPT_CALL_STEP_WITH_PARTIALS
                           : SCRIPT_CALL_CLIP_WITH_PARTIALS;
    if (d->state.partial != 0 && one_in(d, 2)) {
        return;
    }
    for (uint32_t i = 0; i < DRAW_MOST_TRIED; i++) {
        struct script_state then = d->state;

        a->call = draw_any_call(d);
        script_state_take(&then, a);
        if (!then.why[0]) {
            return;
        }
    }
}

void draw_what_it_says(struct drawer *d, struct script_action *a)
{
    switch (a->verb) {
    case SCRIPT_PASS:
    case SCRIPT_EVAL:
        draw_pass(d, a);
        break;
    case SCRIPT_STEP:
    case SCRIPT_BACKWARD_STEP:
        draw_step(d, a);
        break;
    case SCRIPT_CLIP:
        draw_clip(d, a);
        break;
    case SCRIPT_SYNC:
        a->sync = one_in(d, 2) ? SCRIPT_SYNC_ON : SCRIPT_SYNC_OFF;
        break;
    case SCRIPT_SAVE:
        draw_save(d, a);
        break;
    case SCRIPT_WAIT:
        a->slot = d->state.saving % SCRIPT_MAX_SLOTS;
        break;
    case SCRIPT_LOAD:
        a->slot = draw_saved(d);
        a->lenient = draw_lenient(d, a->slot);
        break;
    case SCRIPT_AGAIN:
        draw_again(d, a);
        break;
    case SCRIPT_SUMMON_SOME:
        draw_summon(d, a);
        break;
    case SCRIPT_ANEW:
        draw_anew(d, a);
        break;
    case SCRIPT_WRONG:
        draw_wrong(d, a);
        break;
    case SCRIPT_SET:
        draw_set(d, a);
        break;
    case SCRIPT_UNSHARD_UNIT:
    case SCRIPT_RESHARD_UNIT:
        a->unit = below(d, draw_units(&d->s->c));
        break;
    case SCRIPT_FREEZE:
    case SCRIPT_THAW:
        draw_freeze(d, a);
        break;
    case SCRIPT_ASSIGN:
    case SCRIPT_SEND:
        draw_values(d, a);
        break;
    default:
        break;
    }
}

/* Calls that only generators with steps draw; they do not lie together in the
 * enum. */
static const uint32_t of_steps[] = {SCRIPT_CALL_UNCLAIMED_PARAMETER_UNITS,
                                    SCRIPT_CALL_UNCLAIMED_IGNORED,
                                    SCRIPT_CALL_PARAMETER_UNIT_OUT_OF_RANGE,
                                    SCRIPT_CALL_RANKS_DISAGREE_ON_IGNORED,
                                    SCRIPT_CALL_UNKNOWN_BUFFER,
                                    SCRIPT_CALL_UNCLAIMED_BUFFERS,
                                    SCRIPT_CALL_UNKNOWN_BUFFER_DTYPE,
                                    SCRIPT_CALL_RANKS_DISAGREE_ON_FACTORS,
                                    SCRIPT_CALL_RANKS_DISAGREE_ON_BUFFERS,
                                    SCRIPT_CALL_BACKWARD_STEP_IN_PASS,
                                    SCRIPT_CALL_BACKWARD_STEP_WHILE_OPEN,
                                    SCRIPT_CALL_BACKWARD_STEP_GROUPS,
                                    SCRIPT_CALL_BACKWARD_STEP_SCALED,
                                    SCRIPT_CALL_BACKWARD_STEP_THEN_STEP,
                                    SCRIPT_CALL_BACKWARD_STEP_THEN_CLIP};

uint32_t draw_any_call(struct drawer *d)
{
    static const uint32_t n_first = SCRIPT_N_DRAWN_CALLS;
    static const uint32_t later = SCRIPT_CALL_UNSHARD_UNKNOWN_UNIT;
    static const uint32_t of_places = SCRIPT_CALL_UNCLAIMED_OFFLOAD;
    const uint32_t n_units =
        draw_has_units(d) ? SCRIPT_N_DRAWN_LATER - later : 0;
    const uint32_t n_assigns =
        draw_has_steps(d) ? SCRIPT_N_DRAWN_LAST - SCRIPT_CALL_ASSIGN_IN_PASS
                          : 0;
    const uint32_t n_steps = draw_has_steps(d) ? N_OF(of_steps) : 0;
    const uint32_t n_places =
        draw_has_places(d) ? SCRIPT_CALL_ASSIGN_IN_PASS - of_places : 0;
    const uint32_t n_last =
        draw_has_places(d) ? SCRIPT_CALL_SUMMON_IN_PASS - SCRIPT_N_DRAWN_LAST
                           : 0;
    const uint32_t n_forms = draw_has_forms(d) ? SCRIPT_CALL_LOAD_ROUNDED + 1 -
                                                     SCRIPT_CALL_SUMMON_IN_PASS
                                               : 0;
    const uint32_t n_sends = draw_has_sends(d) ? SCRIPT_CALL_SEND_LENIENCY + 1 -
                                                     SCRIPT_CALL_SEND_IN_PASS
                                               : 0;
    const uint32_t n_before =
        n_first + n_units + n_steps + n_assigns + n_places + n_last;
    uint32_t call = below(d, n_before + n_forms + n_sends);

    if (call >= n_before + n_forms) {
        return call - n_before - n_forms + SCRIPT_CALL_SEND_IN_PASS;
    }
    if (call >= n_before) {
        return call - n_before + SCRIPT_CALL_SUMMON_IN_PASS;
    }

    /* Calls between the ranges, and those that the list lacks, need a model
     * with a tie, an ignored parameter or a second unit. */
    if (call < n_first + n_units) {
        return call < n_first ? call : call - n_first + later;
    }
    call -= n_first + n_units;
    if (call < n_steps) {
        return of_steps[call];
    }
    call -= n_steps;
    return call < n_assigns + n_last ? call + SCRIPT_CALL_ASSIGN_IN_PASS
                                     : call - n_assigns - n_last + of_places;
}
