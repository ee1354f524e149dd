/* SPDX-License-Identifier: Apache-2.0 */
/*
 * first_engine.c - a first engine, in C that is also C++: Fully Sharded Data
 * Parallel of one flat parameter a unit, all on the model's stream, nothing
 * ahead. What it grows into, step by step: steps/.
 *
 * Four places are marked by the level that asks for them, from << to >>.
 * `fsdp-cts init` makes an engine to start from that lacks what is there.
 */
#include <fsdp/kit.h>

#include <stdlib.h>

struct unit {
    uint64_t numel, chunk; /* elements; of a shard, with padding */
    float divide;          /* what a reduced gradient is divided by */
    float *shard, *full;   /* full: NULL while there is nothing gathered */
    float *grad;           /* of this rank, not reduced; NULL: none */
    float *grad_shard;     /* reduced; NULL: none */
    bool open;             /* in its window: its parameters can be read */
};

struct parameter {
    uint32_t unit;
    uint64_t numel, offset; /* in the unit's flat parameter */
    bool lent, summed;      /* storage was given; `grad` holds a gradient */
    float *fresh;           /* that storage, where it is added later */
};

struct fsdp_sharded {
    const struct fsdp_env *env;
    const struct fsdp_model *model;
    const struct fsdp_units *units;
    uint32_t fold, shards, me; /* me: this rank's place among the shards */
    struct unit *unit;
    struct parameter *parameter;
    bool *in_backward;     /* by module */
    struct fsdp_walk walk; /* where the model stands */
    bool sync, next_sync;  /* of this pass; from the next one on */
};

static int fail(const struct fsdp_env *env, int status, const char *message)
{
    return fsdp_fail(env, status, "first", message);
}

static struct unit *unit_of(const struct fsdp_sharded *s, uint32_t p)
{
    return &s->unit[s->parameter[p].unit];
}

/* ---- Level 1, layout: which elements are this rank's ------------------- */

/* Elements [first, first + n) of parameter p, at `local` of the shard. */
struct own {
    uint64_t first, n, local;
};

static struct own owned(const struct fsdp_sharded *s, uint32_t p)
{
    const struct parameter *x = &s->parameter[p];
    const uint64_t chunk = unit_of(s, p)->chunk;
    struct own own = {0, 0, 0};

    (void)x, (void)chunk;
    /* layout: the unit's flat parameter is its parameters one after the other,
     * cut into `shards` equal chunks. Say which elements of this parameter
     * (x->numel of them, from x->offset of the flat parameter on) lie in chunk
     * s->me, and where in it. << */
    const uint64_t low = s->me * chunk;
    const uint64_t end = x->offset + x->numel;
    const uint64_t from = x->offset > low ? x->offset : low;
    const uint64_t to = end < low + chunk ? end : low + chunk;

    if (from < to) {
        own.first = from - x->offset;
        own.n = to - from;
        own.local = from - low;
    }
    /* >> */
    return own;
}

static int pieces(struct fsdp_sharded *s,
                  void (*visit)(void *, const struct fsdp_piece *),
                  void *context)
{
    if (s->walk.sequence) {
        return fail(s->env, FSDP_ERR_INVALID, "pieces in a pass");
    }
    FSDP_TRY(s->env->device->sync(s->env->device->self, NULL));
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        const struct unit *u = unit_of(s, p);
        const struct own own = owned(s, p);
        struct fsdp_piece piece;

        memset(&piece, 0, sizeof(piece));
        piece.size = sizeof(piece);
        piece.parameter = p;
        piece.first = own.first;
        piece.n = own.n;
        piece.value = u->shard + own.local;
        piece.grad = u->grad_shard ? u->grad_shard + own.local : NULL;
        if (own.n > 0) {
            visit(context, &piece);
        }
    }
    return FSDP_OK;
}

/* ---- Level 2, gather: a unit in full, in its window -------------------- */

static int unshard(struct fsdp_sharded *s, uint32_t unit)
{
    struct unit *u = &s->unit[unit];

    u->open = true;
    if (s->shards == 1 || u->full) {
        return FSDP_OK; /* the shard is the whole, or it is there already */
    }
    FSDP_TRY(fsdp_make_zero(s->env, FSDP_PARAM_FULL, unit, u->chunk * s->shards,
                            &u->full));
    /* gather: bring the shards of all ranks together in u->full. << */
    FSDP_TRY(fsdp_communicate(s->env, FSDP_ALL_GATHER, FSDP_DIM_SHARD, s->fold,
                              unit, u->chunk, u->shard, u->full));
    /* >> */
    return FSDP_OK;
}

