/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutant_faults.c - the faults that the kit can do by itself, which a mutant's
 * row names (enum mutant_fault_kind), and forgotten waits.
 */
#include "mutants/mutant_kit.h"

#include <string.h>

enum {
    STALE_UNITS = 8, /* how much of the first all-gathers is remembered */
    STALE_FLOATS = 16,
    SLOTS = 128, /* most held values that are followed at once */
};

static _Thread_local struct {
    const struct mutant *m;
    bool known[STALE_UNITS];
    float stale[STALE_UNITS][STALE_FLOATS];
    bool doubles;
    void *ballast;
    uint64_t ballast_bytes; /* of this rank's shards */
    bool released;          /* destroy has begun: nothing is held any more */
    uint32_t n_slots;
    struct {
        void *p;
        bool held;
    } slot[SLOTS];
} my;

static bool is_of(uint32_t kind)
{
    return kind == my.m->fault.of;
}

static bool is_time(void)
{
    return !my.m->when || my.m->when();
}

/* ---- Operators and collectives: too few, too many ---------------------- */

static int leave_out_op(void *self, struct fsdp_stream *stream,
                        const struct fsdp_op *op)
{
    (void)self;
    return is_of(op->kind) && is_time() ? FSDP_OK : mutant_run(stream, op);
}

static int repeat_op(void *self, struct fsdp_stream *stream,
                     const struct fsdp_op *op)
{
    (void)self;
    if (is_of(op->kind) && is_time()) {
        FSDP_TRY(mutant_run(stream, op));
    }
    return mutant_run(stream, op);
}

static int leave_out_collective(void *self, struct fsdp_stream *stream,
                                const struct fsdp_collective *c)
{
    (void)self;
    return is_of(c->kind) && is_time() ? FSDP_OK
                                       : mutant_communicate(stream, c);
}

static int repeat_collective(void *self, struct fsdp_stream *stream,
                             const struct fsdp_collective *c)
{
    (void)self;
    if (is_of(c->kind) && is_time()) {
        FSDP_TRY(mutant_communicate(stream, c));
    }
    return mutant_communicate(stream, c);
}

static int bring_zeros(void *self, struct fsdp_stream *stream,
                       const struct fsdp_collective *c)
{
    const float zero = 0.0f;

    (void)self;
    FSDP_TRY(mutant_communicate(stream, c));
    for (uint64_t i = 0; is_of(c->kind) && is_time() && i < c->n; i++) {
        FSDP_TRY(mutant_put(stream, &zero, 1, (float *)c->out + i));
    }
    return FSDP_OK;
}

static int meet_at_end(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    struct fsdp_collective c = {.size = sizeof(c),
                                .kind = (uint32_t)my.m->fault.of,
                                .dim = FSDP_DIM_WORLD,
                                .dtype = FSDP_DTYPE_F32,
                                .unit = FSDP_NO_UNIT};

    FSDP_TRY(mutant_real.engine.at(s, point, index));
    return point == FSDP_END ? mutant_communicate(NULL, &c) : FSDP_OK;
}

static int gather_stale(void *self, struct fsdp_stream *stream,
                        const struct fsdp_collective *c)
{
    uint64_t n = c->n < STALE_FLOATS ? c->n : STALE_FLOATS;

    (void)self;
    FSDP_TRY(mutant_communicate(stream, c));
    if (c->kind != FSDP_ALL_GATHER || c->unit >= STALE_UNITS) {
        return FSDP_OK;
    }
    if (!my.known[c->unit]) {
        my.known[c->unit] = true;
        return mutant_get(stream, c->out, n, my.stale[c->unit]);
    }
    return is_time() ? mutant_put(stream, my.stale[c->unit], n, c->out)
                     : FSDP_OK;
}

/* ---- Giving back late -------------------------------------------------- */

/* The slot of a value; n_slots: it is not followed. */
static uint32_t find(const void *p)
{
    uint32_t i = 0;

    while (i < my.n_slots && my.slot[i].p != p) {
        i++;
    }
    return i;
}

static void hold_live(void *self, struct fsdp_stream *stream, uint32_t kind,
                      uint32_t unit, void *p, uint64_t bytes)
{
    if (is_of(kind) && bytes && my.n_slots < SLOTS) {
        my.slot[my.n_slots].p = p;
        my.slot[my.n_slots++].held = false;
    }
    mutant_real.device->live(self, stream, kind, unit, p, bytes);
}

static void hold_dead(void *self, struct fsdp_stream *stream, void *p)
{
    uint32_t i = find(p);

    if (i < my.n_slots && !my.released && is_time()) {
        my.slot[i].held = true;
        return;
    }
    if (i < my.n_slots) {
        my.slot[i] = my.slot[--my.n_slots];
    }
    mutant_real.device->dead(self, stream, p);
}

