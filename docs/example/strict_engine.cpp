/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strict_engine.cpp - an engine to start from, in C++: Fully Sharded Data
 * Parallel in the strict profile, all on the model's stream, nothing ahead.
 *
 * Read it beside docs/specification.md: each function is one of its rules.
 * overlap_engine.c is what comes after it: streams, prefetch, a pool.
 */
#include <fsdp/engine.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <new>
#include <vector>

namespace {

/* A value on the device, with storage of its own. */
struct Range {
    float *p = nullptr;
    uint64_t n = 0;
};

struct Unit {
    uint64_t numel = 0, chunk = 0; /* elements; of a shard */
    float scale = 1.0f;            /* 1 / divide factor */
    Range shard, full, grad, grad_shard;
    bool open = false; /* in a window, or kept since one */
};

struct Parameter {
    uint32_t unit = 0;
    uint64_t numel = 0, offset = 0; /* in the unit's flat parameter */
    bool accumulated = false;       /* grad holds a gradient of it */
    bool lent = false;              /* storage for a fresh one was given */
    Range staging;                  /* that storage, if it is to be added */
};

/* What a point does beside standing where it stands. */
struct Action {
    bool opens = false, closes = false, backward = false;
};

/* Elements [first, first + n) of a parameter, at `local` of its unit's shard.
 */
struct Own {
    uint64_t first, n, local;
};

} // namespace

struct fsdp_sharded {
    const fsdp_env *env = nullptr;
    const fsdp_model *model = nullptr;
    const fsdp_units *units = nullptr;
    fsdp_options options = {};
    uint32_t replicas = 1, shards = 1, coordinate = 0;

    std::vector<Unit> unit;
    std::vector<Parameter> parameter;
    std::vector<std::vector<Action>> plan; /* by sequence and point */
    std::vector<bool> in_backward;         /* by module */

    const fsdp_sequence *sequence = nullptr; /* nullptr: at rest */
    uint32_t index = 0, next = 0;
    bool sync = true, next_sync = true, summoned = false;
};

