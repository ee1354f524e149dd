/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overlap_engine.c - an example for those who bring an engine: Fully Sharded
 * Data Parallel with two streams, prefetch and a pool, in one file that sees
 * nothing but the contract.
 *
 * Compute runs on env->compute, everything between ranks on a stream of the
 * engine's own. Each crossing is a wait with a name:
 *
 *   optimizer->all-gather       shards are updated before they are sent
 *   dead->reuse                 a slot is filled when its last reader is done
 *   all-gather->compute         a unit is complete before it is used
 *   compute->reduce-scatter     a gradient is complete before it is sent
 *   reduce->reuse               a sent gradient's slot becomes free
 *   reduce->optimizer           gradient shards are complete before the step
 *
 * Storage for unsharded parameters and gradients is a pool of equal slots,
 * allocated in shard(); the loop allocates nothing. What dies is declared dead
 * on the stream that has waited for its last use, so that live bytes counted
 * in the order of calls are never fewer than those that streams hold.
 */
#include <fsdp/engine.h>

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPENS = 1,
    CLOSES = 2,
    BACKWARD = 4
}; /* what a point does */

struct unit {
    uint64_t numel, chunk;
    float *shard, *grad_shard; /* chunk elements each */
    float *full, *grad;        /* slots, or NULL */
    float scale;               /* 1 / divide factor */
    uint64_t gathered;         /* ticket of its last all-gather */
    bool open;                 /* in a window, or kept since one */
    bool reduced;              /* grad_shard holds a gradient */
};

struct fsdp_sharded {
    const struct fsdp_env *env;
    const struct fsdp_model *model;
    const struct fsdp_units *units;
    struct fsdp_options options;
    uint32_t replicas, shards, coordinate;

    struct unit *unit;
    uint64_t *offset;  /* [n_parameters]: in the unit's flat parameter */
    uint8_t **plan;    /* [n_sequences][n points] */
    bool *in_backward; /* [n_modules] */
    bool *has;         /* [n_parameters]: a gradient, in its unit's */
    bool *asked;       /* [n_parameters]: for its first one, just now */
    float **again;     /* [n_parameters]: a later one, to be added */

    float *storage;    /* all that rests, then the pool */
    float **free_slot; /* those of the pool that are not in use */
    uint32_t n_slots, n_free;
    float **in_flight; /* gradients that are being reduced, oldest first */
    uint32_t n_in_flight;
    float *staging; /* of the largest chunk */

    struct fsdp_stream *communication;
    const struct fsdp_sequence *sequence; /* NULL: at rest */
    uint32_t index, next;
    bool stepped; /* shards changed since the last all-gather */
};

/* ---- Errors, operators, order ------------------------------------------ */

static int fail(const struct fsdp_env *env, int32_t status, const char *message)
{
    struct fsdp_error *e = env->error;

    if (e && e->status == FSDP_OK) {
        e->status = status;
        e->rank = (int32_t)env->rank;
        snprintf(e->where, sizeof(e->where), "overlap");
        snprintf(e->message, sizeof(e->message), "%s", message);
    }
    return status;
}

/* y[n] = kind(a[n], b[n]); a or b may be NULL. */
static int run(const struct fsdp_sharded *s, struct fsdp_stream *stream,
               uint32_t kind, uint64_t n, const float f[2], const float *a,
               const float *b, float *y)
{
    const struct fsdp_device *d = s->env->device;
    struct fsdp_op op = {.size = sizeof(op),
                         .kind = kind,
                         .unit = FSDP_NO_UNIT,
                         .dim = {n},
                         .f = {f[0], f[1]},
                         .n_out = 1,
                         .out = {{y, n * sizeof(*y)}}};

    if (a) {
        op.in[op.n_in++] = (struct fsdp_in){a, n * sizeof(*a)};
    }
    if (b) {
        op.in[op.n_in++] = (struct fsdp_in){b, n * sizeof(*b)};
    }
    return d->run(d->self, stream, &op);
}

static int collective(const struct fsdp_sharded *s, uint32_t kind, uint32_t dim,
                      uint32_t u, const float *in, float *out)
{
    const struct fsdp_comm *comm = s->env->comm;
    struct fsdp_collective c = {.size = sizeof(c),
                                .kind = kind,
                                .dim = dim,
                                .dtype = FSDP_DTYPE_F32,
                                .fold = s->options.fold,
                                .unit = u,
                                .n = s->unit[u].chunk,
                                .in = in,
                                .out = out};

    if (!comm->takes_streams) { /* it reads at once what the stream makes */
        const struct fsdp_device *d = s->env->device;
        FSDP_TRY(d->wait(d->self, NULL, s->communication, 0,
                         "communication->communicator"));
    }
    return comm->run(comm->self, s->communication, &c);
}

/* Compute waits for what communication was given up to a ticket; 0: all. */
static int compute_waits(const struct fsdp_sharded *s, uint64_t ticket,
                         const char *edge)
{
    const struct fsdp_device *d = s->env->device;

    return d->wait(d->self, s->env->compute, s->communication, ticket, edge);
}

