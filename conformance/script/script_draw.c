/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_draw.c - draws a script from a seed: a header, a theme, then action
 * after action, each tried on the state behind the last one, so that all that
 * is drawn is legal.
 */
#include "script/script_draw_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_OF(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

enum {
    MOST_TRIED = 200, /* actions, before one that is always legal is taken */
    MANY_STEPS = 42,
};

static uint32_t below(struct drawer *d, uint32_t n)
{
    return chance_below(&d->chance, n);
}

static bool one_in(struct drawer *d, uint32_t n)
{
    return chance_one_in(&d->chance, n);
}

/* ---- What an action says ---- */

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

/* One number for all groups, or one for each. */
static void draw_step(struct drawer *d, struct script_action *a)
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
    /* Over many steps a curve may diverge. */
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
}

/* One that has been saved, if there is one. */
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

/* Copies are mostly kept where one of these is drawn, for a while. */
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

/* More often on than off; partial sums are where there are replicas. */
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

/* Of one parameter, or of all; mostly what was frozen by itself is thawed. The
 * last bit is of no parameter: it is there where all were frozen at once. */
static void draw_freeze(struct drawer *d, struct script_action *a)
{
    a->parameter = one_in(d, 6) ? SCRIPT_ALL : draw_parameter(d);
    if (a->verb == SCRIPT_THAW && one_in(d, 2) && d->state.frozen != 0 &&
        d->state.frozen >> 63 == 0) {
        a->parameter = (uint32_t)__builtin_ctzll(d->state.frozen);
    }
}

/* Of all, or of one; what was summoned, where it was, as often as not. */
static void draw_assign(struct drawer *d, struct script_action *a)
{
    a->parameter = one_in(d, 3) ? SCRIPT_ALL : draw_parameter(d);
    a->source = one_in(d, 4) ? SCRIPT_INITIAL : SCRIPT_OF_NUMBER;
    if (d->state.summoned && one_in(d, 2)) {
        a->source = SCRIPT_SUMMONED;
    }
    if (a->source == SCRIPT_OF_NUMBER) {
        a->number = below(d, 100);
    }
    a->slice = one_in(d, 3) ? 1 + below(d, 16) : 0;
}

/* A load of the first checkpoint must be refused. */
static bool lacks_states(const struct drawer *d)
{
    return (d->state.saved & 1) != 0 && script_lacks_states(&d->state, 0);
}

/* One that is refused where the script stands, if there is one; where a norm is
 * not finite, a step is set, or replicas have not met, mostly one of these. */
static void draw_wrong(struct drawer *d, struct script_action *a)
{
    a->call = SCRIPT_CALL_CLIP_NONFINITE;
    if (d->state.hurt == SCRIPT_HURT && !one_in(d, 4)) {
        return;
    }
    if (draw_has_units(d) && lacks_states(d) && !one_in(d, 4)) {
        a->call = SCRIPT_CALL_LOAD_WITHOUT_STATES;
        return;
    }
    if (d->state.step_set) {
        a->call = one_in(d, 2) ? SCRIPT_CALL_BACKWARD_STEP_THEN_STEP
                               : SCRIPT_CALL_BACKWARD_STEP_THEN_CLIP;
        return;
    }
    a->call = one_in(d, 2) ? SCRIPT_CALL_STEP_WITH_PARTIALS
                           : SCRIPT_CALL_CLIP_WITH_PARTIALS;
    if (d->state.partial != 0 && one_in(d, 2)) {
        return;
    }
    for (uint32_t i = 0; i < MOST_TRIED; i++) {
        struct script_state then = d->state;

        a->call = draw_any_call(d);
        script_state_take(&then, a);
        if (!then.why[0]) {
            return;
        }
    }
}

static void draw_what_follows(struct drawer *d, struct script_action *a)
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
        draw_assign(d, a);
        break;
    default:
        break;
    }
}

uint32_t draw_any_call(struct drawer *d)
{
    static const uint32_t n_first = SCRIPT_N_DRAWN_CALLS;
    static const uint32_t later = SCRIPT_CALL_UNSHARD_UNKNOWN_UNIT;
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
    const uint32_t n_units =
        draw_has_units(d) ? SCRIPT_N_DRAWN_LATER - later : 0;
    const uint32_t n_assigns =
        draw_has_steps(d) ? SCRIPT_N_DRAWN_LAST - SCRIPT_CALL_ASSIGN_IN_PASS
                          : 0;
    const uint32_t n_steps = draw_has_steps(d) ? N_OF(of_steps) : 0;
    uint32_t call = below(d, n_first + n_units + n_steps + n_assigns);

    /* What is between, and what the list lacks, needs what not every model
     * has: a tie, something ignored, a second unit. */
    if (call < n_first + n_units) {
        return call < n_first ? call : call - n_first + later;
    }
    call -= n_first + n_units;
    return call < n_steps ? of_steps[call]
                          : call - n_steps + SCRIPT_CALL_ASSIGN_IN_PASS;
}

