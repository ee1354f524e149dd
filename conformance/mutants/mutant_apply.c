/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutant_apply.c - puts a mutant between an engine and what the engine uses:
 * the mutant's functions replace the correct ones, and the kit's functions are
 * called before those, to note how far the run has come.
 */
#include "mutants/mutant_kit.h"

#include <stdio.h>
#include <string.h>

_Thread_local struct mutant_real mutant_real;
_Thread_local struct mutant_now mutant_now;
_Thread_local struct fsdp_env mutant_below;

static _Thread_local struct fsdp_comm carried; /* in the place of the world's
                                                * communicator */

static _Thread_local struct {
    const struct mutant *m;
    struct fsdp_comm comm;
    struct fsdp_device device;
    struct fsdp_model model;
    struct fsdp_units units;
    struct fsdp_engine engine; /* the mutant's, without what the kit notes */
    void (*visit)(void *context, const struct fsdp_piece *piece);
    void *context;
} my;

struct fsdp_comm *mutant_comm(struct fsdp_env *env)
{
    if (env->comm != &my.comm) {
        my.comm = *mutant_real.comm;
        env->comm = &my.comm;
    }
    return &my.comm;
}

struct fsdp_device *mutant_device(struct fsdp_env *env)
{
    if (env->device != &my.device) {
        my.device = *mutant_real.device;
        env->device = &my.device;
    }
    return &my.device;
}

int mutant_communicate(struct fsdp_stream *stream,
                       const struct fsdp_collective *c)
{
    return mutant_real.comm->run(mutant_real.comm->self, stream, c);
}

int mutant_carry(struct fsdp_stream *stream, const struct fsdp_collective *c)
{
    return mutant_below.comm->run(mutant_below.comm->self, stream, c);
}

int64_t mutant_of(void)
{
    return my.m->fault.of;
}

void mutant_say(const char *message)
{
    struct fsdp_error *const e = mutant_real.env->error;

    snprintf(e->message, sizeof(e->message), "%s", message);
}

int mutant_run(struct fsdp_stream *stream, const struct fsdp_op *op)
{
    return mutant_real.device->run(mutant_real.device->self, stream, op);
}

/* ---- How far the run has come ------------------------------------------ */

int mutant_initial(void *context, uint32_t p, uint64_t first, uint64_t n,
                   void *out)
{
    const struct fsdp_model *const m = mutant_real.model;

    return m->initial ? m->initial(context, p, first, n, out)
                      : FSDP_ERR_INVALID;
}

int mutant_zeros(void *context, uint32_t p, uint64_t first, uint64_t n,
                 void *out)
{
    (void)context;
    (void)p;
    (void)first;
    memset(out, 0, n * sizeof(float));
    return FSDP_OK;
}

static _Thread_local void *told_room;

static int tell(const struct fsdp_env *env, const struct fsdp_options *options,
                const struct fsdp_model **model,
                const struct fsdp_units **units)
{
    struct mutant_told *t = mutant_room(&told_room, sizeof(*t));
    const uint32_t n = (*model)->n_parameters;

    if (!t || n > MUTANT_MOST_PARAMETERS) {
        return FSDP_ERR_NOMEM;
    }
    t->model = **model;
    t->units = **units;
    t->options = options;
    memcpy(t->flags, (*model)->parameter_flags, n * sizeof(*t->flags));
    memcpy(t->alias, (*model)->parameter_alias, n * sizeof(*t->alias));
    t->model.parameter_flags = t->flags;
    t->model.parameter_alias = t->alias;
    *model = &t->model;
    *units = &t->units;
    return my.m->told(t, env);
}

void mutant_told_units(struct mutant_told *t)
{
    for (uint32_t p = 0; p < t->model.n_parameters; p++) {
        t->unit[p] = fsdp_unit_of(&t->model, &t->units, p);
    }
    t->units.unit_of_parameter = t->unit;
}

static int noting_shard(const struct fsdp_env *env,
                        const struct fsdp_model *model,
                        const struct fsdp_units *units,
                        const struct fsdp_options *options,
                        struct fsdp_sharded **out)
{
    struct fsdp_options o = *options;

    mutant_now.lives++;
    mutant_real.model = model;
    mutant_real.units = units;
    mutant_real.layout = options->layout;
    if (my.m->initial) {
        my.model = *model;
        my.model.initial = my.m->initial;
        model = &my.model;
    }
    if (my.m->fault.kind == MUTANT_UNTELLS) {
        const void *const nothing = NULL;

        my.units = *units;
        memcpy((char *)&my.units + my.m->fault.of, &nothing, sizeof(nothing));
        if (my.m->fault.to != 0) {
            memcpy((char *)&my.units + my.m->fault.to, &nothing,
                   sizeof(nothing));
        }
        units = &my.units;
    }
    if (my.m->fault.kind == MUTANT_SETS) {
        const uint32_t to = (uint32_t)my.m->fault.to;

        memcpy((char *)&o + my.m->fault.of, &to, sizeof(to));
    }
    if (my.m->options) {
        my.m->options(&o);
    }
    if (my.m->told) {
        *out = NULL;
        FSDP_TRY(tell(env, &o, &model, &units));
    }
    return my.engine.shard(env, model, units, &o, out);
}

