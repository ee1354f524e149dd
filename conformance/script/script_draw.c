/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_draw.c - draws a script from a seed: a header, a theme, then action
 * after action, each tried on the state behind the last one, so that all that
 * is drawn is legal.
 */
#include "script/script_draw_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_OF(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

enum {
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

/* ---- What follows an action ---- */

void draw_comes_next(struct drawer *d, uint32_t verb)
{
    if (d->n_next < DRAW_MOST_NEXT) {
        d->next[d->n_next++] = verb;
    }
}

/* Actions that should soon follow one that begins a life, or that keeps
 * something for one. */
static void draw_next_of_life(struct drawer *d, uint32_t verb)
{
    switch (verb) {
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
        if ((draw_lacks_values(d) || d->state.renamed) && one_in(d, 2)) {
            draw_comes_next(d, SCRIPT_WRONG);
        }
        if (one_in(d, 2)) {
            draw_comes_next(d, SCRIPT_LOAD);
        }
        break;
    case SCRIPT_WAIT: /* a checkpoint of another form is loaded before long */
        if (draw_has_forms(d) && one_in(d, 3)) {
            draw_comes_next(d, SCRIPT_WRONG);
        }
        if (draw_has_forms(d) && one_in(d, 3)) {
            draw_comes_next(d, SCRIPT_LOAD);
        }
        break;
    default:
        break;
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
    case SCRIPT_PASS: /* behind a pass whose sums replicas have not added up */
        if (draw_has_sends(d) && d->state.partial != 0 && one_in(d, 2)) {
            draw_comes_next(d, SCRIPT_WRONG);
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
    case SCRIPT_FREEZE: /* a checkpoint with, or without, states of what is
                           thawed later */
        if (one_in(d, 4)) {
            draw_comes_next(d, SCRIPT_SAVE);
            draw_comes_next(d, SCRIPT_WAIT);
            draw_comes_next(d, SCRIPT_THAW);
        }
        break;
    case SCRIPT_ASSIGN:
    case SCRIPT_SEND:
        if (!one_in(d, 3)) {
            draw_comes_next(d, SCRIPT_LOOK);
        }
        break;
    case SCRIPT_THAW:
        if (draw_lacks_states(d)) {
            draw_comes_next(d, SCRIPT_WRONG);
        }
        break;
    default:
        draw_next_of_life(d, verb);
        break;
    }
}

/* ---- One action ---- */

/* Adds a, if it is legal. */
static bool take_action(struct drawer *d, const struct script_action *a)
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

    draw_what_it_says(d, &a);
    if (take_action(d, &a)) {
        draw_next(d, verb);
        return true;
    }
    /* The action is taken back; only the random numbers that it took are
     * gone. */
    d->step = before.step;
    d->microbatch = before.microbatch;
    d->n_next = before.n_next;
    d->loud = before.loud;
    d->s->n_inside = n_inside;
    d->s->n_edits = n_edits;
    return false;
}

/* Not with the units of a graph, which may have two backward windows. */
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
    const uint32_t verb =
        below(d, drawn + more + (draw_has_forms(d) ? 1u : 0u) +
                     (draw_has_sends(d) ? 1u : 0u));

    if (verb >= drawn + more) {
        return verb == drawn + more ? SCRIPT_SUMMON_SOME : SCRIPT_SEND;
    }
    if (verb >= drawn) {
        return verb == drawn ? SCRIPT_ASSIGN : SCRIPT_BACKWARD_STEP;
    }

    return verb < SCRIPT_REPEAT ? verb : verb + 1;
}

/* Changes the weights: the theme wants some verbs more often, and the state
 * allows some only. */
static void weigh_verbs(struct drawer *d, uint32_t weight[SCRIPT_N_VERBS])
{
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
}