/* ---- What follows an action ---- */

void draw_comes_next(struct drawer *d, uint32_t verb)
{
    if (d->n_next < DRAW_MOST_NEXT) {
        d->next[d->n_next++] = verb;
    }
}

static void draw_next(struct drawer *d, uint32_t verb)
{
    switch (verb) {
    case SCRIPT_STEP:
    case SCRIPT_CLIP:
        if (!one_in(d, 4)) {
            draw_comes_next(d, SCRIPT_LOOK);
        }
        if (verb == SCRIPT_STEP && !one_in(d, 3)) {
            draw_comes_next(d, SCRIPT_ZERO);
        }
        break;
    case SCRIPT_BACKWARD_STEP:
        if (one_in(d, 8)) {
            draw_comes_next(d, SCRIPT_WRONG);
        }
        if (!one_in(d, 8)) {
            draw_comes_next(d, SCRIPT_PASS);
            draw_comes_next(d, SCRIPT_LOOK);
        }
        break;
    case SCRIPT_LOAD:
        if (!one_in(d, 4)) {
            draw_comes_next(d, SCRIPT_LOOK);
        }
        if (one_in(d, 2)) {
            draw_comes_next(d, SCRIPT_PASS);
            draw_comes_next(d, SCRIPT_STEP);
            draw_comes_next(d, SCRIPT_LOOK);
        }
        break;
    case SCRIPT_AGAIN:
    case SCRIPT_ANEW:
        if (one_in(d, 2)) {
            draw_comes_next(d, SCRIPT_LOAD);
        }
        break;
    case SCRIPT_FREEZE: /* what is thawed later has states before, or none */
        if (one_in(d, 4)) {
            draw_comes_next(d, SCRIPT_SAVE);
            draw_comes_next(d, SCRIPT_WAIT);
            draw_comes_next(d, SCRIPT_THAW);
        }
        break;
    case SCRIPT_ASSIGN:
        if (!one_in(d, 3)) {
            draw_comes_next(d, SCRIPT_LOOK);
        }
        break;
    case SCRIPT_THAW:
        if (lacks_states(d)) {
            draw_comes_next(d, SCRIPT_WRONG);
        }
        break;
    default:
        break;
    }
}

/* ---- One action ---- */

/* Adds a, if it is legal. */
static bool take(struct drawer *d, const struct script_action *a)
{
    struct script_state then = d->state;

    script_state_take(&then, a);
    if (then.why[0]) {
        return false;
    }
    d->state = then;
    d->s->action[d->s->n_actions++] = *a;
    return true;
}

static bool try_verb(struct drawer *d, uint32_t verb)
{
    struct script_action a = {.verb = verb};
    const struct drawer before = *d;
    const uint32_t n_inside = d->s->n_inside;
    const uint32_t n_edits = d->s->n_edits;

    draw_what_follows(d, &a);
    if (take(d, &a)) {
        draw_next(d, verb);
        return true;
    }
    /* As if it had not been drawn, but for the chances that it took. */
    d->step = before.step;
    d->microbatch = before.microbatch;
    d->n_next = before.n_next;
    d->loud = before.loud;
    d->s->n_inside = n_inside;
    d->s->n_edits = n_edits;
    return false;
}

/* Units of a graph may have two backward windows. */
static bool may_step_early(const struct drawer *d)
{
    return draw_has_steps(d) && d->s->c.wrap != CASE_WRAP_DRAWN;
}

/* But for repeats. */
static uint32_t any_verb(struct drawer *d)
{
    const uint32_t drawn =
        draw_has_units(d) ? SCRIPT_N_DRAWN_VERBS - 1 : SCRIPT_REPEAT;
    const uint32_t more = may_step_early(d) ? 2 : draw_has_steps(d) ? 1 : 0;
    const uint32_t verb = below(d, drawn + more);

    if (verb >= drawn) {
        return verb == drawn ? SCRIPT_ASSIGN : SCRIPT_BACKWARD_STEP;
    }

    return verb < SCRIPT_REPEAT ? verb : verb + 1;
}