static int noting_at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    mutant_now.point = point;
    mutant_now.index = index;
    if (point == FSDP_BEGIN) {
        mutant_now.sequence = index;
    } else if (point == FSDP_PRE_FORWARD || point == FSDP_PRE_BACKWARD) {
        mutant_now.backward = point == FSDP_PRE_BACKWARD;
    }
    mutant_now.status = my.engine.at(s, point, index);
    if (mutant_now.status == FSDP_OK) {
        mutant_now.in_pass = point != FSDP_END && point != FSDP_CANCEL;
        mutant_now.stale = mutant_now.stale && mutant_now.in_pass;
    }
    return mutant_now.status;
}

bool mutant_is_in_pass(void)
{
    return mutant_now.in_pass;
}

bool mutant_is_outside_pass(void)
{
    return !mutant_now.in_pass;
}

bool mutant_is_in_forward(void)
{
    return mutant_now.in_pass && (mutant_now.point == FSDP_PRE_FORWARD ||
                                  mutant_now.point == FSDP_POST_FORWARD);
}

bool mutant_finds_copies(void)
{
    return mutant_now.stale && mutant_is_in_forward();
}

bool mutant_is_rank_0(void)
{
    return mutant_real.rank == 0;
}

bool mutant_is_not_rank_0(void)
{
    return mutant_real.rank != 0;
}

bool mutant_is_evaluating(void)
{
    return mutant_now.sequence == FSDP_SEQUENCE_EVAL;
}

bool mutant_is_cancelling(void)
{
    return mutant_now.point == FSDP_CANCEL;
}

static int noting_set(struct fsdp_sharded *s, uint32_t unit, uint32_t knob,
                      float value)
{
    FSDP_TRY(my.engine.set(s, unit, knob, value));
    if (knob == FSDP_KNOB_RESHARD_AFTER_BACKWARD) {
        mutant_now.keeps = value == 0.0f;
    }
    return FSDP_OK;
}

static int noting_step(struct fsdp_sharded *s, struct fsdp_step *how)
{
    int status;

    if (my.m->before_step) {
        my.m->before_step();
    }
    status = my.engine.step(s, how);
    mutant_now.steps++;
    return status;
}

/* ---- What passes through ----------------------------------------------- */

void mutant_tell(const struct fsdp_piece *piece)
{
    my.visit(my.context, piece);
}

static void change_piece(void *context, const struct fsdp_piece *piece)
{
    struct fsdp_piece x = *piece;

    (void)context;
    my.m->piece(&x);
    mutant_tell(&x);
}

static int changing_pieces(struct fsdp_sharded *s,
                           void (*visit)(void *context,
                                         const struct fsdp_piece *piece),
                           void *context)
{
    my.visit = visit;
    my.context = context;
    return mutant_real.engine.pieces(s, change_piece, NULL);
}

static int changing_zero(struct fsdp_sharded *s)
{
    const int status = mutant_real.engine.zero_grad(s);

    my.m->behind_zero();
    return status;
}

static int changing_load(struct fsdp_sharded *s, const char *directory)
{
    FSDP_TRY(mutant_real.engine.load(s, directory));
    return mutant_each_piece(s, my.m->loaded);
}

static int changing_op(void *self, struct fsdp_stream *stream,
                       const struct fsdp_op *op)
{
    struct fsdp_op x = *op;

    (void)self;
    my.m->op(&x);
    return mutant_run(stream, &x);
}

static int changing_collective(void *self, struct fsdp_stream *stream,
                               const struct fsdp_collective *c)
{
    struct fsdp_collective x = fsdp_collective_of(c);

    (void)self;
    if (my.m->collective) {
        my.m->collective(&x);
    }
    if (my.m->contributed && c->kind == FSDP_REDUCE_SCATTER) {
        FSDP_TRY(mutant_each(stream, mutant_input(c), c->n * mutant_real.shards,
                             my.m->contributed));
    }
    FSDP_TRY(mutant_communicate(stream, &x));
    return my.m->gathered && c->kind == FSDP_ALL_GATHER
               ? mutant_each(stream, c->out, c->n * mutant_real.shards,
                             my.m->gathered)
               : FSDP_OK;
}

/* ---- Putting it together ----------------------------------------------- */

/* The kit's own additions to calls of the engine. */
static void change_calls(const struct mutant *m, struct fsdp_engine *e)
{
    if (m->behind_zero) {
        e->zero_grad = changing_zero;
    }
    if (m->piece) {
        e->pieces = changing_pieces;
    }
    if (m->loaded) {
        e->load = changing_load;
    }
}