static void reshard(struct fsdp_sharded *s, uint32_t unit)
{
    struct unit *u = &s->unit[unit];

    fsdp_drop(s->env, &u->full, u->chunk * s->shards);
    u->open = false;
}

static int param(struct fsdp_sharded *s, uint32_t p, struct fsdp_tensor *out)
{
    if (p >= s->model->n_parameters || !unit_of(s, p)->open) {
        return fail(s->env, FSDP_ERR_INVALID,
                    "param: unknown, or its unit is sharded");
    }
    const struct unit *u = unit_of(s, p);
    return fsdp_lend(s->env, s->model, p,
                     (u->full ? u->full : u->shard) + s->parameter[p].offset,
                     out);
}

/* ---- Level 3, gradient: where the model writes, and what is summed ----- */

/* The first gradient is written where it belongs; later ones, while that one
 * is not reduced, in storage of their own, which take_gradients adds. */
static int grad(struct fsdp_sharded *s, uint32_t p, struct fsdp_tensor *out)
{
    if (p >= s->model->n_parameters ||
        !s->in_backward[s->model->parameter_module[p]]) {
        return fail(s->env, FSDP_ERR_INVALID,
                    "grad: unknown, or not in its module's backward");
    }
    struct parameter *x = &s->parameter[p];
    float *data = unit_of(s, p)->grad + x->offset;

    x->lent = true;
    if (x->summed && !x->fresh) {
        FSDP_TRY(fsdp_make(s->env, FSDP_STAGING, x->unit, x->numel, &x->fresh));
    }
    data = x->fresh ? x->fresh : data;
    return fsdp_lend(s->env, s->model, p, data, out);
}

static int take_gradients(struct fsdp_sharded *s, uint32_t module)
{
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        struct parameter *x = &s->parameter[p];
        float *sum = unit_of(s, p)->grad + x->offset;

        if (s->model->parameter_module[p] != module) {
            continue;
        }
        if (x->fresh) {
            FSDP_TRY(fsdp_run(s->env, FSDP_OP_ADD, x->numel, 0.0f, 0.0f, sum,
                              x->fresh, sum));
            fsdp_drop(s->env, &x->fresh, x->numel);
        }
        x->summed = x->summed || x->lent;
        x->lent = false;
    }
    return FSDP_OK;
}

static void drop_gradients(struct fsdp_sharded *s)
{
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        struct parameter *x = &s->parameter[p];

        fsdp_drop(s->env, &x->fresh, x->numel);
        x->lent = x->summed = false;
    }
    for (uint32_t i = 0; i < s->units->n_units; i++) {
        struct unit *u = &s->unit[i];

        fsdp_drop(s->env, &u->grad, u->chunk * s->shards);
        fsdp_drop(s->env, &u->grad_shard, u->chunk);
    }
}

/* ---- Level 4, reduce: gradients of all ranks, each rank its shard ------ */

static int reduce_into(struct fsdp_sharded *s, uint32_t unit, float *to)
{
    const struct fsdp_device *d = s->env->device;
    const struct unit *u = &s->unit[unit];

    if (s->shards == 1) {
        FSDP_TRY(d->copy(d->self, s->env->compute, to, u->grad,
                         u->chunk * sizeof(*to)));
    } else {
        FSDP_TRY(fsdp_run(s->env, FSDP_OP_FILL, u->chunk, 0.0f, 0.0f, NULL,
                          NULL, to));
        /* reduce: fold u->grad of all ranks, each rank its chunk, into `to`;
         * what is divided, is divided once, behind this. << */
        FSDP_TRY(fsdp_communicate(s->env, FSDP_REDUCE_SCATTER, FSDP_DIM_SHARD,
                                  s->fold, unit, u->chunk, u->grad, to));
        /* >> */
    }
    return fsdp_run(s->env, FSDP_OP_SCALE, u->chunk, 1.0f / u->divide, 0.0f, to,
                    NULL, to);
}