static int communication_waits(const struct fsdp_sharded *s, const char *edge)
{
    const struct fsdp_device *d = s->env->device;

    return d->wait(d->self, s->communication, s->env->compute, 0, edge);
}

/* ---- The pool ---------------------------------------------------------- */

static int take(struct fsdp_sharded *s, struct fsdp_stream *stream,
                uint32_t kind, uint32_t u, float **out)
{
    const struct fsdp_device *d = s->env->device;
    uint64_t bytes = s->unit[u].chunk * s->shards * sizeof(**out);

    if (s->n_free == 0) {
        return fail(s->env, FSDP_ERR_INTERNAL, "too few slots");
    }
    *out = s->free_slot[--s->n_free];
    d->live(d->self, stream, kind, u, *out, bytes);
    return FSDP_OK;
}

/* Compute has used the slot, or waited for who has. */
static void give(struct fsdp_sharded *s, float **slot)
{
    if (*slot) {
        s->env->device->dead(s->env->device->self, s->env->compute, *slot);
        s->free_slot[s->n_free++] = *slot;
        *slot = NULL;
    }
}

/* ---- Unshard ----------------------------------------------------------- */

static int gather(struct fsdp_sharded *s, uint32_t u)
{
    struct unit *x = &s->unit[u];

    if (x->full || s->shards == 1) {
        return FSDP_OK;
    }
    if (s->stepped) {
        FSDP_TRY(communication_waits(s, "optimizer->all-gather"));
        s->stepped = false;
    }
    FSDP_TRY(communication_waits(s, "dead->reuse"));
    FSDP_TRY(take(s, s->communication, FSDP_PARAM_FULL, u, &x->full));
    FSDP_TRY(
        collective(s, FSDP_ALL_GATHER, FSDP_DIM_SHARD, u, x->shard, x->full));
    return s->env->device->mark(s->env->device->self, s->communication,
                                &x->gathered);
}

/* The units whose windows come next in this phase, up to the agreed depth. One
 * that was kept since forward is not gathered, and not counted. */
static int prefetch(struct fsdp_sharded *s, uint32_t at)
{
    const uint8_t *plan = s->plan[s->index];
    uint32_t depth = plan[at] & BACKWARD ? s->options.prefetch_backward
                                         : s->options.prefetch_forward;

    for (uint32_t i = at + 1; depth > 0 && i < s->sequence->n &&
                              (plan[i] & BACKWARD) == (plan[at] & BACKWARD);
         i++) {
        uint32_t u = s->units->unit_of_module[s->sequence->module[i]];
        if ((plan[i] & OPENS) && !s->unit[u].open) {
            FSDP_TRY(gather(s, u));
            depth--;
        }
    }
    return FSDP_OK;
}

/* Compute waits for this unit's all-gather alone, not for those ahead. */
static int open_window(struct fsdp_sharded *s, uint32_t at, uint32_t u)
{
    struct unit *x = &s->unit[u];
    uint64_t padded = x->chunk * s->shards;

    if (!x->open) {
        FSDP_TRY(gather(s, u));
        FSDP_TRY(compute_waits(s, x->gathered, "all-gather->compute"));
        x->open = true;
    }
    FSDP_TRY(prefetch(s, at));
    if (!(s->plan[s->index][at] & BACKWARD)) {
        return FSDP_OK;
    }
    /* Padding, and parameters that will get no gradient, contribute +0. */
    FSDP_TRY(take(s, s->env->compute, FSDP_GRAD_FULL, u, &x->grad));
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        uint32_t m = s->model->parameter_module[p];
        s->has[p] = s->units->unit_of_module[m] != u && s->has[p];
    }
    return run(s, s->env->compute, FSDP_OP_FILL, padded, (float[2]){0}, NULL,
               NULL, x->grad);
}

/* ---- Reduce ------------------------------------------------------------ */

static int reduce_into(struct fsdp_sharded *s, uint32_t u, float *to)
{
    struct unit *x = &s->unit[u];
    const struct fsdp_device *d = s->env->device;
    const float f[2] = {x->scale};

    if (s->shards > 1) {
        FSDP_TRY(
            collective(s, FSDP_REDUCE_SCATTER, FSDP_DIM_SHARD, u, x->grad, to));
    } else {
        FSDP_TRY(d->copy(d->self, s->communication, to, x->grad,
                         x->chunk * sizeof(*to)));
    }
    if (s->replicas > 1) {
        FSDP_TRY(collective(s, FSDP_ALL_REDUCE, FSDP_DIM_REPLICATE, u, to, to));
    }
    return run(s, s->communication, FSDP_OP_SCALE, x->chunk, f, to, NULL, to);
}

/* The first reduction since zero_grad is the gradient shard; a later one is
 * added to it. */