namespace {

using Sharded = fsdp_sharded;

int fail(const fsdp_env *env, int32_t status, const char *message)
{
    fsdp_error *e = env->error;

    if (e && e->status == FSDP_OK) {
        e->status = status;
        e->rank = static_cast<int32_t>(env->rank);
        std::snprintf(e->where, sizeof e->where, "strict");
        std::snprintf(e->message, sizeof e->message, "%s", message);
    }
    return status;
}

/* ---- Values ------------------------------------------------------------ */

int make(Sharded *s, uint32_t kind, uint32_t u, uint64_t n, Range *out)
{
    const fsdp_device *d = s->env->device;
    void *p = nullptr;

    FSDP_TRY(d->alloc(d->self, n * sizeof(float), &p));
    *out = {static_cast<float *>(p), n};
    d->live(d->self, s->env->compute, kind, u, p, n * sizeof(float));
    return FSDP_OK;
}

/* Storage may be given back when no stream uses it any more. */
void drop(Sharded *s, Range *r)
{
    const fsdp_device *d = s->env->device;

    if (r->p) {
        if (r->n > 0) {
            d->dead(d->self, s->env->compute, r->p);
        }
        (void)d->sync(d->self, s->env->compute);
        d->free(d->self, r->p);
        *r = {};
    }
}

/* y[n] = kind(a[n], b[n]); a or b may be nullptr. */
int run(const Sharded *s, uint32_t kind, uint64_t n, float f0, float f1,
        const float *a, const float *b, float *y)
{
    const fsdp_device *d = s->env->device;
    fsdp_op op = {};

    op.size = sizeof op;
    op.kind = kind;
    op.unit = FSDP_NO_UNIT;
    op.dim[0] = n;
    op.f[0] = f0;
    op.f[1] = f1;
    for (const float *in : {a, b}) {
        if (in) {
            op.in[op.n_in].p = in;
            op.in[op.n_in++].bytes = n * sizeof *in;
        }
    }
    op.n_out = 1;
    op.out[0].p = y;
    op.out[0].bytes = n * sizeof *y;
    return d->run(d->self, s->env->compute, &op);
}

int fill_zero(const Sharded *s, const Range &r)
{
    return run(s, FSDP_OP_FILL, r.n, 0.0f, 0.0f, nullptr, nullptr, r.p);
}

int collective(const Sharded *s, uint32_t kind, uint32_t dim, uint32_t u,
               const float *in, float *out)
{
    const fsdp_comm *comm = s->env->comm;
    const fsdp_device *d = s->env->device;
    fsdp_collective c = {};

    c.size = sizeof c;
    c.kind = kind;
    c.dim = dim;
    c.dtype = FSDP_DTYPE_F32;
    c.fold = s->options.fold;
    c.unit = u;
    c.n = s->unit[u].chunk;
    c.in = in;
    c.out = out;
    if (!comm->takes_streams) { /* it reads at once what the stream makes */
        FSDP_TRY(d->wait(d->self, nullptr, s->env->compute, 0,
                         "compute->communicator"));
    }
    return comm->run(comm->self, s->env->compute, &c);
}

/* ---- Windows ----------------------------------------------------------- */

int unshard(Sharded *s, uint32_t u)
{
    Unit &x = s->unit[u];

    if (s->shards > 1 && !x.full.p) {
        FSDP_TRY(make(s, FSDP_PARAM_FULL, u, x.chunk * s->shards, &x.full));
        FSDP_TRY(collective(s, FSDP_ALL_GATHER, FSDP_DIM_SHARD, u, x.shard.p,
                            x.full.p));
    }
    x.open = true;
    return FSDP_OK;
}

void reshard(Sharded *s, uint32_t u)
{
    drop(s, &s->unit[u].full);
    s->unit[u].open = false;
}

/* Padding, and parameters that get no gradient, contribute +0. */
int open_window(Sharded *s, uint32_t u, bool backward)
{
    Unit &x = s->unit[u];

    FSDP_TRY(unshard(s, u));
    if (!backward || x.grad.p) {
        return FSDP_OK;
    }
    FSDP_TRY(make(s, FSDP_GRAD_FULL, u, x.chunk * s->shards, &x.grad));
    return fill_zero(s, x.grad);
}

/* Fold within the shard group, then across replicas, then one product. */
int reduce_into(Sharded *s, uint32_t u, float *to)
{
    const fsdp_device *d = s->env->device;
    const Unit &x = s->unit[u];

    if (s->shards > 1) {
        FSDP_TRY(collective(s, FSDP_REDUCE_SCATTER, FSDP_DIM_SHARD, u, x.grad.p,
                            to));
    } else {
        FSDP_TRY(d->copy(d->self, s->env->compute, to, x.grad.p,
                         x.chunk * sizeof *to));
    }
    if (s->replicas > 1) {
        FSDP_TRY(collective(s, FSDP_ALL_REDUCE, FSDP_DIM_REPLICATE, u, to, to));
    }
    return run(s, FSDP_OP_SCALE, x.chunk, x.scale, 0.0f, to, nullptr, to);
}

/* The first reduction since zero_grad is the gradient shard; a later one is
 * added to it. */
int reduce(Sharded *s, uint32_t u)
{
    Unit &x = s->unit[u];
    Range staging;
    int status;

    if (!x.grad_shard.p) {
        FSDP_TRY(make(s, FSDP_GRAD_SHARD, u, x.chunk, &x.grad_shard));
        return reduce_into(s, u, x.grad_shard.p);
    }
    FSDP_TRY(make(s, FSDP_STAGING, u, x.chunk, &staging));
    status = reduce_into(s, u, staging.p);
    if (status == FSDP_OK) {
        status = run(s, FSDP_OP_ADD, x.chunk, 0.0f, 0.0f, x.grad_shard.p,
                     staging.p, x.grad_shard.p);
    }
    drop(s, &staging);
    return status;
}

int close_window(Sharded *s, uint32_t u, bool backward)
{
    reshard(s, u);
    if (!backward || !s->sync) {
        return FSDP_OK;
    }
    FSDP_TRY(reduce(s, u));
    drop(s, &s->unit[u].grad);
    for (Parameter &p : s->parameter) {
        p.accumulated = p.accumulated && p.unit != u;
    }
    return FSDP_OK;
}

/* ---- Gradients --------------------------------------------------------- */

/* The first gradient of a step is kept, later ones are added to it. */
int take_gradients(Sharded *s, uint32_t module)
{
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        Parameter &x = s->parameter[p];

        if (s->model->parameter_module[p] != module) {
            continue;
        }
        if (x.staging.p) {
            float *sum = s->unit[x.unit].grad.p + x.offset;
            FSDP_TRY(run(s, FSDP_OP_ADD, x.numel, 0.0f, 0.0f, sum, x.staging.p,
                         sum));
            drop(s, &x.staging);
        }
        x.accumulated = x.accumulated || x.lent;
        x.lent = false;
    }
    return FSDP_OK;
}