static void replace_calls(const struct fsdp_engine *by, struct fsdp_engine *e)
{
    e->shard = by->shard ? by->shard : e->shard;
    e->at = by->at ? by->at : e->at;
    e->param = by->param ? by->param : e->param;
    e->grad = by->grad ? by->grad : e->grad;
    e->set_gradient_sync =
        by->set_gradient_sync ? by->set_gradient_sync : e->set_gradient_sync;
    e->set_requires_grad =
        by->set_requires_grad ? by->set_requires_grad : e->set_requires_grad;
    e->clip_grad_norm =
        by->clip_grad_norm ? by->clip_grad_norm : e->clip_grad_norm;
    e->step = by->step ? by->step : e->step;
    e->zero_grad = by->zero_grad ? by->zero_grad : e->zero_grad;
    e->pieces = by->pieces ? by->pieces : e->pieces;
    e->unshard_all = by->unshard_all ? by->unshard_all : e->unshard_all;
    e->reshard_all = by->reshard_all ? by->reshard_all : e->reshard_all;
    e->save_begin = by->save_begin ? by->save_begin : e->save_begin;
    e->save_wait = by->save_wait ? by->save_wait : e->save_wait;
    e->load = by->load ? by->load : e->load;
    e->loaded_extra = by->loaded_extra ? by->loaded_extra : e->loaded_extra;
    e->destroy = by->destroy ? by->destroy : e->destroy;
}

/* Replaces calls that only engines with certain claims have. */
static void replace_claimed(const struct fsdp_engine *by, struct fsdp_engine *e)
{
    e->set = by->set ? by->set : e->set;
    e->unshard = by->unshard ? by->unshard : e->unshard;
    e->reshard = by->reshard ? by->reshard : e->reshard;
    e->buffer = by->buffer ? by->buffer : e->buffer;
    e->set_step = by->set_step ? by->set_step : e->set_step;
    e->assign = by->assign ? by->assign : e->assign;
    e->summon = by->summon ? by->summon : e->summon;
    e->load_from = by->load_from ? by->load_from : e->load_from;
    e->send_values = by->send_values ? by->send_values : e->send_values;
}

static void replace_device(const struct mutant *m, struct fsdp_device *d)
{
    const struct fsdp_device *by = &m->device;

    d->alloc = by->alloc ? by->alloc : d->alloc;
    d->free = by->free ? by->free : d->free;
    d->live = by->live ? by->live : d->live;
    d->dead = by->dead ? by->dead : d->dead;
    d->copy = by->copy ? by->copy : d->copy;
    d->run = by->run ? by->run : m->op ? changing_op : d->run;
    d->wait = by->wait ? by->wait : d->wait;
    d->sync = by->sync ? by->sync : d->sync;
}

static void replace_comm(const struct mutant *m, struct fsdp_comm *c)
{
    if (m->comm.run) {
        c->run = m->comm.run;
    } else if (m->collective || m->contributed || m->gathered) {
        c->run = changing_collective;
    }
}

/* Remembers the real functions, and forgets the run before. */
static void keep(const struct mutant *m, struct fsdp_env *env,
                 const struct fsdp_engine *engine)
{
    memset(&my, 0, sizeof(my));
    my.m = m;
    mutant_now = (struct mutant_now){0};
    mutant_real = (struct mutant_real){
        .env = env,
        .comm = env->comm,
        .device = env->device,
        .engine = *engine,
        .rank = env->rank,
        .world = env->world,
        .replicas = env->mesh->extent[FSDP_DIM_REPLICATE],
        .shards = env->mesh->extent[FSDP_DIM_SHARD],
    };
    if (m->forget) {
        m->forget();
    }
}

void mutant_claims(const struct mutant *m, const char *const *claims,
                   const char **out, uint32_t room)
{
    uint32_t n = 0;

    for (; *claims && n + 1 < room; claims++) {
        const size_t length = strlen(*claims);
        const char *at = m->drops;
        bool dropped = false;

        while (at && !dropped) {
            dropped = strncmp(at, *claims, length) == 0 &&
                      (at[length] == ' ' || at[length] == '\0');
            at = strchr(at, ' ');
            at = at ? at + 1 : NULL;
        }
        if (!dropped) {
            out[n++] = *claims;
        }
    }
    out[n] = NULL;
}

void mutant_apply(const struct mutant *m, struct fsdp_env *env,
                  struct fsdp_engine *engine)
{
    keep(m, env, engine);
    change_calls(m, engine);
    replace_calls(&m->calls, engine);
    replace_claimed(&m->calls, engine);
    replace_device(m, mutant_device(env));
    replace_comm(m, mutant_comm(env));
    mutant_fault_apply(m, env, engine);
    if (m->change_env) {
        m->change_env(env);
    }
    my.engine = *engine;
    engine->shard = noting_shard;
    engine->at = noting_at;
    engine->set = engine->set ? noting_set : NULL;
    engine->step = noting_step;
}

void mutant_apply_below(const struct mutant *m, struct fsdp_env *env)
{
    mutant_below = *env;
    if (m->carried) {
        carried = *env->comm;
        carried.run = m->carried;
        env->comm = &carried;
    }
}

const struct mutant *mutant_named(const char *name)
{
    const struct mutant *const *m = mutants;

    while (name && *m && strcmp((*m)->name, name) != 0) {
        m++;
    }
    return name ? *m : NULL;
}