static int reduce(struct fsdp_sharded *s, uint32_t u)
{
    const struct fsdp_device *d = s->env->device;
    struct unit *x = &s->unit[u];
    uint64_t bytes = x->chunk * sizeof(float);

    FSDP_TRY(communication_waits(s, "compute->reduce-scatter"));
    if (!x->reduced) {
        d->live(d->self, s->communication, FSDP_GRAD_SHARD, u, x->grad_shard,
                bytes);
        x->reduced = true;
        return reduce_into(s, u, x->grad_shard);
    }
    d->live(d->self, s->communication, FSDP_STAGING, u, s->staging, bytes);
    FSDP_TRY(reduce_into(s, u, s->staging));
    FSDP_TRY(run(s, s->communication, FSDP_OP_ADD, x->chunk, (float[2]){0},
                 x->grad_shard, s->staging, x->grad_shard));
    d->dead(d->self, s->communication, s->staging);
    return FSDP_OK;
}

/* Gives back the oldest n gradients in flight. */
static int retire(struct fsdp_sharded *s, uint32_t n, const char *edge)
{
    if (n > 0) {
        FSDP_TRY(compute_waits(s, 0, edge));
        for (uint32_t i = 0; i < n; i++) {
            give(s, &s->in_flight[i]);
        }
        s->n_in_flight -= n;
        memmove(s->in_flight, s->in_flight + n,
                s->n_in_flight * sizeof(*s->in_flight));
    }
    return FSDP_OK;
}

/* Room for one more is made before its reduction is enqueued, so that compute
 * waits for older ones alone. */
static int close_window(struct fsdp_sharded *s, uint32_t u, bool backward)
{
    struct unit *x = &s->unit[u];
    uint32_t most = s->options.reduces_in_flight;

    give(s, &x->full);
    x->open = false;
    if (!backward) {
        return FSDP_OK;
    }
    if (most > 0 && s->n_in_flight >= most) {
        FSDP_TRY(retire(s, 1, "reduce->reuse"));
    }
    FSDP_TRY(reduce(s, u));
    s->in_flight[s->n_in_flight++] = x->grad;
    x->grad = NULL;
    return most > 0 ? FSDP_OK : retire(s, 1, "reduce->reuse");
}

/* A gradient of a module that is called twice in a pass has storage of its
 * own, which compute has used when it is given back. */
static void drop_again(struct fsdp_sharded *s, uint32_t p)
{
    const struct fsdp_device *d = s->env->device;

    if (s->again[p]) {
        d->dead(d->self, s->env->compute, s->again[p]);
        (void)d->wait(d->self, NULL, s->env->compute, 0, "compute->free");
        d->free(d->self, s->again[p]);
        s->again[p] = NULL;
    }
}

static void drop_gradients(struct fsdp_sharded *s)
{
    const struct fsdp_device *d = s->env->device;

    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        drop_again(s, p);
        s->asked[p] = false;
    }
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        give(s, &s->unit[u].grad);
        if (s->unit[u].reduced) {
            d->dead(d->self, s->env->compute, s->unit[u].grad_shard);
        }
        s->unit[u].reduced = false;
    }
}

/* ---- Points ------------------------------------------------------------ */

static int begin(struct fsdp_sharded *s, uint32_t index)
{
    if (s->sequence || index >= s->model->n_sequences) {
        return fail(s->env, FSDP_ERR_INVALID, "BEGIN in a pass, or unknown");
    }
    FSDP_TRY(retire(s, s->n_in_flight, "reduce->reuse"));
    s->sequence = s->model->sequence[index];
    s->index = index;
    s->next = 0;
    return FSDP_OK;
}

static int end(struct fsdp_sharded *s, uint32_t index)
{
    if (!s->sequence || s->index != index || s->next != s->sequence->n) {
        return fail(s->env, FSDP_ERR_INVALID, "END before the last point");
    }
    s->sequence = NULL;
    return FSDP_OK;
}

/* Gathers ahead and reductions may be on their way. */
static int cancel(struct fsdp_sharded *s)
{
    if (!s->sequence) {
        return fail(s->env, FSDP_ERR_INVALID, "CANCEL at rest");
    }
    FSDP_TRY(compute_waits(s, 0, "cancel"));
    FSDP_TRY(retire(s, s->n_in_flight, "reduce->reuse"));
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        give(s, &s->unit[u].full);
        s->unit[u].open = false;
    }
    drop_gradients(s);
    memset(s->in_backward, 0, s->model->n_modules * sizeof(*s->in_backward));
    s->sequence = NULL;
    return FSDP_OK;
}

/* A module's backward is over: its first gradient is in place, a later one is
 * added. */
static int take_gradients(struct fsdp_sharded *s, uint32_t module)
{
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        float *sum;
        if (s->model->parameter_module[p] != module) {
            continue;
        }
        if (s->again[p]) {
            sum = s->unit[s->units->unit_of_module[module]].grad + s->offset[p];
            FSDP_TRY(run(s, s->env->compute, FSDP_OP_ADD,
                         fsdp_numel(s->model, p), (float[2]){0}, sum,
                         s->again[p], sum));
            drop_again(s, p);
        }
        s->has[p] = s->has[p] || s->asked[p];
        s->asked[p] = false;
    }
    return FSDP_OK;
}