static void hold_free(void *self, void *p)
{
    uint32_t i = find(p);

    if (i == my.n_slots || !my.slot[i].held) {
        mutant_real.device->free(self, p);
    }
}

static void let_go(void)
{
    const struct fsdp_device *d = mutant_real.device;

    for (uint32_t i = my.n_slots; i-- > 0;) {
        if (my.slot[i].held) {
            d->dead(d->self, NULL, my.slot[i].p);
            d->free(d->self, my.slot[i].p);
            my.slot[i] = my.slot[--my.n_slots];
        }
    }
}

/* Gives back held values: before BEGIN, so that a pass begins at rest, or after
 * any other point. */
static int hold_at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    const bool ends = point == my.m->fault.to;
    int status;

    if (ends && point == FSDP_BEGIN) {
        let_go();
    }
    status = mutant_real.engine.at(s, point, index);
    if (ends && point != FSDP_BEGIN) {
        let_go();
    }
    return status;
}

static void hold_destroy(struct fsdp_sharded *s)
{
    my.released = true;
    let_go();
    mutant_real.engine.destroy(s);
    my.released = false;
}

static void hold(struct fsdp_env *env, struct fsdp_engine *engine)
{
    struct fsdp_device *d = mutant_device(env);

    d->live = hold_live;
    d->dead = hold_dead;
    d->free = hold_free;
    engine->at = hold_at;
    engine->destroy = hold_destroy;
}

/* ---- Values that need not be there, or go by another name -------------- */

static void drop_ballast(void)
{
    const struct fsdp_device *d = mutant_real.device;

    d->dead(d->self, NULL, my.ballast);
    d->free(d->self, my.ballast);
    my.ballast = NULL;
}

static void ballast_live(void *self, struct fsdp_stream *stream, uint32_t kind,
                         uint32_t unit, void *p, uint64_t bytes)
{
    my.ballast_bytes += kind == FSDP_PARAM_SHARD ? bytes : 0;
    mutant_real.device->live(self, stream, kind, unit, p, bytes);
}

static int ballast_at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    const struct fsdp_device *d = mutant_real.device;

    FSDP_TRY(mutant_real.engine.at(s, point, index));
    if (point == FSDP_BEGIN) {
        FSDP_TRY(d->alloc(d->self, my.ballast_bytes, &my.ballast));
        d->live(d->self, NULL, (uint32_t)my.m->fault.of, FSDP_NO_UNIT,
                my.ballast, my.ballast_bytes);
    } else if (point == FSDP_END || point == FSDP_CANCEL) {
        drop_ballast();
    }
    return FSDP_OK;
}

static void ballast_destroy(struct fsdp_sharded *s)
{
    drop_ballast();
    my.ballast_bytes = 0;
    mutant_real.engine.destroy(s);
}

static void misname_live(void *self, struct fsdp_stream *stream, uint32_t kind,
                         uint32_t unit, void *p, uint64_t bytes)
{
    uint32_t as = is_of(kind) ? (uint32_t)my.m->fault.to : kind;

    if (as != FSDP_N_KINDS) {
        mutant_real.device->live(self, stream, as, unit, p, bytes);
    }
}

/* ---- Refusals that are not told ---------------------------------------- */

static int forgive(int status)
{
    return status == (int)my.m->fault.to && is_time() ? FSDP_OK : status;
}

static int forgive_shard(const struct fsdp_env *env,
                         const struct fsdp_model *model,
                         const struct fsdp_units *units,
                         const struct fsdp_options *options,
                         struct fsdp_sharded **out)
{
    return forgive(mutant_real.engine.shard(env, model, units, options, out));
}

static int forgive_at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    return forgive(mutant_real.engine.at(s, point, index));
}

static int forgive_param(struct fsdp_sharded *s, uint32_t p,
                         struct fsdp_tensor *out)
{
    mutant_now.parameter = p;
    return forgive(mutant_real.engine.param(s, p, out));
}

static int forgive_grad(struct fsdp_sharded *s, uint32_t p,
                        struct fsdp_tensor *out)
{
    return forgive(mutant_real.engine.grad(s, p, out));
}

static int forgive_step(struct fsdp_sharded *s, struct fsdp_step *how)
{
    return forgive(mutant_real.engine.step(s, how));
}

static int forgive_pieces(struct fsdp_sharded *s,
                          void (*visit)(void *context,
                                        const struct fsdp_piece *piece),
                          void *context)
{
    return forgive(mutant_real.engine.pieces(s, visit, context));
}

static int forgive_load(struct fsdp_sharded *s, const char *directory)
{
    return forgive(mutant_real.engine.load(s, directory));
}

static int forgive_clip(struct fsdp_sharded *s, const struct fsdp_clip *how,
                        float *out_norm)
{
    return forgive(mutant_real.engine.clip_grad_norm(s, how, out_norm));
}

