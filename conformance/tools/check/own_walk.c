/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_walk.c - which collectives must happen, from the order in which units are
 * used. That order is the unsharded run's: units, forwards and backwards as
 * hooks saw them there, where nothing is gathered. A walk over it says when a
 * unit's weights have to come; the rank's own collectives are counted against
 * it, and their sizes are computed from the parameters' shapes.
 */
#include "tools/check/own_walk.h"
#include "tools/check/own_requirement.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum state {
    SHARDED = 0,
    WHOLE = 1, /* gathered, its backward still to come */
    USED = 2,  /* its backward has begun */
    DONE = 3,  /* and has ended */
};

static bool is_of(const struct own_event *e, const struct own_event *pass)
{
    return e->step == pass->step && e->microbatch == pass->microbatch &&
           e->rank == pass->rank;
}

/* Takes one event; returns whether the unit's weights must be gathered for
 * it. */
static bool take(const struct own_event *e, bool reshard, uint8_t *state)
{
    const uint8_t before = *state;
    const bool is_there = before == WHOLE || before == USED;

    switch (e->kind) {
    case OWN_FORWARD: /* also the one of a recomputation */
        *state = is_there ? before : WHOLE;
        return !is_there;
    case OWN_FORWARD_END:
        if (!e->backward && reshard) {
            *state = SHARDED;
        }
        return false;
    case OWN_BACKWARD: /* a second one is that of an earlier use */
        *state = USED;
        return !is_there;
    case OWN_BACKWARD_END:
        *state = DONE;
        return false;
    default:
        return false;
    }
}

bool own_is_evaluation(const struct own_record *r, const struct own_event *e)
{
    return e->microbatch == r->microbatches;
}

/* The events of a pass, or of an optimizer's step, of the unsharded run; to: a
 * unit's counts, or NULL. An evaluation may leave whole what is not resharded
 * after a forward, or not. */
static void walk(const struct own_set *s, const struct own_event *pass,
                 bool keeps, uint8_t *state, struct own_counts *to)
{
    const struct own_record *alone = &s->unsharded;
    const bool lets_go = own_is_evaluation(alone, pass) && !keeps;

    for (uint32_t i = 0; i < alone->n_events; i++) {
        const struct own_event *e = &alone->event[i];
        bool gathers;

        if (!is_of(e, pass) || e->unit < 0 ||
            (uint32_t)e->unit >= s->rank[0].n_units) {
            continue;
        }
        gathers = take(e, s->rank[0].unit[e->unit].reshard || lets_go,
                       &state[e->unit]);
        if (to && keeps) {
            to[e->unit].least[e->backward] += gathers;
        } else if (to) {
            to[e->unit].gathers[e->backward] += gathers;
            to[e->unit].backwards += e->kind == OWN_BACKWARD;
        }
    }
}

static bool computes_gradients(const struct own_record *r,
                               const struct own_event *pass)
{
    for (uint32_t i = 0; i < r->n_events; i++) {
        if (is_of(&r->event[i], pass) && r->event[i].kind == OWN_BACKWARD) {
            return true;
        }
    }
    return false;
}

bool own_walk_pass(const struct own_set *s, const struct own_event *pass,
                   struct own_counts *out)
{
    const struct own_record *alone = &s->unsharded;
    const struct own_event before = {.step = pass->step - 1,
                                     .microbatch = alone->microbatches};
    const uint32_t n = s->rank[0].n_units;
    uint8_t *state = calloc(n + 1, sizeof(*state));
    struct own_event of = *pass;

    if (!state) {
        return false;
    }
    if (own_is_evaluation(alone, pass)) {
        of.rank = 0; /* all ranks do the same there */
    }
    walk(s, &of, false, state, out);
    memset(state, SHARDED, n);
    if (pass->step > 0 && pass->microbatch == 0 &&
        !computes_gradients(alone, &before)) {
        walk(s, &before, true, state, NULL);
    }
    walk(s, &of, true, state, out);
    free(state);
    return true;
}

void own_count_pass(const struct own_set *s, const struct own_event *pass,
                    struct own_counts *out)
{
    const struct own_record *rank = &s->rank[pass->rank];

    for (uint32_t i = 0; i < rank->n_events; i++) {
        const struct own_event *e = &rank->event[i];

        if (is_of(e, pass) && e->unit >= 0 &&
            (uint32_t)e->unit < rank->n_units) {
            out[e->unit].gathers[e->backward] += e->kind == OWN_ALL_GATHER;
            out[e->unit].reductions += e->kind == OWN_REDUCE_SCATTER;
        }
    }
}