/* The first reduction since zero_grad is the gradient; later ones are added. */
static int reduce(struct fsdp_sharded *s, uint32_t unit)
{
    struct unit *u = &s->unit[unit];
    float *later = NULL;
    int status;

    if (!u->grad_shard) {
        FSDP_TRY(
            fsdp_make(s->env, FSDP_GRAD_SHARD, unit, u->chunk, &u->grad_shard));
        return reduce_into(s, unit, u->grad_shard);
    }
    FSDP_TRY(fsdp_make(s->env, FSDP_STAGING, unit, u->chunk, &later));
    status = reduce_into(s, unit, later);
    if (status == FSDP_OK) {
        status = fsdp_run(s->env, FSDP_OP_ADD, u->chunk, 0.0f, 0.0f,
                          u->grad_shard, later, u->grad_shard);
    }
    fsdp_drop(s->env, &later, u->chunk);
    return status;
}

static int close_window(struct fsdp_sharded *s, uint32_t unit, bool backward)
{
    struct unit *u = &s->unit[unit];

    reshard(s, unit);
    if (!backward || !s->sync) {
        return FSDP_OK;
    }
    FSDP_TRY(reduce(s, unit));
    fsdp_drop(s->env, &u->grad, u->chunk * s->shards);
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        s->parameter[p].summed =
            s->parameter[p].summed && s->parameter[p].unit != unit;
    }
    return FSDP_OK;
}

/* ---- Level 5, step: the optimizer, on shards alone --------------------- */

static int check_step(const struct fsdp_sharded *s, const struct fsdp_step *how)
{
    if (s->walk.sequence || how->n_groups > 1) {
        return fail(s->env, FSDP_ERR_INVALID,
                    "step: in a pass, or with more groups than one");
    }
    if (how->inverse_scale != 0.0f && how->inverse_scale != 1.0f) {
        return fail(s->env, FSDP_ERR_UNSUPPORTED, "loss-scale is not claimed");
    }
    for (uint32_t i = 0; i < s->units->n_units; i++) {
        if (s->unit[i].grad) {
            return fail(s->env, FSDP_ERR_INVALID,
                        "step: gradients wait for a pass with sync");
        }
    }
    return FSDP_OK;
}

static int step(struct fsdp_sharded *s, struct fsdp_step *how)
{
    FSDP_TRY(check_step(s, how));
    how->found_inf = 0;
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        const struct unit *u = unit_of(s, p);
        const struct own own = owned(s, p);
        const bool decays = how->weight_decay &&
                            !(s->model->parameter_flags[p] & FSDP_NO_DECAY);
        const float decay = decays ? how->weight_decay[0] : 0.0f;

        if (own.n == 0 || !u->grad_shard) {
            continue;
        }
        (void)decay;
        /* step: w = w - lr * (decay * w + gradient), of what this rank owns.
         * << */
        FSDP_TRY(fsdp_run(s->env, FSDP_OP_SGD, own.n, how->lr[0], decay,
                          u->shard + own.local, u->grad_shard + own.local,
                          u->shard + own.local));
        /* >> */
    }
    return FSDP_OK;
}

static int zero_grad(struct fsdp_sharded *s)
{
    if (s->walk.sequence) {
        return fail(s->env, FSDP_ERR_INVALID, "zero_grad in a pass");
    }
    drop_gradients(s);
    return FSDP_OK;
}

static int set_gradient_sync(struct fsdp_sharded *s, uint32_t on)
{
    s->next_sync = on != 0;
    return FSDP_OK;
}

/* ---- Where the model stands -------------------------------------------- */

static int pass(struct fsdp_sharded *s, uint32_t point, uint32_t module)
{
    const uint32_t unit = s->units->unit_of_module[module];
    const bool backward = !fsdp_is_forward(point);

    if (unit != FSDP_NO_UNIT && !s->unit[unit].open) {
        FSDP_TRY(unshard(s, unit));
    }
    if (unit != FSDP_NO_UNIT && backward && !s->unit[unit].grad) {
        FSDP_TRY(fsdp_make_zero(s->env, FSDP_GRAD_FULL, unit,
                                s->unit[unit].chunk * s->shards,
                                &s->unit[unit].grad));
    }
    if (point == FSDP_PRE_BACKWARD) {
        s->in_backward[module] = true;
    } else if (point == FSDP_POST_BACKWARD) {
        s->in_backward[module] = false;
        FSDP_TRY(take_gradients(s, module));
    }
    return unit != FSDP_NO_UNIT && fsdp_window_ends(&s->walk, s->units)
               ? close_window(s, unit, backward)
               : FSDP_OK;
}

static int at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    if (point == FSDP_CANCEL && s->walk.sequence) {
        return fail(s->env, FSDP_ERR_UNSUPPORTED, "cancel is not claimed");
    }
    FSDP_TRY(fsdp_walk_to(s->env, s->model, &s->walk, point, index));
    if (point == FSDP_BEGIN) {
        s->sync = s->next_sync;
    }
    return point == FSDP_BEGIN || point == FSDP_END ? FSDP_OK
                                                    : pass(s, point, index);
}