static uint32_t draw_verb(struct drawer *d)
{
    uint32_t weight[SCRIPT_N_VERBS] = {
        [SCRIPT_PASS] = 40,
        [SCRIPT_EVAL] = 10,
        [SCRIPT_STEP] = 20,
        [SCRIPT_ZERO] = 6,
        [SCRIPT_CLIP] = 5,
        [SCRIPT_LOOK] = 6,
        [SCRIPT_SUMMON] = 3,
        [SCRIPT_UNSHARD] = 2,
        [SCRIPT_RESHARD] = 20,
        [SCRIPT_SYNC] = 3,
        [SCRIPT_SAVE] = 5,
        [SCRIPT_WAIT] = 15,
        [SCRIPT_LOAD] = 4,
        [SCRIPT_AGAIN] = 1,
        [SCRIPT_ANEW] = 2,
        [SCRIPT_WRONG] = 6,
        [SCRIPT_SET] = d->controls ? 12 : 0,
        [SCRIPT_UNSHARD_UNIT] = d->by_hand ? 8 : 0,
        [SCRIPT_RESHARD_UNIT] = d->by_hand ? 5 : 0,
        [SCRIPT_FREEZE] = d->thaws ? 24 : 0,
        [SCRIPT_THAW] = d->thaws ? 24 : 0,
        [SCRIPT_BACKWARD_STEP] = d->steps_early ? 20 : 0,
        [SCRIPT_ASSIGN] = draw_has_steps(d) ? 4 : 0};

    if (one_in(d, 16)) {
        return any_verb(d);
    }
    if (d->theme == DRAW_OF_CHECKPOINTS) {
        weight[SCRIPT_SAVE] *= 3;
        weight[SCRIPT_LOAD] *= 3;
        weight[SCRIPT_ANEW] *= 3;
    } else if (d->theme == DRAW_OF_WRONG_CALLS) {
        weight[SCRIPT_WRONG] *= 5;
    } else if (d->theme == DRAW_OF_MICROBATCHES) {
        weight[SCRIPT_PASS] *= 2;
    }
    if (d->state.pending) {
        weight[SCRIPT_PASS] *= 2;
    } else if (d->state.reduced) {
        weight[SCRIPT_STEP] *= 3;
    } else {
        weight[SCRIPT_ZERO] = 1; /* nothing to drop, or to use */
        weight[SCRIPT_STEP] = weight[SCRIPT_CLIP] = one_in(d, 6) ? 14 : 0;
    }
    return chance_weighted(&d->chance, weight, SCRIPT_N_VERBS);
}

static bool try_next(struct drawer *d)
{
    while (d->n_next > 0) {
        uint32_t verb = d->next[0];

        memmove(d->next, d->next + 1, --d->n_next * sizeof(*d->next));
        if (try_verb(d, verb)) {
            return true;
        }
    }
    return false;
}

/* What ends what is open, or else always may come. */
static void take_any(struct drawer *d)
{
    uint32_t verb = d->state.left_open  ? SCRIPT_AGAIN
                    : d->state.open_all ? SCRIPT_RESHARD
                                        : SCRIPT_LOOK;

    (void)try_verb(d, verb);
}

static void draw_action(struct drawer *d)
{
    if (try_next(d)) {
        return;
    }
    for (uint32_t i = 0; i < MOST_TRIED; i++) {
        if (try_verb(d, draw_verb(d))) {
            return;
        }
    }
    take_any(d);
}

/* ---- Many steps ---- */

static struct script_action pass_of(const struct drawer *d, uint32_t m,
                                    uint32_t sync)
{
    return (struct script_action){.verb = SCRIPT_PASS,
                                  .batch = {d->step, m, true},
                                  .sync = sync,
                                  .first_inside = d->s->n_inside,
                                  .first_edit = d->s->n_edits};
}

/* Gradients that are not dropped grow: mostly they are. */
static uint32_t draw_body(struct drawer *d, struct script_action body[4])
{
    const uint32_t m = d->s->c.microbatches;
    uint32_t n = 0;

    if (one_in(d, 2)) {
        body[n++] = pass_of(d, 0, SCRIPT_SYNC_OFF);
    }
    body[n] = pass_of(d, n % m, SCRIPT_SYNC_ON);
    n++;
    body[n] = (struct script_action){.verb = SCRIPT_STEP};
    draw_step(d, &body[n++]);
    if (!one_in(d, 4)) {
        body[n++] = (struct script_action){.verb = SCRIPT_ZERO};
    }
    return n;
}

static void draw_many_steps(struct drawer *d)
{
    struct script_action body[4];
    uint32_t n = draw_body(d, body);
    struct script_state then = d->state;

    for (uint32_t turn = 0; turn < MANY_STEPS; turn++) {
        for (uint32_t i = 0; i < n; i++) {
            script_state_take(&then, &body[i]);
        }
    }
    if (then.why[0] || d->s->n_actions + n + 1 > SCRIPT_MOST_DRAWN) {
        return;
    }
    d->many = true;
    d->state = then;
    d->s->action[d->s->n_actions++] = (struct script_action){
        .verb = SCRIPT_REPEAT, .count = MANY_STEPS, .length = n};
    memcpy(d->s->action + d->s->n_actions, body, n * sizeof(*body));
    d->s->n_actions += n;
    d->step += MANY_STEPS;
    d->microbatch = 0;
}

