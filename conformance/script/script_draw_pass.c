/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_draw_pass.c - a pass of a drawn script: its batch, what happens inside
 * it, what becomes of its gradients, how it ends.
 */
#include "script/script_draw_parts.h"

#define N_OF(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

static uint32_t below(struct drawer *d, uint32_t n)
{
    return chance_below(&d->chance, n);
}

static bool one_in(struct drawer *d, uint32_t n)
{
    return chance_one_in(&d->chance, n);
}

/* Mostly the batch that comes next; sometimes an earlier one. */
static void draw_batch(struct drawer *d, struct script_batch *b)
{
    if (one_in(d, 8)) {
        b->step = below(d, d->step + 1);
        b->microbatch = below(d, d->s->c.microbatches);
        return;
    }
    b->step = d->step;
    b->microbatch = d->microbatch++;
    if (d->microbatch >= d->s->c.microbatches) {
        d->microbatch = 0;
        d->step++;
    }
}

/* Eighths, so that a place is in every sequence; 4/8 is 1/2, 0/8 is 0. */
static struct script_place eighth(uint32_t a)
{
    uint32_t b = 8;

    while (a % 2 == 0 && b > 1) {
        a /= 2;
        b /= 2;
    }
    return (struct script_place){a, a == 0 ? 0 : b};
}

/* ---- Inside ---- */

/* A place at which a call must be refused, in a pass of so many eighths; false:
 * there is none. */
static bool place_of_call(struct drawer *d, uint32_t when, uint32_t eighths,
                          bool trains, struct script_place *out)
{
    if ((when & SCRIPT_IN_PASS) != 0) {
        *out = eighth(below(d, eighths + 1));
    } else if ((when & SCRIPT_AT_START) != 0) {
        *out = (struct script_place){0, 0};
    } else if ((when & SCRIPT_IN_FORWARD) != 0 && eighths >= 4) {
        *out = (struct script_place){1, 0};
    } else if ((when & SCRIPT_EARLY) != 0) {
        *out = eighth(below(d, eighths < 8 ? eighths + 1 : 8));
    } else if ((when & SCRIPT_AT_LAST) != 0 && eighths == 8 && trains) {
        *out = eighth(8);
    } else {
        return false;
    }
    return true;
}

static bool draw_call(struct drawer *d, uint32_t eighths, bool trains,
                      struct script_inside *out)
{
    for (uint32_t i = 0; i < 64; i++) {
        out->call = draw_any_call(d);
        if (place_of_call(d, script_calls[out->call].when, eighths, trains,
                          &out->place)) {
            return true;
        }
    }
    return false;
}

/* The place in sixteenths. The first point comes before the first eighth. */
static uint32_t reached(const struct script_inside *in)
{
    return in->place.b != 0 ? 16 * in->place.a / in->place.b : in->place.a;
}

/* An unshard anywhere, or a reshard, which is legal only outside of the unit's
 * windows: at the beginning or at the end. */
static struct script_inside draw_by_hand(struct drawer *d, uint32_t eighths)
{
    const bool reshards = one_in(d, 3);
    uint32_t at = below(d, eighths + 1);

    if (reshards) {
        at = at == 8 ? 8 : 0;
    }
    return (struct script_inside){.place = eighth(at),
                                  .by_hand = reshards ? SCRIPT_RESHARD_UNIT
                                                      : SCRIPT_UNSHARD_UNIT,
                                  .unit = below(d, draw_units(&d->s->c))};
}

/* Draws what happens inside the pass, in the order of the places. */
static void draw_inside(struct drawer *d, struct script_action *a,
                        uint32_t eighths)
{
    struct script *s = d->s;
    uint32_t often = d->theme == DRAW_OF_WRONG_CALLS ? 3 : 12;
    struct script_inside in[2];
    uint32_t n = 0;

    if (one_in(d, 12)) {
        in[n++] = (struct script_inside){
            .place = eighth(below(d, eighths + 1)),
            .sync = one_in(d, 2) ? SCRIPT_SYNC_ON : SCRIPT_SYNC_OFF};
    }
    if (d->by_hand && one_in(d, 6)) {
        in[n++] = draw_by_hand(d, eighths);
    }
    while (n < N_OF(in) && one_in(d, often)) {
        in[n] = (struct script_inside){.sync = SCRIPT_SYNC_UNSAID};
        n += draw_call(d, eighths, a->verb == SCRIPT_PASS, &in[n]);
    }
    if (n == 2 && reached(&in[0]) > reached(&in[1])) {
        struct script_inside first = in[0];

        in[0] = in[1];
        in[1] = first;
    }
    a->first_inside = s->n_inside;
    for (uint32_t i = 0; i < n; i++) {
        s->inside[s->n_inside++] = in[i];
    }
    a->n_inside = n;
}

/* ---- Edits ---- */

static void add_edit(struct drawer *d, struct script_action *a,
                     struct script_edit e)
{
    d->s->edit[d->s->n_edits++] = e;
    a->n_edits++;
}

static struct script_edit edit_all(uint32_t kind, int32_t exponent)
{
    return (struct script_edit){kind, exponent, SCRIPT_ALL, SCRIPT_ALL,
                                SCRIPT_ALL};
}