static int at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    const struct fsdp_sequence *q = s->sequence;
    uint32_t i = s->next;
    uint32_t u;
    uint8_t does;

    if (point == FSDP_BEGIN) {
        return begin(s, index);
    }
    if (point == FSDP_END) {
        return end(s, index);
    }
    if (point == FSDP_CANCEL) {
        return cancel(s);
    }
    if (!q || i >= q->n || q->point[i] != point || q->module[i] != index) {
        return fail(s->env, FSDP_ERR_INVALID, "this point is not the next one");
    }
    s->next++;
    does = s->plan[s->index][i];
    u = s->units->unit_of_module[index];
    if (does & OPENS) {
        FSDP_TRY(open_window(s, i, u));
    }
    if (point == FSDP_PRE_BACKWARD || point == FSDP_POST_BACKWARD) {
        s->in_backward[index] = point == FSDP_PRE_BACKWARD;
    }
    if (point == FSDP_POST_BACKWARD) {
        FSDP_TRY(take_gradients(s, index));
    }
    return does & CLOSES ? close_window(s, u, does & BACKWARD) : FSDP_OK;
}

/* ---- What the model asks for ------------------------------------------- */

static int lend(const struct fsdp_sharded *s, uint32_t p, float *unit,
                struct fsdp_tensor *out)
{
    int64_t stride = 1;

    *out = (struct fsdp_tensor){.data = unit + s->offset[p],
                                .dtype = FSDP_DTYPE_F32,
                                .place = s->env->device->place,
                                .n_dims = s->model->parameter_n_dims[p]};
    for (uint32_t d = out->n_dims; d-- > 0;) {
        out->shape[d] = s->model->parameter_shape[p][d];
        out->stride[d] = stride;
        stride *= (int64_t)out->shape[d];
    }
    return FSDP_OK;
}

static struct unit *unit_of(const struct fsdp_sharded *s, uint32_t p)
{
    uint32_t m = s->model->parameter_module[p];

    return &s->unit[s->units->unit_of_module[m]];
}

static int param(struct fsdp_sharded *s, uint32_t p, struct fsdp_tensor *out)
{
    const struct unit *x;

    if (p >= s->model->n_parameters || !unit_of(s, p)->open) {
        return fail(s->env, FSDP_ERR_INVALID, "param: unknown, or sharded");
    }
    x = unit_of(s, p);
    return lend(s, p, s->shards > 1 ? x->full : x->shard, out);
}

static int lend_again(struct fsdp_sharded *s, uint32_t p)
{
    const struct fsdp_device *d = s->env->device;
    uint32_t m = s->model->parameter_module[p];
    uint64_t bytes = fsdp_numel(s->model, p) * sizeof(float);
    void *storage;

    if (d->alloc(d->self, bytes, &storage) != FSDP_OK) {
        return fail(s->env, FSDP_ERR_NOMEM, "grad: no memory for another one");
    }
    s->again[p] = storage;
    d->live(d->self, s->env->compute, FSDP_STAGING, s->units->unit_of_module[m],
            storage, bytes);
    return FSDP_OK;
}

static int grad(struct fsdp_sharded *s, uint32_t p, struct fsdp_tensor *out)
{
    if (p >= s->model->n_parameters ||
        !s->in_backward[s->model->parameter_module[p]]) {
        return fail(s->env, FSDP_ERR_INVALID, "grad: not in its backward");
    }
    FSDP_TRY(lend(s, p, unit_of(s, p)->grad, out));
    if (!s->has[p]) {
        s->asked[p] = true;
        return FSDP_OK;
    }
    if (!s->again[p]) {
        FSDP_TRY(lend_again(s, p));
    }
    out->data = s->again[p];
    return FSDP_OK;
}

/* ---- Between passes ---------------------------------------------------- */

/* The part of parameter p that this rank owns, and where in its unit's chunk
 * it begins; false if it owns none. */
static bool owned(const struct fsdp_sharded *s, uint32_t p, uint64_t *local,
                  struct fsdp_piece *out)
{
    const struct unit *x = unit_of(s, p);
    uint64_t low = s->coordinate * x->chunk;
    uint64_t high = low + x->chunk;
    uint64_t from = s->offset[p];
    uint64_t to = from + fsdp_numel(s->model, p);
    uint64_t first = from > low ? from : low;
    uint64_t last = to < high ? to : high;

    if (first >= last) {
        return false;
    }
    *local = first - low;
    *out =
        (struct fsdp_piece){.size = sizeof(*out),
                            .parameter = p,
                            .first = first - from,
                            .n = last - first,
                            .value = x->shard + *local,
                            .grad = x->reduced ? x->grad_shard + *local : NULL};
    return true;
}

/* Whoever reads them reads them on no stream. */
static int pieces(struct fsdp_sharded *s,
                  void (*visit)(void *, const struct fsdp_piece *),
                  void *context)
{
    struct fsdp_piece piece;
    uint64_t local;

    if (s->sequence) {
        return fail(s->env, FSDP_ERR_INVALID, "pieces during a pass");
    }
    FSDP_TRY(s->env->device->sync(s->env->device->self, NULL));
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        if (owned(s, p, &local, &piece)) {
            visit(context, &piece);
        }
    }
    return FSDP_OK;
}