/* ---- A script ---- */

/* Every engine is asked for these. */
static bool is_core(uint32_t verb)
{
    return verb == SCRIPT_PASS || verb == SCRIPT_STEP || verb == SCRIPT_ZERO ||
           verb == SCRIPT_LOOK;
}

static uint32_t count_core(const struct script *s)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n_actions; i++) {
        n += is_core(s->action[i].verb);
    }
    return n;
}

/* Models that must be refused come before the first life. */
static void draw_offers(struct drawer *d)
{
    uint32_t n = one_in(d, 12) ? 1 + below(d, 3) : 0;

    for (uint32_t i = 0; i < MOST_TRIED && n > 0; i++) {
        struct script_action a = {.verb = SCRIPT_WRONG,
                                  .call = draw_any_call(d)};

        n -= script_calls[a.call].when == SCRIPT_UNTRAINED && take(d, &a);
    }
}

/* Room for a wait and for the actions of the core that are missing. */
static bool has_room(const struct drawer *d)
{
    const uint32_t core = count_core(d->s);
    const uint32_t missing =
        core < SCRIPT_LEAST_CORE ? SCRIPT_LEAST_CORE - core : 0;

    return d->s->n_actions < d->wanted &&
           d->s->n_actions + missing + 2 < SCRIPT_MOST_DRAWN;
}

/* A script of which nothing is left open but its last pass. */
static void draw_end(struct drawer *d)
{
    static const uint32_t core[] = {SCRIPT_PASS, SCRIPT_STEP, SCRIPT_LOOK,
                                    SCRIPT_ZERO};

    if (d->state.saving != SCRIPT_MAX_SLOTS) {
        (void)try_verb(d, SCRIPT_WAIT);
    }
    if (count_core(d->s) < SCRIPT_LEAST_CORE &&
        (d->state.left_open || d->state.open_all)) {
        take_any(d);
    }
    while (count_core(d->s) < SCRIPT_LEAST_CORE &&
           d->s->n_actions + 2 <= SCRIPT_MOST_DRAWN) {
        if (d->state.left_open) {
            take_any(d);
        }
        (void)try_verb(d, core[below(d, N_OF(core))]);
    }
}

static void draw_actions(struct drawer *d)
{
    draw_offers(d);
    while (has_room(d)) {
        if (d->theme == DRAW_OF_MANY_STEPS && !d->many && d->n_next == 0 &&
            3 * d->s->n_actions >= d->wanted && one_in(d, 4)) {
            draw_many_steps(d);
        } else {
            draw_action(d);
        }
    }
    draw_end(d);
}

static uint32_t draw_theme(struct drawer *d)
{
    static const uint32_t weight[DRAW_N_THEMES] = {12, 6, 3, 3, 2};

    return chance_weighted(&d->chance, weight, DRAW_N_THEMES);
}

int script_draw(uint64_t seed, struct script *out, struct fsdp_error *error)
{
    return script_draw_by(SCRIPT_GENERATOR, seed, out, error);
}

int script_draw_by(uint32_t generator, uint64_t seed, struct script *out,
                   struct fsdp_error *error)
{
    struct drawer d = {.chance = {.seed = seed}, .s = out};

    *out = (struct script){.generator = generator, .groups = 1};
    out->action = calloc(SCRIPT_MOST_DRAWN, sizeof(*out->action));
    out->inside = calloc(DRAW_MOST_INSIDE, sizeof(*out->inside));
    out->edit = calloc(DRAW_MOST_EDITS, sizeof(*out->edit));
    if (!out->action || !out->inside || !out->edit) {
        *error =
            (struct fsdp_error){.status = FSDP_ERR_NOMEM, .where = "script"};
        (void)snprintf(error->message, sizeof(error->message), "no memory");
        return FSDP_ERR_NOMEM;
    }
    d.theme = draw_theme(&d);
    d.controls = one_in(&d, draw_has_units(&d) ? 3 : 4);
    if (draw_has_units(&d)) {
        d.by_hand = one_in(&d, 4);
        d.thaws = one_in(&d, 4);
    }
    draw_case(&d);
    /* Units of a graph may have two windows. */
    d.steps_early =
        draw_has_steps(&d) && out->c.wrap != CASE_WRAP_DRAWN && one_in(&d, 3);
    d.wanted = SCRIPT_LEAST_DRAWN +
               below(&d, SCRIPT_MOST_DRAWN - SCRIPT_LEAST_DRAWN + 1);
    script_state_begin(out, NULL, &d.state);
    draw_actions(&d);
    return FSDP_OK;
}
