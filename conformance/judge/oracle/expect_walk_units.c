/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect_walk_units.c - what a call does to a unit: what the call communicates,
 * which ranges become live, and which end. Peaks are the maximum over all
 * moments.
 */
#include "judge/oracle/expect_walk_units.h"
#include "judge/oracle/expect_walk.h"

#include <assert.h>
#include <stdlib.h>

enum {
    LINE = 64 /* bytes: storage is aligned to it */
};

static void tell_live(const struct walk *w, uint32_t kind, uint64_t bytes,
                      bool lives)
{
    if (w->watch && w->watch->live && bytes > 0) {
        w->watch->live(w->watch->context, kind, bytes, lives);
    }
}

uint64_t expect_walk_in_lines(uint64_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

uint32_t expect_walk_states(const struct expect *e)
{
    static const uint32_t states[] = {
        [FSDP_OPTIMIZER_SGD] = 0,
        [FSDP_OPTIMIZER_MOMENTUM] = 1,
        [FSDP_OPTIMIZER_ADAMW] = 2,
    };

    return states[e->c->optimizer];
}

uint32_t expect_walk_at(bool host, uint32_t kind)
{
    return host ? RECORD_HOST + kind : kind;
}

uint64_t expect_walk_bytes(uint32_t dtype, uint64_t elements)
{
    return elements * fsdp_dtype_bytes(dtype);
}

/* Whether no window of the same unit opens between the stop that is being
 * passed and stop i. */
static bool is_next_of_unit(const struct walk *w, uint32_t i)
{
    const struct expect_stop *const stop = w->pass.stop;

    for (uint32_t j = w->pass.at + 1; j < i; j++) {
        if ((stop[j].flags & EXPECT_OPENS) != 0 &&
            stop[j].unit == stop[i].unit) {
            return false;
        }
    }
    return true;
}

/* Bytes that may be gathered early at this moment: of the units whose windows
 * come next in this phase and that are not unsharded, as many as the options
 * allow. */
static uint64_t early(const struct walk *w)
{
    const struct fsdp_options *const o = &w->e->options;
    const struct expect_stop *const stop = w->pass.stop;
    uint32_t depth;
    uint64_t bytes = 0;
    uint8_t phase;

    if (!stop || w->e->shards < 2) {
        return 0;
    }
    phase = stop[w->pass.at].flags & EXPECT_BACKWARD;
    depth = phase != 0 ? o->prefetch_backward : o->prefetch_forward;
    for (uint32_t i = w->pass.at + 1; depth > 0 && i < w->pass.n; i++) {
        const uint32_t u = stop[i].unit;

        if ((stop[i].flags & EXPECT_BACKWARD) != phase) {
            break;
        }
        if ((stop[i].flags & EXPECT_OPENS) != 0 && !w->unit[u].unsharded &&
            is_next_of_unit(w, i)) {
            bytes += expect_walk_bytes(w->e->unit[u].dtype.param,
                                       w->e->unit[u].whole);
            depth--;
        }
    }
    return bytes;
}

static void raise_to(uint64_t *peak, uint64_t bytes)
{
    *peak = *peak > bytes ? *peak : bytes;
}

/* By one range. */
void expect_walk_grow(struct walk *w, uint32_t kind, uint32_t dtype,
                      uint64_t elements)
{
    const uint64_t bytes = expect_walk_bytes(dtype, elements);
    const uint64_t more = early(w);
    uint64_t parameters;
    uint64_t engine = 0;
    uint64_t storage = 0;

    tell_live(w, kind, bytes, true);
    w->live[kind] += bytes;
    w->stored[kind] += expect_walk_in_lines(bytes);
    for (uint32_t k = 0; k < FSDP_N_KINDS; k++) {
        engine += w->live[k];
        storage += w->stored[k];
    }
    parameters = w->live[FSDP_PARAM_SHARD] + w->live[FSDP_PARAM_FULL];
    assert(storage >= engine); /* whole lines are never fewer bytes */
    raise_to(&w->peak[kind], w->live[kind]);
    raise_to(&w->peak_parameters, parameters);
    raise_to(&w->peak_engine, engine);
    raise_to(&w->peak_storage, storage);
    raise_to(&w->early_full, w->live[FSDP_PARAM_FULL] + more);
    raise_to(&w->early_parameters, parameters + more);
    raise_to(&w->early_engine, engine + more);
}

void expect_walk_shrink(struct walk *w, uint32_t kind, uint32_t dtype,
                        uint64_t elements)
{
    const uint64_t bytes = expect_walk_bytes(dtype, elements);

    assert(w->live[kind] >= bytes &&
           w->stored[kind] >= expect_walk_in_lines(bytes));
    tell_live(w, kind, bytes, false);
    w->live[kind] -= bytes;
    w->stored[kind] -= expect_walk_in_lines(bytes);
}

/* All ranges of this kind end. */
static void clear(struct walk *w, uint32_t kind)
{
    tell_live(w, kind, w->live[kind], false);
    w->live[kind] = 0;
    w->stored[kind] = 0;
}

/* Appends a collective; room is doubled whenever n is a power of two. */
int expect_walk_communicate(struct walk *w, uint32_t kind, uint32_t dim,
                            uint32_t u, uint32_t dtype)
{
    struct record_sequence *s = w->out;
    struct record_collective *c = s->c;

    if ((s->n & (s->n - 1)) == 0) {
        c = realloc(s->c, (s->n == 0 ? 1 : 2 * (size_t)s->n) * sizeof(*c));
        if (!c) {
            return FSDP_ERR_NOMEM;
        }
        s->c = c;
    }
    c[s->n] = (struct record_collective){.kind = kind,
                                         .dim = dim,
                                         .dtype = dtype,
                                         .fold = w->e->c->fold,
                                         .unit = u,
                                         .n = kind == FSDP_ALL_GATHER
                                                  ? w->e->unit[u].chunk
                                                  : w->e->unit[u].grad_chunk};
    if (w->watch && w->watch->collective) {
        w->watch->collective(w->watch->context, &c[s->n]);
    }
    s->n++;
    return FSDP_OK;
}

/* Copies of no bytes are not counted. */
void expect_walk_bring(struct walk *w, uint64_t bytes)
{
    w->hosted->to_device += bytes > 0;
    w->hosted->to_device_bytes += bytes;
}

void expect_walk_take(struct walk *w, uint64_t bytes)
{
    w->hosted->to_host += bytes > 0;
    w->hosted->to_host_bytes += bytes;
}

/* Copies a shard that rests on the host to its place; if it is cast, into
 * staging. */
static void land_shard(struct walk *w, uint32_t u, uint32_t dtype)
{
    const struct expect_unit *x = &w->e->unit[u];

    if (!x->shard_on_host) {
        return;
    }
    expect_walk_bring(w, expect_walk_bytes(FSDP_DTYPE_F32, x->chunk));
    if (dtype != FSDP_DTYPE_F32) {
        expect_walk_grow(w, FSDP_STAGING, FSDP_DTYPE_F32, x->chunk);
        expect_walk_shrink(w, FSDP_STAGING, FSDP_DTYPE_F32, x->chunk);
    }
}

/* With one shard it is all of the unit, and is copied only into another dtype,
 * or from the host. */
int expect_walk_unshard(struct walk *w, uint32_t u, uint32_t dtype)
{
    const struct expect_unit *x = &w->e->unit[u];

    if ((w->e->shards == 1 && dtype == FSDP_DTYPE_F32 && !x->shard_on_host) ||
        w->unit[u].unsharded) {
        return FSDP_OK;
    }
    if (w->e->shards > 1) {
        FSDP_TRY(expect_walk_communicate(w, FSDP_ALL_GATHER, FSDP_DIM_SHARD, u,
                                         dtype));
    }
    w->unit[u].unsharded = true;
    w->unit[u].dtype = dtype;
    if (w->e->packs) { /* packed shards are unpacked, and then not needed */
        expect_walk_grow(w, FSDP_STAGING, dtype, x->padded);
        land_shard(w, u, dtype);
    }
    expect_walk_grow(w, FSDP_PARAM_FULL, dtype, x->whole);
    if (!w->e->packs) {
        land_shard(w, u, dtype);
    }
    if (w->e->packs) {
        expect_walk_shrink(w, FSDP_STAGING, dtype, x->padded);
    }
    return FSDP_OK;
}

void expect_walk_reshard(struct walk *w, uint32_t u)
{
    if (w->unit[u].unsharded) {
        w->unit[u].unsharded = false;
        expect_walk_shrink(w, FSDP_PARAM_FULL, w->unit[u].dtype,
                           w->e->unit[u].whole);
    }
}

void expect_walk_reshard_each(struct walk *w)
{
    for (uint32_t u = 0; u < w->e->units->n_units; u++) {
        expect_walk_reshard(w, u);
    }
}

static void begin_gradient(struct walk *w, uint32_t u)
{
    if (w->unit[u].pending || !w->e->unit[u].trains) {
        return;
    }
    w->unit[u].pending = true;
    for (uint32_t p = 0; p < w->e->model->n_parameters; p++) {
        if (w->e->unit_of_parameter[p] == u) {
            w->accumulated[p] = false;
        }
    }
    expect_walk_grow(w, FSDP_GRAD_FULL, w->e->unit[u].dtype.accumulate,
                     w->e->unit[u].grad_whole);
}

/* A gradient is fresh storage of its own until the module's backward ends if it
 * is added to an earlier one, has another dtype than the sums, or belongs to a
 * parameter with several names. */
static void module_backward(struct walk *w, uint32_t module, uint32_t b,
                            bool ends)
{
    const struct fsdp_model *model = w->e->model;

    for (uint32_t p = 0; p < model->n_parameters; p++) {
        const struct expect_dtypes *d;
        bool apart;

        if (model->parameter_module[p] != module ||
            (w->e->has_gradient[p] >> b & 1) == 0) {
            continue;
        }
        d = &w->e->unit[w->e->unit_of_parameter[p]].dtype;
        apart =
            w->accumulated[p] || w->e->shared[p] || d->grad != d->accumulate;
        if (apart && ends) {
            expect_walk_shrink(w, FSDP_STAGING, d->grad, fsdp_numel(model, p));
        } else if (apart) {
            expect_walk_grow(w, FSDP_STAGING, d->grad, fsdp_numel(model, p));
        }
        w->accumulated[p] = w->accumulated[p] || ends;
    }
}

/* zero_grad, and what a cancel does beyond it. */
void expect_walk_drop_gradients(struct walk *w)
{
    clear(w, FSDP_GRAD_SHARD);
    clear(w, RECORD_HOST + FSDP_GRAD_SHARD);
    clear(w, FSDP_GRAD_FULL);
    for (uint32_t u = 0; u < w->e->units->n_units; u++) {
        w->unit[u].pending = false;
        w->unit[u].reduced = false;
        w->unit[u].partial = false;
    }
}

void expect_walk_cancel(struct walk *w)
{
    expect_walk_reshard_each(w);
    expect_walk_drop_gradients(w);
    clear(w, FSDP_STAGING);
}

/* A window of unit u opens or closes. */
static void tell_window(const struct walk *w, uint32_t u, uint32_t flags)
{
    if (w->watch && w->watch->window) {
        w->watch->window(w->watch->context, u, (flags & EXPECT_OPENS) != 0,
                         (flags & EXPECT_BACKWARD) != 0);
    }
}

static int open_window(struct walk *w, uint32_t u, uint32_t flags)
{
    tell_window(w, u, flags & ~(uint32_t)EXPECT_CLOSES);
    FSDP_TRY(expect_walk_unshard(w, u, w->e->unit[u].dtype.param));
    if ((flags & EXPECT_BACKWARD) != 0) {
        begin_gradient(w, u);
    }
    return FSDP_OK;
}

static int close_window(struct walk *w, uint32_t u, uint32_t flags)
{
    const bool backward = (flags & EXPECT_BACKWARD) != 0;

    tell_window(w, u, flags & ~(uint32_t)EXPECT_OPENS);
    if (!backward || w->unit[u].knob.reshard_backward ||
        expect_walk_steps(w, u)) {
        expect_walk_reshard(w, u);
    }
    return backward && w->unit[u].knob.sync ? expect_walk_reduce(w, u)
                                            : FSDP_OK;
}

static bool closes(const struct walk *w, const struct expect_stop *stop)
{
    return (stop->flags & EXPECT_CLOSES) != 0 &&
           ((stop->flags & EXPECT_HOLDS) == 0 ||
            w->unit[stop->unit].knob.reshard_forward);
}

/* Passes a point, whose stops are [first, end). */
static int walk_point(struct walk *w, uint32_t point, uint32_t module,
                      uint32_t first, uint32_t end, uint32_t b)
{
    const struct expect_stop *stop = w->pass.stop;

    for (uint32_t i = first; i < end; i++) {
        w->pass.at = i;
        if ((stop[i].flags & EXPECT_OPENS) != 0) {
            FSDP_TRY(open_window(w, stop[i].unit, stop[i].flags));
        }
    }
    if (w->watch && w->watch->point) {
        w->watch->point(w->watch->context, point, module);
    }
    if (point == FSDP_PRE_BACKWARD || point == FSDP_POST_BACKWARD) {
        module_backward(w, module, b, point == FSDP_POST_BACKWARD);
    }
    for (uint32_t i = first; i < end; i++) {
        w->pass.at = i;
        if (closes(w, &stop[i])) {
            FSDP_TRY(close_window(w, stop[i].unit, stop[i].flags));
        }
    }
    return FSDP_OK;
}

void expect_walk_begin(struct walk *w)
{
    w->steps = w->step_set;
    w->step_set = false;
    for (uint32_t u = 0; u < w->e->units->n_units; u++) {
        w->unit[u].knob = w->unit[u].next_knob;
        w->unit[u].stepped = false;
    }
}

int expect_walk_points(struct walk *w, uint32_t index, uint32_t from,
                       uint32_t to, uint32_t b)
{
    const struct fsdp_sequence *s;
    struct expect_stop *stop;
    uint32_t end = 0;
    int status;

    if (index >= w->e->model->n_sequences) {
        return FSDP_ERR_INVALID;
    }
    s = w->e->model->sequence[index];
    status = expect_windows(w->e, s, &stop, &w->pass.n);
    w->pass.stop = stop;
    for (uint32_t i = 0; i < to && i < s->n && status == FSDP_OK; i++) {
        const uint32_t first = end;

        while (end < w->pass.n && stop[end].point == i) {
            end++;
        }
        if (i >= from) {
            status = walk_point(w, s->point[i], s->module[i], first, end, b);
        }
    }
    w->pass.stop = NULL;
    free(stop);
    return status;
}

/* How many points the first `part` eighths of a sequence have. */
uint32_t expect_walk_part(const struct walk *w, uint32_t index, uint32_t part)
{
    return index < w->e->model->n_sequences
               ? (uint32_t)((uint64_t)part * w->e->model->sequence[index]->n /
                            8)
               : 0;
}

int expect_walk_sequence(struct walk *w, uint32_t index, uint32_t part,
                         uint32_t b)
{
    expect_walk_begin(w);
    return expect_walk_points(w, index, 0, expect_walk_part(w, index, part), b);
}

/* Behind the first `at` points: finds the units that may have been gathered for
 * the windows that come next in the same phase, but for those that are
 * unsharded there anyway. */
int expect_walk_ahead(struct walk *w, uint32_t index, uint32_t at)
{
    const struct fsdp_options *o = &w->e->options;
    const struct fsdp_sequence *s;
    struct expect_stop *stop;
    uint32_t n;
    uint32_t depth = 0;
    uint32_t first = 0;
    uint8_t phase = 0;
    int status;

    if (index >= w->e->model->n_sequences ||
        at > w->e->model->sequence[index]->n) {
        return FSDP_ERR_INVALID;
    }
    s = w->e->model->sequence[index];
    status = expect_windows(w->e, s, &stop, &n);
    while (status == FSDP_OK && first < n && stop[first].point < at) {
        first++;
    }
    if (status == FSDP_OK && first > 0 && w->e->shards > 1) {
        phase = stop[first - 1].flags & EXPECT_BACKWARD;
        depth = phase != 0 ? o->prefetch_backward : o->prefetch_forward;
    }
    for (uint32_t i = first; status == FSDP_OK && depth > 0 && i < n; i++) {
        const uint32_t u = stop[i].unit;

        if ((stop[i].flags & EXPECT_BACKWARD) != phase) {
            break;
        }
        if ((stop[i].flags & EXPECT_OPENS) != 0 && !w->unit[u].unsharded) {
            status = expect_walk_communicate(w, FSDP_ALL_GATHER, FSDP_DIM_SHARD,
                                             u, w->e->unit[u].dtype.param);
            depth--;
        }
    }
    free(stop);
    return status;
}