static int set_gradient_sync(struct fsdp_sharded *s, uint32_t on)
{
    return on ? FSDP_OK
              : fail(s->env, FSDP_ERR_UNSUPPORTED, "no-sync is not claimed");
}

static int step(struct fsdp_sharded *s, struct fsdp_step *how)
{
    struct fsdp_piece own;
    uint64_t local;

    if (s->sequence || how->n_groups > 1) {
        return fail(s->env, FSDP_ERR_INVALID, "step: in a pass, or of groups");
    }
    if (how->inverse_scale != 0.0f && how->inverse_scale != 1.0f) {
        return fail(s->env, FSDP_ERR_UNSUPPORTED, "loss-scale is not claimed");
    }
    how->found_inf = 0;
    FSDP_TRY(compute_waits(s, 0, "reduce->optimizer"));
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        bool decays = how->weight_decay &&
                      !(s->model->parameter_flags[p] & FSDP_NO_DECAY);
        float f[2] = {how->lr[0], decays ? how->weight_decay[0] : 0.0f};

        if (owned(s, p, &local, &own) && own.grad) {
            float *w = unit_of(s, p)->shard + local;
            FSDP_TRY(
                run(s, s->env->compute, FSDP_OP_SGD, own.n, f, w, own.grad, w));
        }
    }
    s->stepped = true;
    return FSDP_OK;
}

static int zero_grad(struct fsdp_sharded *s)
{
    if (s->sequence) {
        return fail(s->env, FSDP_ERR_INVALID, "zero_grad during a pass");
    }
    FSDP_TRY(retire(s, s->n_in_flight, "reduce->reuse"));
    drop_gradients(s);
    return FSDP_OK;
}

/* ---- Shard ------------------------------------------------------------- */

/* What a driver of an earlier version gives may be shorter: the rest is 0. */
static void read_known(void *to, size_t bytes, const void *from, uint32_t size)
{
    memset(to, 0, bytes);
    memcpy(to, from, size < bytes ? size : bytes);
}

static struct fsdp_options read_options(const struct fsdp_options *from)
{
    struct fsdp_options o;

    read_known(&o, sizeof(o), from, from->size);
    if (from->size <= offsetof(struct fsdp_options, accumulate_dtype)) {
        o.grad_dtype = FSDP_DTYPE_NONE; /* padding of an earlier struct */
    }
    return o;
}

static int check_options(const struct fsdp_env *env,
                         const struct fsdp_options *o)
{
    const struct fsdp_mesh *mesh = env->mesh;

    if (mesh->n_dims != 2 || mesh->extent[0] == 0 || mesh->extent[1] == 0 ||
        (uint64_t)mesh->extent[0] * mesh->extent[1] != env->world) {
        return fail(env, FSDP_ERR_INVALID, "the mesh is not the world");
    }
    if (o->fold > FSDP_FOLD_TREE || !(o->divide_factor >= 0.0f) ||
        isinf(o->divide_factor)) {
        return fail(env, FSDP_ERR_INVALID, "fold or divide_factor");
    }
    if (o->layout != FSDP_LAYOUT_FLAT || o->optimizer != FSDP_OPTIMIZER_SGD ||
        o->n_groups > 1 || o->offload || o->param_dtype > FSDP_DTYPE_F32 ||
        o->reduce_dtype > FSDP_DTYPE_F32 || o->output_dtype > FSDP_DTYPE_F32 ||
        o->buffer_dtype > FSDP_DTYPE_F32 || o->grad_dtype > FSDP_DTYPE_F32 ||
        o->accumulate_dtype > FSDP_DTYPE_F32 || o->sum_dtype > FSDP_DTYPE_F32) {
        return fail(env, FSDP_ERR_UNSUPPORTED,
                    "claimed are flat, sgd, one group, float32");
    }
    if (o->predivide_factor != 0.0f) {
        return fail(env, FSDP_ERR_UNSUPPORTED,
                    "predivide_factor is not claimed");
    }
    if (o->beta1_of_group || o->beta2_of_group || o->eps_of_group ||
        o->momentum_of_group) {
        return fail(env, FSDP_ERR_UNSUPPORTED,
                    "beta1_of_group, beta2_of_group, eps_of_group, "
                    "momentum_of_group are not claimed");
    }
    return FSDP_OK;
}

/* More units ahead than there are is a mistake; the message says which. */
static int check_ahead(const struct fsdp_env *env, const struct fsdp_options *o,
                       uint32_t n_units)
{
    if (o->prefetch_forward > n_units) {
        return fail(env, FSDP_ERR_INVALID,
                    "prefetch_forward is more than there are units");
    }
    if (o->prefetch_backward > n_units) {
        return fail(env, FSDP_ERR_INVALID,
                    "prefetch_backward is more than there are units");
    }
    if (o->reduces_in_flight > n_units) {
        return fail(env, FSDP_ERR_INVALID,
                    "reduces_in_flight is more than there are units");
    }
    return FSDP_OK;
}