void drop_gradients(Sharded *s)
{
    for (Unit &x : s->unit) {
        drop(s, &x.grad);
        drop(s, &x.grad_shard);
    }
    for (Parameter &p : s->parameter) {
        drop(s, &p.staging);
        p.accumulated = p.lent = false;
    }
}

/* ---- Points ------------------------------------------------------------ */

int begin(Sharded *s, uint32_t index)
{
    if (s->sequence || s->summoned || index >= s->model->n_sequences) {
        return fail(s->env, FSDP_ERR_INVALID,
                    "BEGIN: in a pass, between unshard_all and reshard_all, or "
                    "of an unknown sequence");
    }
    s->sequence = s->model->sequence[index];
    s->index = index;
    s->next = 0;
    s->sync = s->next_sync;
    return FSDP_OK;
}

int cancel(Sharded *s)
{
    if (!s->sequence) {
        return fail(s->env, FSDP_ERR_INVALID, "CANCEL at rest");
    }
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        reshard(s, u);
    }
    drop_gradients(s);
    std::fill(s->in_backward.begin(), s->in_backward.end(), false);
    s->sequence = nullptr;
    return FSDP_OK;
}

int end(Sharded *s, uint32_t index)
{
    if (!s->sequence || s->index != index || s->next != s->sequence->n) {
        return fail(s->env, FSDP_ERR_INVALID, "END before the last point");
    }
    s->sequence = nullptr;
    return FSDP_OK;
}

int pass_point(Sharded *s, uint32_t point, uint32_t module)
{
    const fsdp_sequence *q = s->sequence;
    uint32_t i = s->next;
    uint32_t u;
    Action does;

    if (!q || i >= q->n || q->point[i] != point || q->module[i] != module) {
        return fail(s->env, FSDP_ERR_INVALID, "this point is not the next one");
    }
    s->next++;
    does = s->plan[s->index][i];
    u = s->units->unit_of_module[module];
    if (does.opens) {
        FSDP_TRY(open_window(s, u, does.backward));
    }
    if (point == FSDP_PRE_BACKWARD) {
        s->in_backward[module] = true;
    } else if (point == FSDP_POST_BACKWARD) {
        s->in_backward[module] = false;
        FSDP_TRY(take_gradients(s, module));
    }
    return does.closes ? close_window(s, u, does.backward) : FSDP_OK;
}

int at(Sharded *s, uint32_t point, uint32_t index)
{
    switch (point) {
    case FSDP_BEGIN:
        return begin(s, index);
    case FSDP_END:
        return end(s, index);
    case FSDP_CANCEL:
        return cancel(s);
    default:
        return pass_point(s, point, index);
    }
}

/* ---- What the model asks for ------------------------------------------- */

int lend(const Sharded *s, uint32_t p, float *data, fsdp_tensor *out)
{
    int64_t stride = 1;

    *out = {};
    out->data = data;
    out->dtype = FSDP_DTYPE_F32;
    out->place = s->env->device->place;
    out->n_dims = s->model->parameter_n_dims[p];
    for (uint32_t d = out->n_dims; d-- > 0;) {
        out->shape[d] = s->model->parameter_shape[p][d];
        out->stride[d] = stride;
        stride *= static_cast<int64_t>(out->shape[d]);
    }
    return FSDP_OK;
}

int param(Sharded *s, uint32_t p, fsdp_tensor *out)
{
    if (p >= s->parameter.size() || !s->unit[s->parameter[p].unit].open) {
        return fail(s->env, FSDP_ERR_INVALID,
                    "param: unknown, or its unit is sharded");
    }
    const Unit &x = s->unit[s->parameter[p].unit];
    return lend(s, p,
                (s->shards > 1 ? x.full.p : x.shard.p) + s->parameter[p].offset,
                out);
}