/* Whether a rank's passes up to this one in the step gave it a gradient, of
 * which `in` tells. */
static bool has_gradient(const struct own_set *s, const struct own_record *in,
                         const struct own_event *pass, uint32_t parameter)
{
    struct own_tensor like = {.stage = "local-gradient",
                              .step = pass->step,
                              .rank = pass->rank,
                              .parameter = parameter};

    like.n = s->unsharded.parameter[parameter].n;
    for (like.microbatch = 0; like.microbatch <= pass->microbatch;
         like.microbatch++) {
        if (own_find(in, &like)) {
            return true;
        }
    }
    return false;
}

/* Whether the unit reduces the parameter in this pass: what has no gradient on
 * this rank may have one elsewhere. */
static bool is_reduced(const struct own_set *s, const struct own_unit *u,
                       const struct own_event *pass, uint32_t parameter)
{
    return (u->fills && s->unsharded.parameter[parameter].trainable) ||
           has_gradient(s, &s->unsharded, pass, parameter);
}

/* By rows: each parameter is filled up by itself to a multiple of the ranks. */
static uint64_t elements_by_rows(const struct own_set *s,
                                 const struct own_unit *u,
                                 const struct own_event *pass, bool gradients)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < u->n_parameters; i++) {
        const struct own_parameter *p =
            &s->unsharded.parameter[u->parameter[i]];
        const uint64_t rows = (p->rows + s->world - 1) / s->world;

        if (p->rows > 0 &&
            (!gradients || is_reduced(s, u, pass, u->parameter[i]))) {
            n += rows * (p->n / p->rows);
        }
    }
    return n;
}

/* A flat parameter is there as a whole, or not at all. Where a rank keeps
 * parameters as tensors of their own (use_orig_params), each begins at a
 * multiple of ALIGNMENT bytes of the gathered tensor. */
static uint64_t elements_flat(const struct own_set *s, const struct own_unit *u,
                              const struct own_event *pass, bool gradients)
{
    enum {
        ALIGNMENT = 16
    };
    const uint32_t bytes = own_dtype_bytes(s->unsharded.compute);
    const bool aligned = strcmp(s->rank[0].wrapper, "fsdp1") == 0 && bytes > 0;
    const uint64_t step = aligned ? ALIGNMENT / bytes : 1;
    uint64_t n = 0;
    bool any = !gradients;

    for (uint32_t i = 0; i < u->n_parameters; i++) {
        n = (n + step - 1) / step * step +
            s->unsharded.parameter[u->parameter[i]].n;
        any = any || has_gradient(s, &s->unsharded, pass, u->parameter[i]);
    }
    return any ? (n + s->world - 1) / s->world : 0;
}

uint64_t own_unit_elements(const struct own_set *s,
                           const struct own_event *pass, uint32_t unit,
                           bool gradients)
{
    const struct own_unit *u = &s->rank[0].unit[unit];

    return own_is_flat(s) ? elements_flat(s, u, pass, gradients)
                          : elements_by_rows(s, u, pass, gradients);
}

/* ---- Requirements ---- */

/* In the backward, fully_shard gathers ahead the unit that came before in the
 * forward, even if its weights are then not needed: one gather more, which
 * costs only time. */
static bool is_ahead_in_vain(const struct own_counts *want,
                             const struct own_counts *got)
{
    return want->backwards == 0 && want->gathers[1] == 0 &&
           got->gathers[1] == 1 && want->gathers[0] == got->gathers[0];
}

static bool gathers_hold(const struct own_set *s, const struct own_event *pass,
                         const struct own_counts *want,
                         const struct own_counts *got, struct own_finding *f)
{
    for (uint32_t u = 0; u < s->rank[0].n_units; u++) {
        for (int way = 0; way < 2; way++) {
            f->unit = u;
            if ((got[u].gathers[way] > want[u].gathers[way] ||
                 got[u].gathers[way] < want[u].least[way]) &&
                !is_ahead_in_vain(&want[u], &got[u])) {
                return own_fail(f, "gathered %u times in the %s, %u expected",
                                got[u].gathers[way],
                                own_is_evaluation(&s->unsharded, pass)
                                    ? "evaluations of the optimizer's step"
                                : way == 0 ? "forward"
                                           : "backward",
                                want[u].gathers[way]);
            }
        }
    }
    return true;
}