static int check(const struct fsdp_env *env, const struct fsdp_model *model,
                 const struct fsdp_units *units)
{
    struct fsdp_units known;

    read_known(&known, sizeof(known), units, units->size);
    const uint32_t *const dtype[] = {known.param_dtype,  known.reduce_dtype,
                                     known.output_dtype, known.buffer_dtype,
                                     known.grad_dtype,   known.accumulate_dtype,
                                     known.sum_dtype};

    for (uint32_t u = 0; u < units->n_units; u++) {
        bool special = known.offload && known.offload[u] == 1;

        for (size_t i = 0; i < sizeof(dtype) / sizeof(dtype[0]); i++) {
            special = special || (dtype[i] && dtype[i][u]);
        }
        if (special) {
            return fail(env, FSDP_ERR_UNSUPPORTED, "a unit is special");
        }
        if (known.predivide_factor && known.predivide_factor[u] != 0.0f) {
            return fail(env, FSDP_ERR_UNSUPPORTED,
                        "predivide_factor of a unit is not claimed");
        }
        if (known.divide_factor && (!(known.divide_factor[u] >= 0.0f) ||
                                    isinf(known.divide_factor[u]))) {
            return fail(env, FSDP_ERR_INVALID,
                        "divide_factor of a unit is not a positive number");
        }
    }
    for (uint32_t m = 0; m < model->n_modules; m++) {
        uint32_t u = units->unit_of_module[m];
        if (u >= units->n_units && u != FSDP_NO_UNIT) {
            return fail(env, FSDP_ERR_INVALID, "a module's unit is unknown");
        }
    }
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        if (units->unit_of_module[model->parameter_module[p]] == FSDP_NO_UNIT) {
            return fail(env, FSDP_ERR_INVALID, "a parameter has no unit");
        }
        if (model->parameter_dtype[p] != FSDP_DTYPE_F32 ||
            (model->parameter_flags[p] & FSDP_FROZEN) ||
            model->parameter_alias[p] >= 0) {
            return fail(env, FSDP_ERR_UNSUPPORTED, "a parameter is special");
        }
    }
    return FSDP_OK;
}

static uint64_t hash(uint64_t h, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        h = (h ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    }
    return h;
}

/* Ranks that disagree would mix up parameters silently. */
static int agree(const struct fsdp_sharded *s)
{
    const struct fsdp_env *env = s->env;
    struct fsdp_options o = s->options;
    uint64_t *all = calloc(env->world, sizeof(*all));
    uint64_t mine;
    int status = FSDP_ERR_NOMEM;

    o.group_of_parameter = NULL;
    mine = hash(0xcbf29ce484222325u, &o, sizeof(o));
    mine = hash(mine, s->units->unit_of_module,
                s->model->n_modules * sizeof(uint32_t));
    mine = hash(mine, s->offset, s->model->n_parameters * sizeof(*s->offset));
    if (all) {
        status = env->exchange(env->exchange_self, &mine, sizeof(mine), all);
    }
    for (uint32_t r = 0; r < env->world && status == FSDP_OK; r++) {
        if (all[r] != all[0]) {
            status = fail(env, FSDP_ERR_MISMATCH, "ranks shard differently");
        }
    }
    free(all);
    return status;
}

static bool kept(const struct fsdp_sharded *s, uint32_t u)
{
    const uint32_t *own = s->units->reshard_after_forward;

    if (s->options.keep_root && u == s->units->unit_of_module[0]) {
        return true;
    }
    return own && own[u] ? own[u] == 2 : !s->options.reshard_after_forward;
}

static bool is_backward(uint32_t point)
{
    return point != FSDP_PRE_FORWARD && point != FSDP_POST_FORWARD;
}

/* What each point does; the most windows that are open at once, forward and
 * backward, raise *full and *grads. `seen` and `last`: scratch by unit. */
static int make_plan(const struct fsdp_sharded *s,
                     const struct fsdp_sequence *q, uint8_t *plan,
                     uint32_t *seen, uint32_t *last, uint32_t *full,
                     uint32_t *grads)
{
    uint32_t phase = 1;
    uint32_t n_full = 0;
    uint32_t n_grads = 0;

    memset(seen, 0, s->units->n_units * sizeof(*seen));
    for (uint32_t i = 0; i < q->n; i++) {
        uint32_t u = s->units->unit_of_module[q->module[i]];
        phase +=
            i > 0 && is_backward(q->point[i]) != is_backward(q->point[i - 1]);
        plan[i] = is_backward(q->point[i]) ? BACKWARD : 0;
        if (u == FSDP_NO_UNIT) {
            continue;
        }
        if (seen[u] == phase) {
            plan[last[u]] &= (uint8_t)~CLOSES;
        } else {
            plan[i] |= OPENS;
        }
        plan[i] |= plan[i] & OPENS ? 0 : CLOSES;
        seen[u] = phase;
        last[u] = i;
    }
    memset(seen, 0, s->units->n_units * sizeof(*seen));
    for (uint32_t i = q->n; i-- > 0;) { /* seen: a backward is yet to come */
        uint32_t u = s->units->unit_of_module[q->module[i]];
        if (u != FSDP_NO_UNIT && (plan[i] & BACKWARD)) {
            seen[u] = 1;
        } else if ((plan[i] & CLOSES) && seen[u] && kept(s, u)) {
            plan[i] &= (uint8_t)~CLOSES;
        }
    }
    memset(seen, 0, s->units->n_units * sizeof(*seen));
    for (uint32_t i = 0; i < q->n; i++) { /* seen: unsharded */
        uint32_t u = s->units->unit_of_module[q->module[i]];
        if (plan[i] & OPENS) {
            n_full += !seen[u];
            n_grads += (plan[i] & BACKWARD) != 0;
            seen[u] = 1;
        } else if (plan[i] & CLOSES) {
            n_full--;
            n_grads -= (plan[i] & BACKWARD) != 0;
            seen[u] = 0;
        }
        *full = n_full > *full ? n_full : *full;
        *grads = n_grads > *grads ? n_grads : *grads;
    }
    return FSDP_OK;
}