int grad(Sharded *s, uint32_t p, fsdp_tensor *out)
{
    if (p >= s->parameter.size() ||
        !s->in_backward[s->model->parameter_module[p]]) {
        return fail(s->env, FSDP_ERR_INVALID,
                    "grad: unknown, or not in its module's backward");
    }
    Parameter &x = s->parameter[p];
    if (x.accumulated && !x.staging.p) {
        FSDP_TRY(make(s, FSDP_STAGING, x.unit, x.numel, &x.staging));
    }
    x.lent = true;
    return lend(s, p,
                x.staging.p ? x.staging.p : s->unit[x.unit].grad.p + x.offset,
                out);
}

/* ---- Between passes ---------------------------------------------------- */

/* n = 0: this rank owns nothing of it. */
Own owned(const Sharded *s, uint32_t p)
{
    const Parameter &x = s->parameter[p];
    uint64_t chunk = s->unit[x.unit].chunk;
    uint64_t low = s->coordinate * chunk;
    uint64_t first = std::max(x.offset, low);
    uint64_t last = std::min(x.offset + x.numel, low + chunk);

    return first < last ? Own{first - x.offset, last - first, first - low}
                        : Own{0, 0, 0};
}

int set_gradient_sync(Sharded *s, uint32_t on)
{
    s->next_sync = on != 0;
    return FSDP_OK;
}

int step(Sharded *s, fsdp_step *how)
{
    if (s->sequence || how->n_groups > 1) {
        return fail(s->env, FSDP_ERR_INVALID,
                    "step: in a pass, or with more groups than one");
    }
    if (how->inverse_scale != 0.0f && how->inverse_scale != 1.0f) {
        return fail(s->env, FSDP_ERR_UNSUPPORTED, "loss-scale is not claimed");
    }
    for (const Unit &x : s->unit) {
        if (x.grad.p) {
            return fail(s->env, FSDP_ERR_INVALID,
                        "step: gradients wait for a pass with sync");
        }
    }
    how->found_inf = 0;
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        const Unit &x = s->unit[s->parameter[p].unit];
        Own own = owned(s, p);
        bool decays = how->weight_decay &&
                      !(s->model->parameter_flags[p] & FSDP_NO_DECAY);

        if (own.n > 0 && x.grad_shard.p) {
            float *w = x.shard.p + own.local;
            FSDP_TRY(run(s, FSDP_OP_SGD, own.n, how->lr[0],
                         decays ? how->weight_decay[0] : 0.0f, w,
                         x.grad_shard.p + own.local, w));
        }
    }
    return FSDP_OK;
}

int zero_grad(Sharded *s)
{
    if (s->sequence) {
        return fail(s->env, FSDP_ERR_INVALID, "zero_grad during a pass");
    }
    drop_gradients(s);
    return FSDP_OK;
}

int pieces(Sharded *s, void (*visit)(void *, const fsdp_piece *), void *context)
{
    if (s->sequence) {
        return fail(s->env, FSDP_ERR_INVALID, "pieces during a pass");
    }
    FSDP_TRY(s->env->device->sync(s->env->device->self, nullptr));
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        const Unit &x = s->unit[s->parameter[p].unit];
        Own own = owned(s, p);
        fsdp_piece piece = {};

        if (own.n > 0) {
            piece.size = sizeof piece;
            piece.parameter = p;
            piece.first = own.first;
            piece.n = own.n;
            piece.value = x.shard.p + own.local;
            piece.grad = x.grad_shard.p ? x.grad_shard.p + own.local : nullptr;
            visit(context, &piece);
        }
    }
    return FSDP_OK;
}

int unshard_all(Sharded *s)
{
    if (s->sequence || s->summoned) {
        return fail(s->env, FSDP_ERR_INVALID,
                    "unshard_all: in a pass, or called twice");
    }
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        FSDP_TRY(unshard(s, u));
    }
    s->summoned = true;
    return FSDP_OK;
}

int reshard_all(Sharded *s)
{
    if (!s->summoned) {
        return fail(s->env, FSDP_ERR_INVALID,
                    "reshard_all without unshard_all");
    }
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        reshard(s, u);
    }
    s->summoned = false;
    return FSDP_OK;
}

/* ---- Shard ------------------------------------------------------------- */

