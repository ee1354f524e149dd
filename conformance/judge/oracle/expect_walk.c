/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect_walk.c - walks the call sequences of one step as an engine of the
 * strict profile must, and writes down what it communicates and how much is
 * live. Peaks are the maximum over all moments of that walk, not a formula:
 * windows may nest (the root's is open around every block), and then no
 * formula of the largest unit holds.
 */
#include "judge/oracle/expect_walk.h"

#include <stdlib.h>

enum {
    LINE = 64 /* bytes: storage is aligned to it */
};

struct walk_unit {
    bool unsharded;
    uint32_t dtype; /* of what is unsharded */
    bool pending;   /* has an unsharded gradient that is live */
    bool reduced;   /* has a gradient shard that is live */
};

struct walk {
    struct expect *e;
    struct walk_unit *unit;        /* [n_units] */
    bool *accumulated;             /* [n_parameters]: in the pending gradient */
    uint64_t live[FSDP_N_KINDS];   /* bytes, as all that follows */
    uint64_t stored[FSDP_N_KINDS]; /* the same, each range in whole lines */
    uint64_t peak[FSDP_N_KINDS], peak_parameters, peak_engine, peak_storage;
    struct record_sequence *out;
    const struct expect_watch *watch; /* NULL: nobody looks on */
};

static void tell(const struct walk *w, uint32_t kind, uint64_t bytes,
                 bool lives)
{
    if (w->watch != NULL && w->watch->live != NULL && bytes > 0) {
        w->watch->live(w->watch->context, kind, bytes / sizeof(float), lives);
    }
}

static uint64_t in_lines(uint64_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

static uint64_t bytes_of(uint32_t dtype, uint64_t elements)
{
    return elements * fsdp_dtype_bytes(dtype);
}

/* By one range. */
static void grow(struct walk *w, uint32_t kind, uint32_t dtype,
                 uint64_t elements)
{
    const uint64_t bytes = bytes_of(dtype, elements);
    uint64_t parameters;
    uint64_t engine = 0;
    uint64_t storage = 0;

    tell(w, kind, bytes, true);
    w->live[kind] += bytes;
    w->stored[kind] += in_lines(bytes);
    for (uint32_t k = 0; k < FSDP_N_KINDS; k++) {
        engine += w->live[k];
        storage += w->stored[k];
    }
    parameters = w->live[FSDP_PARAM_SHARD] + w->live[FSDP_PARAM_FULL];
    if (w->live[kind] > w->peak[kind]) {
        w->peak[kind] = w->live[kind];
    }
    if (parameters > w->peak_parameters) {
        w->peak_parameters = parameters;
    }
    if (engine > w->peak_engine) {
        w->peak_engine = engine;
    }
    if (storage > w->peak_storage) {
        w->peak_storage = storage;
    }
}

static void shrink(struct walk *w, uint32_t kind, uint32_t dtype,
                   uint64_t elements)
{
    const uint64_t bytes = bytes_of(dtype, elements);

    tell(w, kind, bytes, false);
    w->live[kind] -= bytes;
    w->stored[kind] -= in_lines(bytes);
}

/* Everything of this kind is dead. */
static void clear(struct walk *w, uint32_t kind)
{
    tell(w, kind, w->live[kind], false);
    w->live[kind] = 0;
    w->stored[kind] = 0;
}

/* Appends a collective; room is doubled whenever n is a power of two. */
static int communicate(struct walk *w, uint32_t kind, uint32_t dim, uint32_t u,
                       uint32_t dtype)
{
    struct record_sequence *s = w->out;
    struct record_collective *c = s->c;

    if ((s->n & (s->n - 1)) == 0) {
        c = realloc(s->c, (s->n == 0 ? 1 : 2 * (size_t)s->n) * sizeof(*c));
        if (c == NULL) {
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
    if (w->watch != NULL && w->watch->collective != NULL) {
        w->watch->collective(w->watch->context, &c[s->n]);
    }
    s->n++;
    return FSDP_OK;
}

/* One shard is all of it, and copied only into another dtype. */
static int unshard(struct walk *w, uint32_t u, uint32_t dtype)
{
    const struct expect_unit *x = &w->e->unit[u];

    if ((w->e->shards == 1 && dtype == FSDP_DTYPE_F32) ||
        w->unit[u].unsharded) {
        return FSDP_OK;
    }
    if (w->e->shards > 1) {
        FSDP_TRY(communicate(w, FSDP_ALL_GATHER, FSDP_DIM_SHARD, u, dtype));
    }
    w->unit[u].unsharded = true;
    w->unit[u].dtype = dtype;
    if (w->e->packs) { /* what arrives is unpacked, and then not needed */
        grow(w, FSDP_STAGING, dtype, x->padded);
    }
    grow(w, FSDP_PARAM_FULL, dtype, x->whole);
    if (w->e->packs) {
        shrink(w, FSDP_STAGING, dtype, x->padded);
    }
    return FSDP_OK;
}

static void reshard(struct walk *w, uint32_t u)
{
    if (w->unit[u].unsharded) {
        w->unit[u].unsharded = false;
        shrink(w, FSDP_PARAM_FULL, w->unit[u].dtype, w->e->unit[u].whole);
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
    grow(w, FSDP_GRAD_FULL, w->e->unit[u].dtype.accumulate,
         w->e->unit[u].grad_whole);
}

/* A gradient that meets one already summed, or is of another dtype than the
 * sums, is fresh storage of its own until the module's backward ends. */
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
        apart = w->accumulated[p] || d->grad != d->accumulate;
        if (apart && ends) {
            shrink(w, FSDP_STAGING, d->grad, fsdp_numel(model, p));
        } else if (apart) {
            grow(w, FSDP_STAGING, d->grad, fsdp_numel(model, p));
        }
        w->accumulated[p] = w->accumulated[p] || ends;
    }
}

/* The unit's backward window closes under sync. The reduction needs a place
 * while what it reads still lives: the unsharded gradient, or that packed. */
static int reduce(struct walk *w, uint32_t u)
{
    const struct expect_unit *x = &w->e->unit[u];
    const struct expect_dtypes *d = &x->dtype;
    const bool first = !w->unit[u].reduced;
    const bool wide = d->reduce == FSDP_DTYPE_F32;
    const bool sent_apart = w->e->packs || d->accumulate != d->reduce;

    if (!x->trains) {
        return FSDP_OK;
    }
    if (sent_apart) {
        grow(w, FSDP_STAGING, d->reduce, x->grad_padded);
        shrink(w, FSDP_GRAD_FULL, d->accumulate, x->grad_whole);
    }
    grow(w, first && wide ? FSDP_GRAD_SHARD : FSDP_STAGING, d->reduce,
         x->grad_chunk);
    if (w->e->shards > 1) {
        FSDP_TRY(
            communicate(w, FSDP_REDUCE_SCATTER, FSDP_DIM_SHARD, u, d->reduce));
    }
    if (w->e->replicas > 1) {
        FSDP_TRY(
            communicate(w, FSDP_ALL_REDUCE, FSDP_DIM_REPLICATE, u, d->reduce));
    }
    if (first && !wide) {
        grow(w, FSDP_GRAD_SHARD, FSDP_DTYPE_F32, x->grad_chunk);
    }
    if (!first || !wide) {
        shrink(w, FSDP_STAGING, d->reduce, x->grad_chunk);
    }
    w->unit[u].reduced = true;
    w->unit[u].pending = false;
    if (sent_apart) {
        shrink(w, FSDP_STAGING, d->reduce, x->grad_padded);
    } else {
        shrink(w, FSDP_GRAD_FULL, d->accumulate, x->grad_whole);
    }
    return FSDP_OK;
}

/* zero_grad, and what a cancel does beyond it. */
static void drop_gradients(struct walk *w)
{
    clear(w, FSDP_GRAD_SHARD);
    clear(w, FSDP_GRAD_FULL);
    for (uint32_t u = 0; u < w->e->units->n_units; u++) {
        w->unit[u].pending = false;
        w->unit[u].reduced = false;
    }
}

static void cancel(struct walk *w)
{
    for (uint32_t u = 0; u < w->e->units->n_units; u++) {
        reshard(w, u);
    }
    drop_gradients(w);
    clear(w, FSDP_STAGING);
}

/* A window of unit u opens or closes. */
static void tell_window(const struct walk *w, uint32_t u, uint32_t flags)
{
    if (w->watch != NULL && w->watch->window != NULL) {
        w->watch->window(w->watch->context, u, (flags & EXPECT_OPENS) != 0,
                         (flags & EXPECT_BACKWARD) != 0);
    }
}

static int open_window(struct walk *w, uint32_t u, uint32_t flags)
{
    tell_window(w, u, flags & ~(uint32_t)EXPECT_CLOSES);
    FSDP_TRY(unshard(w, u, w->e->unit[u].dtype.param));
    if ((flags & EXPECT_BACKWARD) != 0) {
        begin_gradient(w, u);
    }
    return FSDP_OK;
}

static int close_window(struct walk *w, uint32_t u, uint32_t flags, bool sync)
{
    tell_window(w, u, flags & ~(uint32_t)EXPECT_OPENS);
    reshard(w, u);
    return (flags & EXPECT_BACKWARD) != 0 && sync ? reduce(w, u) : FSDP_OK;
}

static int walk_point(struct walk *w, uint32_t point, uint32_t module,
                      uint32_t flags, uint32_t b, bool sync)
{
    const uint32_t u = w->e->units->unit_of_module[module];
    const bool in_unit = u != FSDP_NO_UNIT;

    if (in_unit && (flags & EXPECT_OPENS) != 0) {
        FSDP_TRY(open_window(w, u, flags));
    }
    if (w->watch != NULL && w->watch->point != NULL) {
        w->watch->point(w->watch->context, point, module);
    }
    if (in_unit &&
        (point == FSDP_PRE_BACKWARD || point == FSDP_POST_BACKWARD)) {
        module_backward(w, module, b, point == FSDP_POST_BACKWARD);
    }
    if (in_unit && (flags & EXPECT_CLOSES) != 0 &&
        (flags & EXPECT_HOLDS) == 0) {
        return close_window(w, u, flags, sync);
    }
    return FSDP_OK;
}

/* The first `n` points of a sequence, on microbatch b. */
static int walk_points(struct walk *w, uint32_t index, uint32_t n, uint32_t b,
                       bool sync)
{
    const struct fsdp_sequence *s;
    uint8_t *flags = NULL;
    int status = FSDP_OK;

    if (index >= w->e->model->n_sequences) {
        return FSDP_ERR_INVALID;
    }
    s = w->e->model->sequence[index];
    flags = calloc((size_t)s->n + 1, sizeof(*flags));
    if (flags == NULL) {
        return FSDP_ERR_NOMEM;
    }
    status = expect_windows(w->e, s, flags);
    for (uint32_t i = 0; i < n && i < s->n; i++) {
        if (status == FSDP_OK) {
            status =
                walk_point(w, s->point[i], s->module[i], flags[i], b, sync);
        }
    }
    free(flags);
    return status;
}

/* The first `part` of 8 parts of a sequence. */
static uint32_t part_of(const struct walk *w, uint32_t index, uint32_t part)
{
    return index < w->e->model->n_sequences
               ? (uint32_t)((uint64_t)part * w->e->model->sequence[index]->n /
                            8)
               : 0;
}

static int walk_sequence(struct walk *w, uint32_t index, uint32_t part,
                         uint32_t b, bool sync)
{
    return walk_points(w, index, part_of(w, index, part), b, sync);
}

/* Behind the first `at` points of a sequence that were passed: the units of
 * the same phase that may have been gathered for the windows that come next.
 * Those that are unsharded then are not counted. */
static int walk_ahead(struct walk *w, uint32_t index, uint32_t at)
{
    const struct fsdp_options *o = &w->e->options;
    const struct fsdp_sequence *s;
    uint8_t *flags;
    uint32_t depth = 0;
    int status;

    if (index >= w->e->model->n_sequences ||
        at > w->e->model->sequence[index]->n) {
        return FSDP_ERR_INVALID;
    }
    s = w->e->model->sequence[index];
    flags = calloc((size_t)s->n + 1, sizeof(*flags));
    status = flags != NULL ? expect_windows(w->e, s, flags) : FSDP_ERR_NOMEM;
    if (status == FSDP_OK && at > 0 && w->e->shards > 1) {
        depth = (flags[at - 1] & EXPECT_BACKWARD) != 0 ? o->prefetch_backward
                                                       : o->prefetch_forward;
    }
    for (uint32_t i = at; status == FSDP_OK && depth > 0 && i < s->n; i++) {
        const uint32_t u = w->e->units->unit_of_module[s->module[i]];

        if ((flags[i] & EXPECT_BACKWARD) != (flags[at - 1] & EXPECT_BACKWARD)) {
            break;
        }
        if ((flags[i] & EXPECT_OPENS) != 0 && !w->unit[u].unsharded) {
            status = communicate(w, FSDP_ALL_GATHER, FSDP_DIM_SHARD, u,
                                 w->e->unit[u].dtype.param);
            depth--;
        }
    }
    free(flags);
    return status;
}

/* What of a unit counts where an engine runs ahead. */
enum ahead {
    AHEAD_GATHERED, /* its unsharded parameters */
    AHEAD_WIRE,     /* these on the wire */
    AHEAD_GRADIENT, /* its unsharded gradient */
    AHEAD_SENT,     /* that as it is reduced, whatever it lies in */
};

static uint64_t size_of(const struct expect_unit *x, enum ahead what)
{
    const struct expect_dtypes *d = &x->dtype;
    const uint64_t sent = bytes_of(d->reduce, x->grad_padded);
    const uint64_t summed = bytes_of(d->accumulate, x->grad_padded);

    switch (what) {
    case AHEAD_GATHERED:
        return bytes_of(d->param, x->whole);
    case AHEAD_WIRE:
        return bytes_of(d->param, x->padded);
    case AHEAD_GRADIENT:
        return bytes_of(d->accumulate, x->grad_whole);
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

/* What running ahead may add: the unsharded parameters of the units gathered
 * early, the unsharded gradients and results of the reduces in flight; never
 * more than all units have. Where an engine packs, each of the first two may
 * be on the wire instead. */
static void allow_for_running_ahead(const struct expect *e, struct walk *w)
{
    const struct fsdp_options *o = &e->options;
    const uint32_t depth = o->prefetch_forward > o->prefetch_backward
                               ? o->prefetch_forward
                               : o->prefetch_backward;
    const uint32_t ahead = e->shards > 1 ? depth : 0;
    const uint32_t flying = o->reduces_in_flight;
    const uint64_t all = largest_units(e, e->units->n_units, AHEAD_GATHERED);
    const uint64_t all_grads =
        largest_units(e, e->units->n_units, AHEAD_GRADIENT);
    const uint64_t parameters = at_most(largest_units(e, ahead, AHEAD_GATHERED),
                                        all - w->peak[FSDP_PARAM_FULL]);
    const uint64_t grads = largest_units(e, flying, AHEAD_GRADIENT);
    const uint64_t gathered = largest_units(e, ahead, AHEAD_WIRE);
    const uint64_t sent = largest_units(e, flying, AHEAD_SENT);
    bool casts = false; /* what is sent is staging, as it is where one packs */

    for (uint32_t u = 0; u < e->units->n_units; u++) {
        casts = casts || e->unit[u].dtype.accumulate != e->unit[u].dtype.reduce;
    }

    w->peak[FSDP_PARAM_FULL] += parameters;
    w->peak_parameters += parameters;
    w->peak[FSDP_GRAD_FULL] +=
        at_most(grads, all_grads - w->peak[FSDP_GRAD_FULL]);
    w->peak[FSDP_STAGING] += sent / e->shards;
    w->peak[FSDP_STAGING] += e->packs ? gathered : 0;
    w->peak[FSDP_STAGING] += e->packs || casts ? sent : 0;
    w->peak_engine += e->packs ? gathered : parameters;
    w->peak_engine += sent + sent / e->shards;
}

static int walk_summon(struct walk *w)
{
    for (uint32_t u = 0; u < w->e->units->n_units; u++) {
        FSDP_TRY(unshard(w, u, FSDP_DTYPE_F32));
    }
    return FSDP_OK;
}

/* The order in which the driver of a case calls an engine. */
static int walk_run(struct walk *w)
{
    const struct run_case *c = w->e->c;

    w->out = &w->e->step;
    if (c->scenario == CASE_CANCEL) {
        FSDP_TRY(walk_sequence(w, FSDP_SEQUENCE_TRAIN, 5, 0, true));
        w->out = &w->e->ahead;
        FSDP_TRY(walk_ahead(w, FSDP_SEQUENCE_TRAIN,
                            part_of(w, FSDP_SEQUENCE_TRAIN, 5)));
        w->out = &w->e->step;
        cancel(w);
    }
    for (uint32_t b = 0; b < c->microbatches; b++) {
        FSDP_TRY(walk_sequence(w, FSDP_SEQUENCE_TRAIN, 8, b, c->sync[b] != 0));
    }
    drop_gradients(w);
    if (c->scenario == CASE_EVAL) {
        FSDP_TRY(walk_sequence(w, FSDP_SEQUENCE_EVAL, 8, 0, false));
    }
    /* Before all units are unsharded at once, which no prefetch adds to. */
    allow_for_running_ahead(w->e, w);
    w->out = &w->e->end;
    return c->scenario == CASE_SUMMON ? walk_summon(w) : FSDP_OK;
}

/* ---- Scripts ------------------------------------------------------------ */

/* Whether the passes that follow are reduced. */
static bool next_sync(bool sync, uint32_t said)
{
    return said == SCRIPT_SYNC_UNSAID ? sync : said == SCRIPT_SYNC_ON;
}

static int walk_pass(struct walk *w, const struct script_action *a, bool *sync,
                     struct expect_event *v)
{
    const uint32_t index =
        a->verb == SCRIPT_EVAL ? FSDP_SEQUENCE_EVAL : FSDP_SEQUENCE_TRAIN;
    const uint32_t length = part_of(w, index, 8);
    const uint32_t n =
        a->ending == SCRIPT_WHOLE ? length : script_place_in(a->until, length);

    *sync = next_sync(*sync, a->sync);
    FSDP_TRY(walk_points(w, index, n, a->batch.microbatch, *sync));
    for (uint32_t i = 0; i < a->n_inside; i++) {
        *sync = next_sync(*sync, w->e->script.inside[a->first_inside + i].sync);
    }
    if (a->ending != SCRIPT_WHOLE) {
        w->out = &v->ahead;
        FSDP_TRY(walk_ahead(w, index, n));
    }
    if (a->ending == SCRIPT_CANCELLED) {
        cancel(w);
    }
    return FSDP_OK;
}

static void reshard_all(struct walk *w)
{
    for (uint32_t u = 0; u < w->e->units->n_units; u++) {
        reshard(w, u);
    }
}

static int walk_action(struct walk *w, const struct script_action *a,
                       bool *sync, struct expect_event *v)
{
    w->out = &v->seen;
    switch (a->verb) {
    case SCRIPT_PASS:
    case SCRIPT_EVAL:
        return walk_pass(w, a, sync, v);
    case SCRIPT_SYNC:
        *sync = next_sync(*sync, a->sync);
        return FSDP_OK;
    case SCRIPT_ZERO:
    case SCRIPT_LOAD:
        drop_gradients(w);
        return FSDP_OK;
    case SCRIPT_AGAIN:
        cancel(w); /* none of it outlives a life */
        *sync = true;
        return FSDP_OK;
    case SCRIPT_UNSHARD:
        return walk_summon(w);
    case SCRIPT_SUMMON:
        FSDP_TRY(walk_summon(w));
        reshard_all(w);
        return FSDP_OK;
    case SCRIPT_RESHARD:
        reshard_all(w);
        return FSDP_OK;
    default:
        return FSDP_OK;
    }
}

/* What is left behind an action: nothing before the first life. */
static int note_event(const struct walk *w, bool living, struct expect_event *v)
{
    const uint32_t n = w->e->units->n_units;

    for (uint32_t k = 0; living && k < FSDP_N_KINDS; k++) {
        v->rest[k] = w->live[k];
    }
    if (v->action->verb != SCRIPT_LOOK) {
        return FSDP_OK;
    }
    v->reduced = calloc((size_t)n + 1, sizeof(*v->reduced));
    for (uint32_t u = 0; v->reduced != NULL && u < n; u++) {
        v->reduced[u] = w->unit[u].reduced;
    }
    return v->reduced != NULL ? FSDP_OK : FSDP_ERR_NOMEM;
}

static int walk_script(struct walk *w)
{
    struct expect *e = w->e;
    struct script_walk at = script_begin(&e->script);
    const struct script_action *a;
    bool sync = true;
    bool living = false;

    e->event = calloc((size_t)e->c->steps + 1, sizeof(*e->event));
    if (e->event == NULL) {
        return FSDP_ERR_NOMEM;
    }
    while ((a = script_next(&at)) != NULL) {
        struct expect_event *v = &e->event[e->n_events];

        if (e->n_events == e->c->steps) {
            return FSDP_ERR_INVALID;
        }
        e->n_events++;
        v->action = a;
        FSDP_TRY(walk_action(w, a, &sync, v));
        living = living || !script_is_offer(a);
        FSDP_TRY(note_event(w, living, v));
    }
    allow_for_running_ahead(e, w);
    return e->n_events == e->c->steps ? FSDP_OK : FSDP_ERR_INVALID;
}

static void store(struct expect *e, const struct walk *w)
{
    for (uint32_t k = 0; k < FSDP_N_KINDS; k++) {
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
    static const uint32_t states[] = {
        [FSDP_OPTIMIZER_SGD] = 0,
        [FSDP_OPTIMIZER_MOMENTUM] = 1,
        [FSDP_OPTIMIZER_ADAMW] = 2,
    };
    struct walk w = {.e = e, .watch = watch};
    int status = FSDP_ERR_NOMEM;

    w.unit = calloc((size_t)e->units->n_units + 1, sizeof(*w.unit));
    w.accumulated =
        calloc((size_t)e->model->n_parameters + 1, sizeof(*w.accumulated));
    if (w.unit != NULL && w.accumulated != NULL) {
        for (uint32_t u = 0; u < e->units->n_units; u++) {
            grow(&w, FSDP_PARAM_SHARD, FSDP_DTYPE_F32, e->unit[u].chunk);
            for (uint32_t i = 0; i < states[e->c->optimizer]; i++) {
                grow(&w, FSDP_OPTIM, FSDP_DTYPE_F32, e->unit[u].state);
            }
        }
        for (uint32_t k = 0; k < FSDP_N_KINDS; k++) {
            e->rest.live[k] = w.live[k];
        }
        status = !case_trains(e->c)     ? FSDP_OK
                 : case_is_script(e->c) ? walk_script(&w)
                                        : walk_run(&w);
        store(e, &w);
    }
    free(w.unit);
    free(w.accumulated);
    return status;
}