/* Draws where an edit is made: of one rank as often as of all, and so on. */
static void draw_where(struct drawer *d, struct script_edit *e)
{
    if (one_in(d, 2)) {
        e->rank = below(d, 4);
    }
    if (one_in(d, 3)) {
        e->parameter = below(d, 8);
    }
    if (one_in(d, 3)) {
        e->element = below(d, 64);
    }
}

/* Gradients whose sum rounds the other way in double; a clip, which needs that
 * sum, comes next. */
static void draw_tie(struct drawer *d, struct script_action *a)
{
    struct script_edit tie = edit_all(SCRIPT_EDIT_TIE, 0);

    tie.parameter = below(d, 4);
    add_edit(d, a, edit_all(SCRIPT_EDIT_ZERO, 0));
    add_edit(d, a, tie);
    draw_comes_next(d, SCRIPT_CLIP);
}

/* Once weights were stepped with a gradient that is huge or not finite, later
 * actions show little. So a script has at most one of these, in its last
 * third. */
static bool may_be_last(const struct drawer *d)
{
    return !d->loud && 3 * d->s->n_actions >= 2 * d->wanted;
}

/* If the loss is scaled, the step skips gradients that are not finite, so that
 * they may come earlier. */
static bool may_be_loud(const struct drawer *d)
{
    return d->s->scale.said || may_be_last(d);
}

static void draw_loud(struct drawer *d, struct script_action *a)
{
    static const uint32_t kind[] = {SCRIPT_EDIT_INF, SCRIPT_EDIT_NAN,
                                    SCRIPT_EDIT_TIMES};
    const bool scaled = d->s->scale.said;
    uint32_t k = kind[below(d, may_be_last(d) ? N_OF(kind) : 2)];
    struct script_edit e = edit_all(k, 0);

    if (k == SCRIPT_EDIT_TIMES) {
        e.exponent = 60 + (int32_t)below(d, 68);
    }
    draw_where(d, &e);
    add_edit(d, a, e);
    d->loud = !scaled || k == SCRIPT_EDIT_TIMES;
    if (!scaled || one_in(d, 2)) {
        draw_comes_next(d, one_in(d, 2) ? SCRIPT_WRONG : SCRIPT_CLIP);
        draw_comes_next(d, SCRIPT_LOOK);
    }
    if (scaled) {
        draw_comes_next(d, SCRIPT_STEP);
    }
}

static void draw_edits(struct drawer *d, struct script_action *a)
{
    a->first_edit = d->s->n_edits;
    if (one_in(d, 8)) {
        struct script_edit e =
            edit_all(SCRIPT_EDIT_TIMES, -100 - (int32_t)below(d, 40));

        add_edit(d, a, e);
    } else if (one_in(d, 10)) {
        struct script_edit e =
            edit_all(SCRIPT_EDIT_TIMES, 1 + (int32_t)below(d, 10));

        draw_where(d, &e);
        add_edit(d, a, e);
    } else if (one_in(d, 16)) {
        struct script_edit e = edit_all(
            one_in(d, 2) ? SCRIPT_EDIT_ZERO : SCRIPT_EDIT_SUBNORMAL, 0);

        draw_where(d, &e);
        add_edit(d, a, e);
    } else if (one_in(d, 24)) {
        draw_tie(d, a);
    } else if (may_be_loud(d) && one_in(d, 8)) {
        draw_loud(d, a);
    }
}

/* ---- */

/* Half of the passes whose gradients are not reduced are followed by another of
 * these. */
static uint32_t draw_sync(struct drawer *d)
{
    uint32_t off_in = d->state.pending ? 2 : 3;

    if (d->theme == DRAW_OF_MICROBATCHES) {
        off_in = 1 + one_in(d, 5);
    }
    if (one_in(d, 8)) {
        return SCRIPT_SYNC_UNSAID;
    }
    return one_in(d, off_in) ? SCRIPT_SYNC_OFF : SCRIPT_SYNC_ON;
}

/* Of the cancelled passes a fifth is cancelled before the first point, and a
 * fifth behind the last. */
static uint32_t draw_ending(struct drawer *d, struct script_action *a)
{
    uint32_t fifth = below(d, 5);
    uint32_t eighths = fifth == 0 ? 0 : fifth == 1 ? 8 : 1 + below(d, 7);

    if (!one_in(d, a->verb == SCRIPT_EVAL ? 6 : 10)) {
        return 8;
    }
    a->ending = a->verb == SCRIPT_PASS && one_in(d, 12) ? SCRIPT_LEFT_OPEN
                                                        : SCRIPT_CANCELLED;
    a->until = eighth(eighths);
    return eighths;
}

void draw_pass(struct drawer *d, struct script_action *a)
{
    uint32_t eighths;

    draw_batch(d, &a->batch);
    a->sync = a->verb == SCRIPT_PASS ? draw_sync(d) : SCRIPT_SYNC_UNSAID;
    eighths = draw_ending(d, a);
    draw_inside(d, a, eighths);
    if (a->verb == SCRIPT_PASS) {
        draw_edits(d, a);
    }
}