/* ---- Shard, and destroy ------------------------------------------------ */

static int check(const struct fsdp_env *env, const struct fsdp_options *o)
{
    return env->mesh->extent[FSDP_DIM_REPLICATE] == 1 &&
                   o->reshard_after_forward && !o->keep_root &&
                   o->fold == FSDP_FOLD_RANK && o->layout == FSDP_LAYOUT_FLAT &&
                   o->optimizer == FSDP_OPTIMIZER_SGD
               ? FSDP_OK
               : fail(env, FSDP_ERR_UNSUPPORTED,
                      "shard: claimed are flat, full-shard, fold-rank, sgd");
}

static void lay_out(struct fsdp_sharded *s, float divide)
{
    const float *own = s->units->divide_factor;

    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        struct parameter *x = &s->parameter[p];

        x->unit = s->units->unit_of_module[s->model->parameter_module[p]];
        x->numel = fsdp_numel(s->model, p);
        x->offset = unit_of(s, p)->numel;
        unit_of(s, p)->numel += x->numel;
    }
    for (uint32_t i = 0; i < s->units->n_units; i++) {
        struct unit *u = &s->unit[i];

        u->chunk = u->numel / s->shards + (u->numel % s->shards != 0);
        u->divide = own && own[i] != 0.0f ? own[i] : divide;
    }
}

static int shard(const struct fsdp_env *env, const struct fsdp_model *model,
                 const struct fsdp_units *units,
                 const struct fsdp_options *options, struct fsdp_sharded **out)
{
    struct fsdp_sharded *s = (struct fsdp_sharded *)calloc(1, sizeof(*s));

    *out = s;
    FSDP_TRY(s ? fsdp_agree(env, model, units, options) : FSDP_ERR_NOMEM);
    s->env = env;
    s->model = model;
    s->units = units;
    FSDP_TRY(fsdp_check_shard(env, model, units, options));
    FSDP_TRY(fsdp_check_plain(env, model, units, options));
    FSDP_TRY(check(env, options));
    s->shards = env->mesh->extent[FSDP_DIM_SHARD];
    s->me = env->rank;
    s->fold = options->fold;
    s->next_sync = true;
    s->unit = (struct unit *)calloc(units->n_units, sizeof(*s->unit));
    s->parameter = (struct parameter *)calloc(model->n_parameters + 1u,
                                              sizeof(*s->parameter));
    s->in_backward = (bool *)calloc(model->n_modules, sizeof(bool));
    if (!s->unit || !s->parameter || !s->in_backward) {
        return fail(env, FSDP_ERR_NOMEM, "shard: no memory for tables");
    }
    lay_out(s, options->divide_factor != 0.0f ? options->divide_factor
                                              : (float)env->world);
    for (uint32_t i = 0; i < units->n_units; i++) {
        FSDP_TRY(fsdp_make_zero(env, FSDP_PARAM_SHARD, i, s->unit[i].chunk,
                                &s->unit[i].shard));
    }
    FSDP_TRY(env->device->sync(env->device->self, env->compute));
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        const struct own own = owned(s, p);

        FSDP_TRY(fsdp_initialise(env, model, p, own.first, own.n,
                                 unit_of(s, p)->shard + own.local));
    }
    return FSDP_OK;
}

static void destroy(struct fsdp_sharded *s)
{
    if (s && s->unit && s->parameter) {
        drop_gradients(s);
        for (uint32_t i = 0; i < s->units->n_units; i++) {
            reshard(s, i);
            fsdp_drop(s->env, &s->unit[i].shard, s->unit[i].chunk);
        }
    }
    if (s) {
        free(s->in_backward);
        free(s->parameter);
        free(s->unit);
        free(s);
    }
}

/* ---- The plug-in ------------------------------------------------------- */

#ifdef __cplusplus
extern "C"
#endif
    const struct fsdp_engine *
    fsdp_engine_v1(void)
{
    static const char *const claims[] = {
        "flat",    "full-shard",    "fold-rank", "sgd", "no-sync",
        "f32-fma", "strict-memory", "scripts",   NULL};
    static struct fsdp_engine e;

    e.size = sizeof(e);
    e.abi = FSDP_ABI_VERSION;
    e.name = "first";
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
    e.destroy = destroy;
    return &e;
}
