/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect_walk.c - walks the call sequences of one step as an engine of the
 * strict profile must, and writes down what it communicates and how much is
 * live. Peaks are the maximum over all moments of that walk, not a formula:
 * windows may nest (the root's is open around every block), and then no
 * formula of the largest unit holds. What the options of running ahead may add
 * to these peaks comes last: units that are gathered early, reductions that are
 * still in flight.
 */
#include "judge/oracle/expect_walk.h"
#include "judge/oracle/expect_walk_units.h"

#include <stdlib.h>

static int walk_summon(struct walk *w)
{
    /* copies that were kept may be of another dtype */
    expect_walk_reshard_each(w);
    for (uint32_t u = 0; u < w->e->units->n_units; u++) {
        FSDP_TRY(expect_walk_unshard(w, u, FSDP_DTYPE_F32));
    }
    return FSDP_OK;
}

/* Shows one unit, or shows parameters to rank 0 alone. The latter are sent as
 * the engine likes, and ranks differ: nothing is measured of it. */
static int walk_summon_some(struct walk *w, const struct script_action *a)
{
    expect_walk_reshard_each(w);
    if (a->on_rank0) {
        return FSDP_OK;
    }
    if (a->unit >= w->e->units->n_units) {
        return FSDP_ERR_INVALID;
    }
    FSDP_TRY(expect_walk_unshard(w, a->unit, FSDP_DTYPE_F32));
    expect_walk_reshard_each(w);
    return FSDP_OK;
}

static void say_sync(struct walk *w, bool on)
{
    expect_walk_set(w, FSDP_NO_UNIT, FSDP_KNOB_GRADIENT_SYNC, on ? 1.0f : 0.0f);
}

/* The order in which the driver of a case calls an engine. */
static int walk_run(struct walk *w, struct expect *e)
{
    const struct run_case *c = e->c;
    struct record_hosted behind = {0};

    w->out = &e->step;
    w->hosted = &e->hosted;
    if (c->scenario == CASE_CANCEL) {
        FSDP_TRY(expect_walk_sequence(w, FSDP_SEQUENCE_TRAIN, 5, 0));
        w->out = &e->ahead;
        FSDP_TRY(
            expect_walk_ahead(w, FSDP_SEQUENCE_TRAIN,
                              expect_walk_part(w, FSDP_SEQUENCE_TRAIN, 5)));
        w->out = &e->step;
        expect_walk_cancel(w);
    }
    for (uint32_t b = 0; b < c->microbatches; b++) {
        say_sync(w, c->sync[b] != 0);
        FSDP_TRY(expect_walk_sequence(w, FSDP_SEQUENCE_TRAIN, 8, b));
    }
    expect_walk_step(w);
    expect_walk_drop_gradients(w);
    if (c->scenario == CASE_EVAL) {
        FSDP_TRY(expect_walk_sequence(w, FSDP_SEQUENCE_EVAL, 8, 0));
    }
    /* Done before all units are unsharded at once, to which prefetch adds
     * nothing. */
    expect_walk_allow_ahead(e, w);
    w->out = &e->end;
    w->hosted = &behind;
    return c->scenario == CASE_SUMMON ? walk_summon(w) : FSDP_OK;
}

/* ---- Scripts ------------------------------------------------------------ */

/* Does what a script says of gradient sync in later passes. */
static void take_sync(struct walk *w, uint32_t said)
{
    if (said != SCRIPT_SYNC_UNSAID) {
        say_sync(w, said == SCRIPT_SYNC_ON);
    }
}

/* Unshards or reshards a unit by hand, at rest or in a pass. */
static int walk_unit(struct walk *w, uint32_t verb, uint32_t unit)
{
    if (unit >= w->e->units->n_units) {
        return FSDP_ERR_INVALID;
    }
    if (verb == SCRIPT_RESHARD_UNIT) {
        expect_walk_reshard(w, unit);
        return FSDP_OK;
    }
    return expect_walk_unshard(w, unit, w->e->unit[unit].dtype.param);
}

/* Passes the first n points, and does at each place what the script says. */
static int walk_points(struct walk *w, const struct script_action *a,
                       uint32_t index, uint32_t n, uint32_t length)
{
    const struct script_inside *in = w->e->script.inside + a->first_inside;

    const uint32_t b = a->batch.microbatch;
    uint32_t from = 0;

    for (uint32_t i = 0; i <= n && a->n_inside > 0; i++) {
        for (uint32_t k = 0; k < a->n_inside; k++) {
            if (script_place_in(in[k].place, length) != i) {
                continue;
            }
            take_sync(w, in[k].sync);
            if (in[k].by_hand != 0) {
                FSDP_TRY(expect_walk_points(w, index, from, i, b));
                FSDP_TRY(walk_unit(w, in[k].by_hand, in[k].unit));
                from = i;
            }
        }
    }
    return expect_walk_points(w, index, from, n, b);
}

static int walk_pass(struct walk *w, const struct script_action *a,
                     struct expect_event *v)
{
    const uint32_t index =
        a->verb == SCRIPT_EVAL ? FSDP_SEQUENCE_EVAL : FSDP_SEQUENCE_TRAIN;
    const uint32_t length = expect_walk_part(w, index, 8);
    const uint32_t n =
        a->ending == SCRIPT_WHOLE ? length : script_place_in(a->until, length);

    take_sync(w, a->sync);
    expect_walk_begin(w);
    FSDP_TRY(walk_points(w, a, index, n, length));
    if (a->ending != SCRIPT_WHOLE) {
        w->out = &v->ahead;
        FSDP_TRY(expect_walk_ahead(w, index, n));
    }
    if (a->ending == SCRIPT_CANCELLED) {
        expect_walk_cancel(w);
    }
    return FSDP_OK;
}

/* Changes what is trained: the states of all other parameters are gone. */
static void train(struct walk *w, const struct expect *now)
{
    for (uint32_t u = 0; u < now->units->n_units; u++) {
        for (uint32_t i = 0; i < expect_walk_states(now); i++) {
            expect_walk_shrink(
                w, expect_walk_at(now->unit[u].step_on_host, FSDP_OPTIM),
                FSDP_DTYPE_F32, w->e->unit[u].state);
        }
    }
    w->e = now;
    for (uint32_t u = 0; u < now->units->n_units; u++) {
        for (uint32_t i = 0; i < expect_walk_states(now); i++) {
            expect_walk_grow(
                w, expect_walk_at(now->unit[u].step_on_host, FSDP_OPTIM),
                FSDP_DTYPE_F32, now->unit[u].state);
        }
    }
}

static int walk_freeze(struct walk *w, struct expect *base,
                       const struct script_action *a)
{
    const struct expect *now;

    if (a->parameter != SCRIPT_ALL &&
        a->parameter >= base->model->n_parameters) {
        return FSDP_ERR_INVALID;
    }
    FSDP_TRY(expect_trains_others(base, w->e, a->parameter,
                                  a->verb == SCRIPT_FREEZE, &now));
    train(w, now);
    return FSDP_OK;
}

static int walk_action(struct walk *w, struct expect *base,
                       const struct script_action *a, struct expect_event *v)
{
    w->out = &v->seen;
    w->hosted = &v->hosted;
    switch (a->verb) {
    case SCRIPT_PASS:
    case SCRIPT_EVAL:
        return walk_pass(w, a, v);
    case SCRIPT_SYNC:
        take_sync(w, a->sync);
        return FSDP_OK;
    case SCRIPT_BACKWARD_STEP:
        w->step_set = true;
        return FSDP_OK;
    case SCRIPT_SET:
        expect_walk_set(w, a->unit, a->knob, a->value);
        return FSDP_OK;
    case SCRIPT_LOAD:
        expect_walk_reshard_each(w);
        expect_walk_drop_gradients(w);
        return FSDP_OK;
    case SCRIPT_ZERO:
        expect_walk_drop_gradients(w);
        return FSDP_OK;
    case SCRIPT_AGAIN:
        expect_walk_cancel(w); /* nothing of a pass outlives a life */
        w->step_set = false;
        expect_walk_set_knobs(w);
        train(w, base);
        return FSDP_OK;
    case SCRIPT_FREEZE:
    case SCRIPT_THAW:
        return walk_freeze(w, base, a);
    case SCRIPT_UNSHARD:
        return walk_summon(w);
    case SCRIPT_SUMMON:
        FSDP_TRY(walk_summon(w));
        expect_walk_reshard_each(w);
        return FSDP_OK;
    case SCRIPT_SUMMON_SOME:
        return walk_summon_some(w, a);
    case SCRIPT_STEP: /* copies that were kept have other weights now */
        expect_walk_reshard_each(w);
        expect_walk_step(w);
        return FSDP_OK;
    case SCRIPT_RESHARD:
    case SCRIPT_ASSIGN:
    case SCRIPT_SEND: /* values are sent as the engine likes */
        expect_walk_reshard_each(w);
        return FSDP_OK;
    case SCRIPT_UNSHARD_UNIT:
    case SCRIPT_RESHARD_UNIT:
        return walk_unit(w, a->verb, a->unit);
    default:
        return FSDP_OK;
    }
}

static int note_units(uint32_t n, bool **of)
{
    *of = calloc((size_t)n + 1, sizeof(**of));
    return *of ? FSDP_OK : FSDP_ERR_NOMEM;
}

/* Notes what is left behind an action; nothing before the first life. */
static int note_event(const struct walk *w, bool living, struct expect_event *v)
{
    const uint32_t n = w->e->units->n_units;

    for (uint32_t k = 0; living && k < RECORD_N_KINDS; k++) {
        v->rest[k] = w->live[k];
    }
    v->steps = v->action->verb == SCRIPT_STEP;
    if (v->action->verb == SCRIPT_PASS && w->steps) {
        FSDP_TRY(note_units(n, &v->stepped));
        for (uint32_t u = 0; u < n; u++) {
            v->stepped[u] = w->unit[u].stepped;
            v->steps = v->steps || w->unit[u].stepped;
        }
    }
    if (v->action->verb == SCRIPT_LOOK) {
        FSDP_TRY(note_units(n, &v->reduced));
        for (uint32_t u = 0; u < n; u++) {
            v->reduced[u] = w->unit[u].reduced;
        }
    }
    return FSDP_OK;
}

static int walk_script(struct walk *w, struct expect *e)
{
    struct script_walk at = script_begin(&e->script);
    const struct script_action *a;
    bool living = false;

    e->event = calloc((size_t)e->c->steps + 1, sizeof(*e->event));
    if (!e->event) {
        return FSDP_ERR_NOMEM;
    }
    while ((a = script_next(&at))) {
        struct expect_event *v = &e->event[e->n_events];

        if (e->n_events == e->c->steps) {
            return FSDP_ERR_INVALID;
        }
        e->n_events++;
        v->action = a;
        FSDP_TRY(walk_action(w, e, a, v));
        v->as = w->e;
        living = living || !script_is_offer(a);
        FSDP_TRY(note_event(w, living, v));
    }
    expect_walk_allow_ahead(e, w);
    return e->n_events == e->c->steps ? FSDP_OK : FSDP_ERR_INVALID;
}

static void store(struct expect *e, const struct walk *w)
{
    for (uint32_t k = 0; k < RECORD_N_KINDS; k++) {
        e->peak[k] = w->peak[k];
    }
    e->peak_full = e->peak[FSDP_PARAM_FULL];
    e->peak_grads = e->peak[FSDP_GRAD_FULL];
    e->peak_parameters = w->peak_parameters;
    e->peak_engine = w->peak_engine;
    e->peak_storage = w->peak_storage;
}

int expect_walk(struct expect *e, const struct expect_watch *watch)
{
    struct walk w = {.e = e, .watch = watch};
    int status = FSDP_ERR_NOMEM;

    w.unit = calloc((size_t)e->units->n_units + 1, sizeof(*w.unit));
    w.accumulated =
        calloc((size_t)e->model->n_parameters + 1, sizeof(*w.accumulated));
    if (w.unit && w.accumulated) {
        expect_walk_set_knobs(&w);
        for (uint32_t u = 0; u < e->units->n_units; u++) {
            const struct expect_unit *x = &e->unit[u];

            expect_walk_grow(&w,
                             expect_walk_at(x->shard_on_host, FSDP_PARAM_SHARD),
                             FSDP_DTYPE_F32, x->chunk);
            for (uint32_t i = 0; i < expect_walk_states(e); i++) {
                expect_walk_grow(&w,
                                 expect_walk_at(x->step_on_host, FSDP_OPTIM),
                                 FSDP_DTYPE_F32, x->state);
            }
        }
        for (uint32_t b = 0; b < e->model->n_buffers; b++) {
            expect_walk_grow(&w, FSDP_BUFFER, expect_buffer_dtype(e, b),
                             e->model->buffer_numel[b]);
        }
        for (uint32_t k = 0; k < RECORD_N_KINDS; k++) {
            e->rest.live[k] = w.live[k];
        }
        status = !case_trains(e->c)     ? FSDP_OK
                 : case_is_script(e->c) ? walk_script(&w, e)
                                        : walk_run(&w, e);
        store(e, &w);
    }
    free(w.unit);
    free(w.accumulated);
    return status;
}

/* The bytes of a unit that may count more than once if an engine runs ahead. */
enum ahead {
    AHEAD_WIRE,     /* its parameters on the wire */
    AHEAD_GRADIENT, /* its unsharded gradient */
    AHEAD_SENT,     /* the gradient while it is reduced, wherever it lies */
    AHEAD_BROUGHT,  /* its shard from the host, which is to be cast */
    AHEAD_LANDED,   /* on the host, the result that is to be added or widened
                       there */
};

static uint64_t size_of(const struct expect_unit *x, enum ahead what)
{
    const struct expect_dtypes *d = &x->dtype;
    const uint64_t sent = expect_walk_bytes(d->reduce, x->grad_padded);
    const uint64_t summed = expect_walk_bytes(d->accumulate, x->grad_padded);

    switch (what) {
    case AHEAD_WIRE:
        return expect_walk_bytes(d->param, x->padded);
    case AHEAD_GRADIENT:
        return expect_walk_bytes(d->accumulate, x->grad_whole);
    case AHEAD_BROUGHT:
        return x->shard_on_host && d->param != FSDP_DTYPE_F32
                   ? expect_walk_bytes(FSDP_DTYPE_F32, x->chunk)
                   : 0;
    case AHEAD_LANDED:
        return x->step_on_host ? expect_walk_bytes(d->reduce, x->grad_chunk)
                               : 0;
    default:
        return sent > summed ? sent : summed;
    }
}

/* Bytes of the `n` largest units. */
static uint64_t largest_units(const struct expect *e, uint32_t n,
                              enum ahead what)
{
    uint64_t sum = 0;
    uint64_t below = UINT64_MAX;

    while (n > 0) {
        uint64_t best = 0;
        uint32_t times = 0;

        for (uint32_t u = 0; u < e->units->n_units; u++) {
            uint64_t size = size_of(&e->unit[u], what);

            if (size < below && size > best) {
                best = size;
                times = 0;
            }
            times += size == best ? 1 : 0;
        }
        if (best == 0) {
            break;
        }
        times = times < n ? times : n;
        sum += times * best;
        n -= times;
        below = best;
    }
    return sum;
}

static uint64_t at_most(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* What running ahead may add: the unsharded parameters of units that are
 * gathered early, as the walk has counted them; unsharded gradients, never
 * more than those of all units; and the results of the reductions in flight.
 * If an engine packs, parameters and gradients may lie on the wire instead.
 * Copies from the host are staged as much earlier, copies to the host as much
 * later. */
void expect_walk_allow_ahead(const struct expect *e, struct walk *w)
{
    const struct fsdp_options *o = &e->options;
    const uint32_t depth =
        (uint32_t)larger(o->prefetch_forward, o->prefetch_backward);
    const uint32_t ahead = e->shards > 1 ? depth : 0;
    const uint32_t flying = o->reduces_in_flight;
    const uint64_t all_grads =
        largest_units(e, e->units->n_units, AHEAD_GRADIENT);
    const uint64_t grads = largest_units(e, flying, AHEAD_GRADIENT);
    const uint64_t gathered = largest_units(e, ahead, AHEAD_WIRE);
    const uint64_t sent = largest_units(e, flying, AHEAD_SENT);
    const uint64_t brought = largest_units(e, ahead, AHEAD_BROUGHT);
    bool casts = false; /* what is sent is staged, as if it were packed */

    for (uint32_t u = 0; u < e->units->n_units; u++) {
        casts = casts || e->unit[u].dtype.accumulate != e->unit[u].dtype.reduce;
    }

    w->peak[FSDP_PARAM_FULL] = larger(w->peak[FSDP_PARAM_FULL], w->early_full);
    w->peak_parameters = larger(w->peak_parameters, w->early_parameters);
    w->peak[FSDP_GRAD_FULL] +=
        at_most(grads, all_grads - w->peak[FSDP_GRAD_FULL]);
    w->peak[FSDP_STAGING] += sent / e->shards + brought;
    w->peak[RECORD_HOST + FSDP_STAGING] +=
        largest_units(e, flying, AHEAD_LANDED);
    w->peak[FSDP_STAGING] += e->packs ? gathered : 0;
    w->peak[FSDP_STAGING] += e->packs || casts ? sent : 0;
    w->peak_engine = e->packs ? w->peak_engine + gathered
                              : larger(w->peak_engine, w->early_engine);
    w->peak_engine += sent + sent / e->shards + brought;
}