static uint32_t at_most(uint64_t n, uint32_t most)
{
    return n < most ? (uint32_t)n : most;
}

static int make_plans(struct fsdp_sharded *s)
{
    const struct fsdp_options *o = &s->options;
    uint32_t n = s->units->n_units;
    uint32_t full = 0;
    uint32_t grads = 0;
    uint32_t ahead = o->prefetch_forward > o->prefetch_backward
                         ? o->prefetch_forward
                         : o->prefetch_backward;
    uint32_t *scratch = calloc(2 * (size_t)n + 1, sizeof(*scratch));
    int status = scratch ? FSDP_OK : FSDP_ERR_NOMEM;

    for (uint32_t k = 0; k < s->model->n_sequences && status == FSDP_OK; k++) {
        const struct fsdp_sequence *q = s->model->sequence[k];
        s->plan[k] = calloc(q->n + (size_t)1, 1);
        status = s->plan[k] ? make_plan(s, q, s->plan[k], scratch, scratch + n,
                                        &full, &grads)
                            : FSDP_ERR_NOMEM;
    }
    free(scratch);
    s->n_slots = s->shards > 1 ? at_most((uint64_t)full + ahead, n) : 0;
    s->n_slots += at_most((uint64_t)grads + o->reduces_in_flight, n);
    s->options.reduces_in_flight = at_most(o->reduces_in_flight, n);
    return status;
}

/* Room for n elements: aligned, and no two ranges begin at one address. */
static uint64_t room(uint64_t n)
{
    return (n / 16 + 1) * 16;
}

/* One allocation: shards and gradient shards, staging, the slots. */
static int allocate(struct fsdp_sharded *s)
{
    const struct fsdp_device *d = s->env->device;
    uint64_t largest = 0;
    uint64_t rest = 0;
    float *next;
    void *storage;

    for (uint32_t u = 0; u < s->units->n_units; u++) {
        uint64_t chunk = s->unit[u].chunk;
        rest += 2 * room(chunk);
        largest = chunk > largest ? chunk : largest;
    }
    rest += room(largest) + s->n_slots * room(largest * s->shards);
    s->free_slot = calloc(s->n_slots + (size_t)1, sizeof(*s->free_slot));
    s->in_flight = calloc(s->n_slots + (size_t)1, sizeof(*s->in_flight));
    if (!s->free_slot || !s->in_flight) {
        return FSDP_ERR_NOMEM;
    }
    FSDP_TRY(d->alloc(d->self, rest * sizeof(*next), &storage));
    s->storage = next = storage;
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        struct unit *x = &s->unit[u];
        x->shard = next;
        x->grad_shard = next + room(x->chunk);
        next += 2 * room(x->chunk);
    }
    s->staging = next;
    next += room(largest);
    for (; s->n_free < s->n_slots; next += room(largest * s->shards)) {
        s->free_slot[s->n_free++] = next;
    }
    return d->stream_open(d->self, "communication", &s->communication);
}

/* Slice by slice: no rank ever holds a whole model. */
static int fill_piece(const struct fsdp_sharded *s, uint64_t local,
                      const struct fsdp_piece *own)
{
    const struct fsdp_device *d = s->env->device;
    float *to = unit_of(s, own->parameter)->shard + local;
    float slice[1024];
    uint64_t n;

    for (uint64_t done = 0; done < own->n; done += n) {
        n = own->n - done < 1024 ? own->n - done : 1024;
        FSDP_TRY(s->model->initial(s->model->context, own->parameter,
                                   own->first + done, n, slice));
        FSDP_TRY(d->copy(d->self, NULL, to + done, slice, n * sizeof(*slice)));
    }
    return FSDP_OK;
}

static int initialise(const struct fsdp_sharded *s)
{
    const struct fsdp_device *d = s->env->device;
    struct fsdp_piece own;
    uint64_t local;

    for (uint32_t u = 0; u < s->units->n_units; u++) {
        struct unit *x = &s->unit[u];
        d->live(d->self, NULL, FSDP_PARAM_SHARD, u, x->shard,
                x->chunk * sizeof(*x->shard));
        FSDP_TRY(run(s, NULL, FSDP_OP_FILL, x->chunk, (float[2]){0}, NULL, NULL,
                     x->shard));
    }
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        if (owned(s, p, &local, &own)) {
            FSDP_TRY(fill_piece(s, local, &own));
        }
    }
    return FSDP_OK;
}