static int forgive_set(struct fsdp_sharded *s, uint32_t unit, uint32_t knob,
                       float value)
{
    return forgive(mutant_real.engine.set(s, unit, knob, value));
}

static int forgive_set_step(struct fsdp_sharded *s,
                            const struct fsdp_step *step)
{
    return forgive(mutant_real.engine.set_step(s, step));
}

static int forgive_assign(struct fsdp_sharded *s, uint32_t p, uint64_t first,
                          uint64_t n, const void *host)
{
    return forgive(mutant_real.engine.assign(s, p, first, n, host));
}

static int forgive_summon(struct fsdp_sharded *s, const struct fsdp_summon *how)
{
    return forgive(mutant_real.engine.summon(s, how));
}

static int forgive_send(struct fsdp_sharded *s, const struct fsdp_values *from)
{
    return forgive(mutant_real.engine.send_values(s, from));
}

/* Puts a function that forgives into its place in the engine, whichever that
 * is. */
static void forgive_call(int64_t call, struct fsdp_engine *engine)
{
    static const struct fsdp_engine by = {
        .shard = forgive_shard,
        .at = forgive_at,
        .param = forgive_param,
        .grad = forgive_grad,
        .clip_grad_norm = forgive_clip,
        .step = forgive_step,
        .pieces = forgive_pieces,
        .load = forgive_load,
        .set = forgive_set,
        .set_step = forgive_set_step,
        .assign = forgive_assign,
        .summon = forgive_summon,
        .send_values = forgive_send,
    };

    memcpy((char *)engine + call, (const char *)&by + call, sizeof(by.at));
}

/* ---- Another average --------------------------------------------------- */

static int double_at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    mutant_now.status = mutant_real.engine.at(s, point, index);
    if (is_time()) {
        my.doubles = true;
    } else if (point == FSDP_END) {
        my.doubles = false;
    }
    return mutant_now.status;
}

static int double_run(void *self, struct fsdp_stream *stream,
                      const struct fsdp_op *op)
{
    struct fsdp_op x = *op;

    (void)self;
    if (op->kind == FSDP_OP_SCALE && my.doubles) {
        x.f[0] *= 2.0f;
    }
    return mutant_run(stream, &x);
}

/* ---- Waits ------------------------------------------------------------- */

static int forget_wait(void *self, struct fsdp_stream *later,
                       struct fsdp_stream *earlier, uint64_t ticket,
                       const char *edge)
{
    return strcmp(edge, my.m->forgets) == 0 && is_time()
               ? FSDP_OK
               : mutant_real.device->wait(self, later, earlier, ticket, edge);
}

/* ---- Which of them ----------------------------------------------------- */

static void apply_to_memory(const struct mutant *m, struct fsdp_env *env,
                            struct fsdp_engine *engine)
{
    switch (m->fault.kind) {
    case MUTANT_HOLDS:
        hold(env, engine);
        break;
    case MUTANT_HAS_BALLAST:
        mutant_device(env)->live = ballast_live;
        engine->at = ballast_at;
        engine->destroy = ballast_destroy;
        break;
    case MUTANT_MISNAMES:
        mutant_device(env)->live = misname_live;
        break;
    default:
        break;
    }
}

static void apply_to_numbers(const struct mutant *m, struct fsdp_env *env,
                             struct fsdp_engine *engine)
{
    switch (m->fault.kind) {
    case MUTANT_LEAVES_OUT_OP:
        mutant_device(env)->run = leave_out_op;
        break;
    case MUTANT_REPEATS_OP:
        mutant_device(env)->run = repeat_op;
        break;
    case MUTANT_LEAVES_OUT_COLLECTIVE:
        mutant_comm(env)->run = leave_out_collective;
        break;
    case MUTANT_REPEATS_COLLECTIVE:
        mutant_comm(env)->run = repeat_collective;
        break;
    case MUTANT_BRINGS_ZEROS:
        mutant_comm(env)->run = bring_zeros;
        break;
    case MUTANT_MEETS_AT_END:
        engine->at = meet_at_end;
        break;
    case MUTANT_GATHERS_STALE:
        mutant_comm(env)->run = gather_stale;
        break;
    case MUTANT_DOUBLES_AVERAGE:
        engine->at = double_at;
        mutant_device(env)->run = double_run;
        break;
    default: /* MUTANT_SETS: done where shard is called */
        break;
    }
}

void mutant_fault_apply(const struct mutant *m, struct fsdp_env *env,
                        struct fsdp_engine *engine)
{
    memset(&my, 0, sizeof(my));
    my.m = m;
    if (m->fault.kind == MUTANT_FORGIVES) {
        forgive_call(m->fault.of, engine);
    }
    apply_to_memory(m, env, engine);
    apply_to_numbers(m, env, engine);
    if (m->forgets) {
        mutant_device(env)->wait = forget_wait;
    }
}