/* Whether the rank has a gradient that the unit was to reduce. */
static bool has_any_gradient(const struct own_set *s,
                             const struct own_event *pass, uint32_t u)
{
    const struct own_unit *unit = &s->rank[0].unit[u];

    for (uint32_t i = 0; i < unit->n_parameters; i++) {
        if (has_gradient(s, &s->rank[pass->rank], pass, unit->parameter[i])) {
            return true;
        }
    }
    return false;
}

static bool reductions_hold(const struct own_set *s,
                            const struct own_event *pass,
                            const struct own_counts *want,
                            const struct own_counts *got, struct own_finding *f)
{
    const bool last = pass->microbatch == s->unsharded.microbatches - 1;

    (void)want;
    if (own_is_evaluation(&s->unsharded, pass)) {
        return true; /* the record does not say whether it reduces */
    }
    for (uint32_t u = 0; u < s->rank[0].n_units; u++) {
        const uint32_t due =
            last && own_unit_elements(s, pass, u, true) > 0 ? 1 : 0;

        f->unit = u;
        f->unsynced = got[u].reductions < due && has_any_gradient(s, pass, u);
        if (f->unsynced) {
            return own_fail(f,
                            "reduced %u times, %u expected, and it has "
                            "gradients: " OWN_UNSYNCED,
                            got[u].reductions, due);
        }
        if (got[u].reductions != due) {
            return own_fail(f, "reduced %u times, %u expected",
                            got[u].reductions, due);
        }
    }
    return true;
}

/* And all steps of the optimizer: nothing is asked of those that compute a
 * gradient by themselves. */
static bool
all_passes(const struct own_set *s, struct own_finding *f,
           bool (*hold)(const struct own_set *, const struct own_event *,
                        const struct own_counts *, const struct own_counts *,
                        struct own_finding *))
{
    const uint32_t n = s->rank[0].n_units;
    const uint32_t windows = s->unsharded.microbatches + 1;
    const uint32_t passes = s->unsharded.steps * windows;
    struct own_counts *want = calloc(n + 1, sizeof(*want));
    struct own_counts *got = calloc(n + 1, sizeof(*got));
    bool holds = want && got;

    *f = own_nowhere();
    if (!holds) {
        (void)own_fail(f, "out of memory");
    }
    for (uint32_t i = 0; i < passes * s->world && holds; i++) {
        const struct own_event pass = {.step = i / s->world / windows,
                                       .microbatch = i / s->world % windows,
                                       .rank = i % s->world};
        struct own_event first = pass;

        memset(want, 0, n * sizeof(*want));
        first.rank = 0;
        memset(got, 0, n * sizeof(*got));
        *f = own_nowhere();
        f->step = pass.step;
        f->microbatch = own_is_evaluation(&s->unsharded, &pass)
                            ? -1
                            : (int64_t)pass.microbatch;
        f->rank = pass.rank;
        holds = own_walk_pass(s, &pass, want);
        own_count_pass(s, &pass, got);
        if (holds && (!own_is_evaluation(&s->unsharded, &pass) ||
                      !computes_gradients(&s->unsharded, &first))) {
            holds = hold(s, &pass, want, got, f);
        }
    }
    free(want);
    free(got);
    return holds;
}

bool own_gathers_holds(const struct own_requirement *q, const struct own_set *s,
                       struct own_finding *f)
{
    (void)q;
    return all_passes(s, f, gathers_hold);
}

bool own_reductions_holds(const struct own_requirement *q,
                          const struct own_set *s, struct own_finding *f)
{
    (void)q;
    return all_passes(s, f, reductions_hold);
}

/* Moves the last event of the last rank to another unit, or to none. */
static bool spoil_event(const struct own_requirement *q, struct own_set *s,
                        struct own_spoil *undo)
{
    struct own_record *rank = &s->rank[s->world - 1];

    for (uint32_t i = rank->n_events; i-- > 0;) {
        struct own_event *e = &rank->event[i];

        if (e->kind == q->kind && !own_is_evaluation(&s->unsharded, e)) {
            own_damage(undo, &e->unit, sizeof(e->unit));
            e->unit = -1;
            return true;
        }
    }
    return false;
}

bool own_gathers_spoil(const struct own_requirement *q, struct own_set *s,
                       struct own_spoil *undo)
{
    return spoil_event(q, s, undo);
}

bool own_reductions_spoil(const struct own_requirement *q, struct own_set *s,
                          struct own_spoil *undo)
{
    return spoil_event(q, s, undo);
}