int check_options(const fsdp_env *env, const fsdp_options *o)
{
    const fsdp_mesh *mesh = env->mesh;

    if (mesh->n_dims != 2 || mesh->extent[0] == 0 || mesh->extent[1] == 0 ||
        uint64_t{mesh->extent[0]} * mesh->extent[1] != env->world) {
        return fail(env, FSDP_ERR_INVALID, "the mesh is not the world");
    }
    if (o->fold > FSDP_FOLD_TREE || !(o->divide_factor >= 0.0f) ||
        std::isinf(o->divide_factor)) {
        return fail(env, FSDP_ERR_INVALID, "fold or divide_factor");
    }
    if (o->layout != FSDP_LAYOUT_FLAT || o->optimizer != FSDP_OPTIMIZER_SGD ||
        o->n_groups > 1 || o->offload || o->param_dtype > FSDP_DTYPE_F32 ||
        o->reduce_dtype > FSDP_DTYPE_F32 || o->output_dtype > FSDP_DTYPE_F32 ||
        o->buffer_dtype > FSDP_DTYPE_F32) {
        return fail(env, FSDP_ERR_UNSUPPORTED,
                    "claimed are flat, sgd, one group, float32");
    }
    if (o->prefetch_forward || o->prefetch_backward || o->reduces_in_flight) {
        return fail(env, FSDP_ERR_UNSUPPORTED, "prefetch is not claimed");
    }
    return FSDP_OK;
}

int check_model(const fsdp_env *env, const fsdp_model *model,
                const fsdp_units *units)
{
    for (uint32_t u = 0; u < units->n_units; u++) {
        if ((units->param_dtype && units->param_dtype[u]) ||
            (units->reduce_dtype && units->reduce_dtype[u]) ||
            (units->offload && units->offload[u] == 1)) {
            return fail(env, FSDP_ERR_UNSUPPORTED, "a unit is special");
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

void lay_out(Sharded *s)
{
    const float *own = s->units->divide_factor;

    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        Parameter &x = s->parameter[p];
        x.unit = s->units->unit_of_module[s->model->parameter_module[p]];
        x.numel = fsdp_numel(s->model, p);
        x.offset = s->unit[x.unit].numel;
        s->unit[x.unit].numel += x.numel;
    }
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        Unit &x = s->unit[u];
        float divide =
            own && own[u] != 0.0f ? own[u] : s->options.divide_factor;
        x.chunk = x.numel / s->shards + (x.numel % s->shards != 0);
        x.scale = 1.0f /
                  (divide != 0.0f ? divide : static_cast<float>(s->env->world));
    }
}

/* Ranks that disagree would mix up parameters silently. */
int agree(const Sharded *s)
{
    const fsdp_env *env = s->env;
    std::vector<uint64_t> all(env->world);
    fsdp_options o = s->options;
    uint64_t mine = 0xcbf29ce484222325u;
    auto hash = [&mine](const void *bytes, size_t n) {
        for (size_t i = 0; i < n; i++) {
            mine ^= static_cast<const unsigned char *>(bytes)[i];
            mine *= 0x100000001b3u;
        }
    };

    o.group_of_parameter = nullptr;
    hash(&o, sizeof o);
    hash(s->units->unit_of_module, s->model->n_modules * sizeof(uint32_t));
    for (const Parameter &p : s->parameter) {
        hash(&p.offset, sizeof p.offset);
    }
    FSDP_TRY(env->exchange(env->exchange_self, &mine, sizeof mine, all.data()));
    for (uint64_t other : all) {
        if (other != all[0]) {
            return fail(env, FSDP_ERR_MISMATCH, "ranks shard differently");
        }
    }
    return FSDP_OK;
}

bool kept(const Sharded *s, uint32_t u)
{
    const uint32_t *own = s->units->reshard_after_forward;

    if (s->options.keep_root && u == s->units->unit_of_module[0]) {
        return true;
    }
    return own && own[u] ? own[u] == 2 : !s->options.reshard_after_forward;
}

/* In each phase a unit has one window, from its first point to its last; one
 * that is kept closes with its next backward window, if there is one. */
std::vector<Action> make_plan(const Sharded *s, const fsdp_sequence *q)
{
    std::vector<Action> plan(q->n);
    std::vector<uint32_t> last(s->units->n_units); /* 1 + its last point */
    std::vector<uint32_t> phase_of(s->units->n_units);
    std::vector<bool> later(s->units->n_units); /* a backward is to come */
    uint32_t phase = 1;

    for (uint32_t i = 0; i < q->n; i++) {
        uint32_t u = s->units->unit_of_module[q->module[i]];
        plan[i].backward =
            q->point[i] != FSDP_PRE_FORWARD && q->point[i] != FSDP_POST_FORWARD;
        phase += i > 0 && plan[i].backward != plan[i - 1].backward;
        if (u == FSDP_NO_UNIT) {
            continue;
        }
        plan[i].opens = phase_of[u] != phase;
        plan[i].closes = !plan[i].opens;
        if (!plan[i].opens) {
            plan[last[u]].closes = false;
        }
        phase_of[u] = phase;
        last[u] = i;
    }
    for (uint32_t i = q->n; i-- > 0;) {
        uint32_t u = s->units->unit_of_module[q->module[i]];
        if (u != FSDP_NO_UNIT) {
            plan[i].closes = plan[i].closes &&
                             !(!plan[i].backward && later[u] && kept(s, u));
            later[u] = later[u] || plan[i].backward;
        }
    }
    return plan;
}

/* Slice by slice: no rank ever holds a whole model. */
int initialise(Sharded *s, uint32_t p)
{
    const fsdp_device *d = s->env->device;
    Own own = owned(s, p);
    float *to = s->unit[s->parameter[p].unit].shard.p + own.local;
    float slice[1024];

    for (uint64_t done = 0; done < own.n;) {
        uint64_t n = std::min<uint64_t>(own.n - done, 1024);
        FSDP_TRY(s->model->initial(s->model->context, p, own.first + done, n,
                                   slice));
        FSDP_TRY(d->copy(d->self, nullptr, to + done, slice, n * sizeof *to));
        done += n;
    }
    return FSDP_OK;
}

int shard_model(Sharded *s)
{
    lay_out(s);
    FSDP_TRY(agree(s));
    for (uint32_t k = 0; k < s->model->n_sequences; k++) {
        s->plan.push_back(make_plan(s, s->model->sequence[k]));
    }
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        Unit &x = s->unit[u];
        FSDP_TRY(make(s, FSDP_PARAM_SHARD, u, x.chunk, &x.shard));
        FSDP_TRY(fill_zero(s, x.shard));
    }
    FSDP_TRY(s->env->device->sync(s->env->device->self, s->env->compute));
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        FSDP_TRY(initialise(s, p));
    }
    return FSDP_OK;
}