static void lay_out(struct fsdp_sharded *s)
{
    const float *own = s->units->divide_factor;

    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        s->offset[p] = unit_of(s, p)->numel;
        unit_of(s, p)->numel += fsdp_numel(s->model, p);
    }
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        struct unit *x = &s->unit[u];
        float divide =
            own && own[u] != 0.0f ? own[u] : s->options.divide_factor;
        x->scale = 1.0f / (divide != 0.0f ? divide : (float)s->env->world);
        x->chunk = x->numel / s->shards + (x->numel % s->shards != 0);
    }
}

static int shard(const struct fsdp_env *env, const struct fsdp_model *model,
                 const struct fsdp_units *units,
                 const struct fsdp_options *options, struct fsdp_sharded **out)
{
    const struct fsdp_options known = read_options(options);
    struct fsdp_sharded *s;

    *out = NULL;
    FSDP_TRY(check_options(env, &known));
    FSDP_TRY(check_ahead(env, &known, units->n_units));
    FSDP_TRY(check(env, model, units));
    s = *out = calloc(1, sizeof(*s));
    if (!s) {
        return FSDP_ERR_NOMEM;
    }
    s->env = env;
    s->model = model;
    s->units = units;
    s->options = known;
    s->replicas = env->mesh->extent[FSDP_DIM_REPLICATE];
    s->shards = env->mesh->extent[FSDP_DIM_SHARD];
    s->coordinate = env->rank % s->shards;
    s->unit = calloc(units->n_units + (size_t)1, sizeof(*s->unit));
    s->offset = calloc(model->n_parameters + (size_t)1, sizeof(*s->offset));
    s->plan = calloc(model->n_sequences + (size_t)1, sizeof(*s->plan));
    s->in_backward = calloc(model->n_modules + (size_t)1, sizeof(bool));
    s->has = calloc(model->n_parameters + (size_t)1, sizeof(*s->has));
    s->asked = calloc(model->n_parameters + (size_t)1, sizeof(*s->asked));
    s->again = calloc(model->n_parameters + (size_t)1, sizeof(*s->again));
    if (!s->unit || !s->offset || !s->plan || !s->in_backward || !s->has ||
        !s->asked || !s->again) {
        return FSDP_ERR_NOMEM;
    }
    lay_out(s);
    FSDP_TRY(agree(s));
    FSDP_TRY(make_plans(s));
    FSDP_TRY(allocate(s));
    return initialise(s);
}

/* All that is live dies before its storage goes, whatever state this is. */
static void give_back(struct fsdp_sharded *s)
{
    const struct fsdp_device *d = s->env->device;

    (void)d->sync(d->self, NULL);
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        struct unit *x = &s->unit[u];
        d->dead(d->self, NULL, x->full);
        d->dead(d->self, NULL, x->grad);
        d->dead(d->self, NULL, x->shard);
        d->dead(d->self, NULL, x->reduced ? x->grad_shard : NULL);
    }
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        drop_again(s, p);
    }
    for (uint32_t i = 0; i < s->n_in_flight; i++) {
        d->dead(d->self, NULL, s->in_flight[i]);
    }
    d->dead(d->self, NULL, s->staging);
    d->stream_close(d->self, s->communication);
    d->free(d->self, s->storage);
}

static void destroy(struct fsdp_sharded *s)
{
    if (!s) {
        return;
    }
    if (s->storage) {
        give_back(s);
    }
    for (uint32_t k = 0; s->plan && k < s->model->n_sequences; k++) {
        free(s->plan[k]);
    }
    free(s->unit);
    free(s->offset);
    free(s->plan);
    free(s->in_backward);
    free(s->has);
    free(s->asked);
    free(s->again);
    free(s->free_slot);
    free(s->in_flight);
    free(s);
}

/* Folds are the communicator's, strategies the mesh and one flag: an engine
 * that has one of them has them all. */
const struct fsdp_engine *fsdp_engine_v1(void)
{
    static const char *const claims[] = {
        "flat",      "full-shard",   "shard-grad-op",
        "no-shard",  "hybrid-shard", "hybrid-shard-zero2",
        "keep-root", "eval",         "cancel",
        "sgd",       "fold-rank",    "fold-ring",
        "fold-tree", "f32-fma",      "strict-memory",
        "prefetch",  "scripts",      NULL};
    static const struct fsdp_engine engine = {.size = sizeof(engine),
                                              .abi = FSDP_ABI_VERSION,
                                              .name = "overlap",
                                              .version = "0.1.0",
                                              .claims = claims,
                                              .shard = shard,
                                              .at = at,
                                              .param = param,
                                              .grad = grad,
                                              .set_gradient_sync =
                                                  set_gradient_sync,
                                              .step = step,
                                              .zero_grad = zero_grad,
                                              .pieces = pieces,
                                              .destroy = destroy};

    return &engine;
}