static uint32_t draw_verb(struct drawer *d)
{
    /* Verbs while parameters lack values: those that give values, and those
     * that are legal without. */
    const uint32_t before_values[SCRIPT_N_VERBS] = {
        [SCRIPT_ASSIGN] = 16, [SCRIPT_LOAD] = 8,
        [SCRIPT_WRONG] = 6,   [SCRIPT_STEP] = 1,
        [SCRIPT_ZERO] = 1,    [SCRIPT_SYNC] = 1,
        [SCRIPT_SET] = 1,     [SCRIPT_AGAIN] = 1,
        [SCRIPT_FREEZE] = 1,  [SCRIPT_SEND] = draw_has_sends(d) ? 8 : 0};
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
        [SCRIPT_AGAIN] = draw_has_forms(d) ? 3 : 1,
        [SCRIPT_ANEW] = 2,
        [SCRIPT_WRONG] = 6,
        [SCRIPT_SET] = d->controls ? 12 : 0,
        [SCRIPT_UNSHARD_UNIT] = d->by_hand ? 8 : 0,
        [SCRIPT_RESHARD_UNIT] = d->by_hand ? 5 : 0,
        [SCRIPT_FREEZE] = d->thaws ? 24 : 0,
        [SCRIPT_THAW] = d->thaws ? 24 : 0,
        [SCRIPT_BACKWARD_STEP] = d->steps_early ? 20 : 0,
        [SCRIPT_ASSIGN] = draw_has_steps(d) ? 4 : 0,
        [SCRIPT_SUMMON_SOME] = draw_has_forms(d) ? 5 : 0,
        [SCRIPT_SEND] = draw_has_sends(d) ? 4 : 0};

    if (one_in(d, 16)) {
        return any_verb(d);
    }
    if (draw_lacks_values(d)) {
        return chance_weighted(&d->chance, before_values, SCRIPT_N_VERBS);
    }
    weigh_verbs(d, weight);
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

/* Takes an action that is always legal: one that ends what is open, or else one
 * that may come anywhere. */
static void take_any(struct drawer *d)
{
    uint32_t verb = d->state.left_open     ? SCRIPT_AGAIN
                    : d->state.open_all    ? SCRIPT_RESHARD
                    : draw_lacks_values(d) ? SCRIPT_ZERO
                                           : SCRIPT_LOOK;

    (void)try_verb(d, verb);
}

static void draw_action(struct drawer *d)
{
    if (try_next(d)) {
        return;
    }
    for (uint32_t i = 0; i < DRAW_MOST_TRIED; i++) {
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

/* The body of a repeat. Gradients that are not dropped grow with each step, so
 * mostly they are dropped. */
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

/* Whether every engine is asked for this action. */
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

    for (uint32_t i = 0; i < DRAW_MOST_TRIED && n > 0; i++) {
        struct script_action a = {.verb = SCRIPT_WRONG,
                                  .call = draw_any_call(d)};

        n -=
            script_calls[a.call].when == SCRIPT_UNTRAINED && take_action(d, &a);
    }
}

/* Whether there is room, beside a wait and the actions of the core that are
 * still missing. */
static bool has_room(const struct drawer *d)
{
    const uint32_t core = count_core(d->s);
    const uint32_t missing =
        core < SCRIPT_LEAST_CORE ? SCRIPT_LEAST_CORE - core : 0;

    return d->s->n_actions < d->wanted &&
           d->s->n_actions + missing + 2 < SCRIPT_MOST_DRAWN;
}

/* Ends the script so that nothing is left open but its last pass. */
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
        snprintf(error->message, sizeof(error->message), "no memory");
        return FSDP_ERR_NOMEM;
    }
    d.theme = draw_theme(&d);
    d.controls = one_in(&d, draw_has_units(&d) ? 3 : 4);
    if (draw_has_units(&d)) {
        d.by_hand = one_in(&d, 4);
        d.thaws = one_in(&d, 4);
    }
    draw_case(&d);
    /* Not with the units of a graph, which may have two backward windows. */
    d.steps_early =
        draw_has_steps(&d) && out->c.wrap != CASE_WRAP_DRAWN && one_in(&d, 3);
    d.wanted = SCRIPT_LEAST_DRAWN +
               below(&d, SCRIPT_MOST_DRAWN - SCRIPT_LEAST_DRAWN + 1);
    script_state_begin(out, NULL, &d.state);
    draw_actions(&d);
    return FSDP_OK;
}