/* No exception leaves an engine: its callers are written in C. */
int shard(const fsdp_env *env, const fsdp_model *model, const fsdp_units *units,
          const fsdp_options *options, fsdp_sharded **out)
{
    *out = nullptr;
    FSDP_TRY(check_options(env, options));
    FSDP_TRY(check_model(env, model, units));
    try {
        Sharded *s = *out = new Sharded;
        s->env = env;
        s->model = model;
        s->units = units;
        s->options = *options;
        s->replicas = env->mesh->extent[FSDP_DIM_REPLICATE];
        s->shards = env->mesh->extent[FSDP_DIM_SHARD];
        s->coordinate = env->rank % s->shards;
        s->unit.resize(units->n_units);
        s->parameter.resize(model->n_parameters);
        s->in_backward.resize(model->n_modules);
        return shard_model(s);
    } catch (const std::bad_alloc &) {
        return fail(env, FSDP_ERR_NOMEM, "no memory for the engine's tables");
    }
}

void destroy(fsdp_sharded *s)
{
    if (s) {
        drop_gradients(s);
        for (Unit &x : s->unit) {
            drop(s, &x.full);
            drop(s, &x.shard);
        }
        delete s;
    }
}

const char *const claims[] = {
    "flat",      "full-shard",    "shard-grad-op",
    "no-shard",  "hybrid-shard",  "hybrid-shard-zero2",
    "keep-root", "no-sync",       "eval",
    "cancel",    "unshard-all",   "sgd",
    "fold-rank", "fold-ring",     "fold-tree",
    "f32-fma",   "strict-memory", nullptr};

} // namespace

extern "C" const fsdp_engine *fsdp_engine_v1(void)
{
    static const fsdp_engine engine = [] {
        fsdp_engine e = {};
        e.size = sizeof e;
        e.abi = FSDP_ABI_VERSION;
        e.name = "strict";
        e.version = "0.1.0";
        e.claims = claims;
        e.shard = shard;
        e.at = at;
        e.param = param;
        e.grad = grad;
        e.set_gradient_sync = set_gradient_sync;
        e.step = step;
        e.zero_grad = zero_grad;
        e.pieces = pieces;
        e.unshard_all = unshard_all;
        e.reshard_all = reshard_all;
        e.destroy = destroy;
        return e;
    }();

    return &engine;
}
