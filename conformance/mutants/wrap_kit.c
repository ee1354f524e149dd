/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrap_kit.c - the part of a mutant that is the same in many of them: how it
 * comes between an engine and what the engine uses.
 */
#include "mutants/wrap_kit.h"

#include "models/workload.h"

#include <string.h>

enum {
    BLOCK = 256,     /* floats changed at a time */
    STALE_UNITS = 8, /* mutant_stale: how much is remembered */
    STALE_FLOATS = 16,
    SLOTS = 128, /* mutant_hold: values followed at once */
};

_Thread_local struct mutant_real mutant_real;

static _Thread_local struct {
    struct fsdp_comm comm;
    struct fsdp_device device;
    struct fsdp_model model;
    void (*options)(struct fsdp_options *o);
    int (*initial)(void *context, uint32_t p, uint64_t first, uint64_t n,
                   void *out);
    void (*tell)(const struct mutant_visit *v, const struct fsdp_piece *piece);
    bool known[STALE_UNITS];
    float stale[STALE_UNITS][STALE_FLOATS];
    const char *edge; /* forgotten */
    uint32_t kind;    /* held, or of the ballast */
    bool holding;
    void *ballast;
    uint64_t ballast_bytes; /* of this rank's shards */
    uint32_t n_slots;
    struct {
        void *p;
        bool held;
    } slot[SLOTS];
} my;

void mutant_keep(const struct fsdp_env *env, const struct fsdp_engine *engine)
{
    memset(&my, 0, sizeof my);
    mutant_real = (struct mutant_real){
        .comm = env->comm,
        .device = env->device,
        .engine = *engine,
        .rank = env->rank,
        .world = env->world,
        .replicas = env->mesh->extent[FSDP_DIM_REPLICATE],
        .shards = env->mesh->extent[FSDP_DIM_SHARD],
    };
}

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

int mutant_run(struct fsdp_stream *stream, const struct fsdp_op *op)
{
    return mutant_real.device->run(mutant_real.device->self, stream, op);
}

/* ---- Values ------------------------------------------------------------ */

float *mutant_input(const struct fsdp_collective *c)
{
    /* The engine's own, that it means not to change itself.
     * NOLINTNEXTLINE(performance-no-int-to-ptr) */
    return (float *)(uintptr_t)c->in;
}

int mutant_get(struct fsdp_stream *stream, const void *from, uint64_t n,
               float *to)
{
    const struct fsdp_device *d = mutant_real.device;

    FSDP_TRY(d->copy(d->self, stream, to, from, n * sizeof *to));
    return d->sync(d->self, stream);
}

int mutant_put(struct fsdp_stream *stream, const float *from, uint64_t n,
               void *to)
{
    const struct fsdp_device *d = mutant_real.device;

    FSDP_TRY(d->copy(d->self, stream, to, from, n * sizeof *from));
    return d->sync(d->self, stream);
}

int mutant_each(struct fsdp_stream *stream, void *p, uint64_t n,
                float (*change)(float x))
{
    float *at = p;
    float x[BLOCK];

    for (uint64_t done = 0; done < n; done += BLOCK) {
        uint64_t m = n - done < BLOCK ? n - done : BLOCK;

        FSDP_TRY(mutant_get(stream, at + done, m, x));
        for (uint64_t i = 0; i < m; i++) {
            x[i] = change(x[i]);
        }
        FSDP_TRY(mutant_put(stream, x, m, at + done));
    }
    return FSDP_OK;
}

int mutant_stale(struct fsdp_stream *stream, const struct fsdp_collective *c,
                 bool keep)
{
    uint64_t n = c->n < STALE_FLOATS ? c->n : STALE_FLOATS;

    if (c->unit >= STALE_UNITS) {
        return FSDP_OK;
    }
    if (!my.known[c->unit]) {
        my.known[c->unit] = true;
        return mutant_get(stream, c->out, n, my.stale[c->unit]);
    }
    return keep ? FSDP_OK : mutant_put(stream, my.stale[c->unit], n, c->out);
}

/* ---- What shard is given, what pieces gives ---------------------------- */

static int shard(const struct fsdp_env *env, const struct fsdp_model *model,
                 const struct fsdp_units *units,
                 const struct fsdp_options *options, struct fsdp_sharded **out)
{
    struct fsdp_options o = *options;

    my.model = *model;
    mutant_real.model = model;
    mutant_real.units = units;
    if (my.options) {
        my.options(&o);
    }
    if (my.initial) {
        mutant_real.initial = model->initial;
        my.model.initial = my.initial;
    }
    return mutant_real.engine.shard(env, &my.model, units, &o, out);
}

void mutant_options(struct fsdp_engine *engine,
                    void (*change)(struct fsdp_options *o))
{
    my.options = change;
    engine->shard = shard;
}

void mutant_initial(struct fsdp_engine *engine,
                    int (*initial)(void *context, uint32_t p, uint64_t first,
                                   uint64_t n, void *out))
{
    my.initial = initial;
    engine->shard = shard;
}

void mutant_know(struct fsdp_engine *engine)
{
    engine->shard = shard;
}

uint64_t mutant_block(uint32_t p)
{
    uint64_t rows = mutant_real.model->parameter_shape[p][0];

    return (rows + mutant_real.shards - 1) / mutant_real.shards *
           (fsdp_numel(mutant_real.model, p) / rows);
}

static void tell(void *context, const struct fsdp_piece *piece)
{
    my.tell(context, piece);
}

static int pieces(struct fsdp_sharded *s,
                  void (*visit)(void *context, const struct fsdp_piece *piece),
                  void *context)
{
    struct mutant_visit v = {visit, context};

    return mutant_real.engine.pieces(s, tell, &v);
}

void mutant_pieces(struct fsdp_engine *engine,
                   void (*change)(const struct mutant_visit *v,
                                  const struct fsdp_piece *piece))
{
    my.tell = change;
    engine->pieces = pieces;
}

/* ---- Giving back late -------------------------------------------------- */

/* n_slots: not followed. */
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
    if (kind == my.kind && bytes && my.n_slots < SLOTS) {
        my.slot[my.n_slots].p = p;
        my.slot[my.n_slots++].held = false;
    }
    mutant_real.device->live(self, stream, kind, unit, p, bytes);
}

static void hold_dead(void *self, struct fsdp_stream *stream, void *p)
{
    uint32_t i = find(p);

    if (i < my.n_slots && my.holding) {
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

void mutant_holding(bool on)
{
    my.holding = on;
}

void mutant_let_go(void)
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

static void hold_destroy(struct fsdp_sharded *s)
{
    my.holding = false;
    mutant_let_go();
    mutant_real.engine.destroy(s);
}

void mutant_hold(struct fsdp_env *env, struct fsdp_engine *engine,
                 uint32_t kind)
{
    struct fsdp_device *d = mutant_device(env);

    my.kind = kind;
    d->live = hold_live;
    d->dead = hold_dead;
    d->free = hold_free;
    engine->destroy = hold_destroy;
}

/* ---- Ballast ----------------------------------------------------------- */

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
        d->live(d->self, NULL, my.kind, FSDP_NO_UNIT, my.ballast,
                my.ballast_bytes);
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

void mutant_ballast(struct fsdp_env *env, struct fsdp_engine *engine,
                    uint32_t kind)
{
    my.kind = kind;
    mutant_device(env)->live = ballast_live;
    engine->at = ballast_at;
    engine->destroy = ballast_destroy;
}

/* ---- Order ------------------------------------------------------------- */

static int forget_wait(void *self, struct fsdp_stream *later,
                       struct fsdp_stream *earlier, uint64_t ticket,
                       const char *edge)
{
    return strcmp(edge, my.edge) == 0
               ? FSDP_OK
               : mutant_real.device->wait(self, later, earlier, ticket, edge);
}

void mutant_forget_wait(struct fsdp_env *env, const char *edge)
{
    my.edge = edge;
    mutant_device(env)->wait = forget_wait;
}

/* ---- Loads ------------------------------------------------------------- */

static _Thread_local void (*my_change)(const struct fsdp_piece *piece);

static void change_piece(void *context, const struct fsdp_piece *piece)
{
    (void)context;
    my_change(piece);
}

static int load_and_change(struct fsdp_sharded *s, const char *directory)
{
    FSDP_TRY(mutant_real.engine.load(s, directory));
    return mutant_real.engine.pieces(s, change_piece, NULL);
}

void mutant_after_load(struct fsdp_engine *engine,
                       void (*change)(const struct fsdp_piece *piece))
{
    my_change = change;
    engine->load = load_and_change;
}

/* ---- Cases ------------------------------------------------------------- */

bool mutant_mlp(const struct run_case *c)
{
    return strcmp(c->workload, "mlp") == 0 && c->data == WORKLOAD_NATURAL &&
           (strcmp(c->size, "seed") == 0 || strcmp(c->size, "odd") == 0);
}

bool mutant_misuse(const struct run_case *c)
{
    return mutant_mlp(c) && c->scenario == CASE_MISUSE;
}

bool mutant_clips(const struct run_case *c)
{
    return strcmp(c->workload, "mlp") == 0 && c->scenario == CASE_CLIP &&
           c->ranks > 1;
}

bool mutant_natural(const struct run_case *c)
{
    return (strcmp(c->workload, "mlp") == 0 ||
            strcmp(c->workload, "linear") == 0) &&
           strcmp(c->size, "large") != 0 && c->data == WORKLOAD_NATURAL &&
           c->ranks > 2 && c->layout == FSDP_LAYOUT_FLAT &&
           (c->scenario == CASE_TRAIN || c->scenario == CASE_EVAL ||
            c->scenario == CASE_SUMMON || c->scenario == CASE_AGAIN);
}

bool mutant_accumulates(const struct run_case *c)
{
    return mutant_natural(c) && c->microbatches > 1 && !c->sync[0] &&
           (c->microbatches == 2 || !c->sync[1]);
}

bool mutant_train(const struct run_case *c)
{
    return mutant_mlp(c) && c->scenario == CASE_TRAIN && c->microbatches == 1 &&
           c->wrap == CASE_WRAP_LAYER && c->fold == FSDP_FOLD_RANK &&
           c->layout == FSDP_LAYOUT_FLAT && c->divide_factor == 0.0f;
}

bool mutant_plain(const struct run_case *c)
{
    return mutant_train(c) && c->strategy == CASE_FULL_SHARD &&
           (c->ranks == 3 || c->ranks == 4) &&
           c->optimizer == FSDP_OPTIMIZER_SGD;
}

bool mutant_rows(const struct run_case *c)
{
    return mutant_mlp(c) && strcmp(c->size, "odd") == 0 &&
           c->layout == FSDP_LAYOUT_PER_PARAMETER &&
           c->strategy == CASE_FULL_SHARD && c->wrap == CASE_WRAP_WHOLE &&
           c->scenario == CASE_TRAIN;
}

bool mutant_resume(const struct run_case *c)
{
    return mutant_mlp(c) && c->scenario == CASE_RESUME &&
           c->optimizer == FSDP_OPTIMIZER_ADAMW && c->ranks > 1;
}

bool mutant_hybrid(const struct run_case *c)
{
    return mutant_train(c) && c->ranks > c->replicas && c->replicas > 1;
}

bool mutant_ahead(const struct run_case *c)
{
    return c->scenario == CASE_TRAIN && c->prefetch_forward > 0 &&
           c->reduces_in_flight > 0;
}

bool mutant_hybrid_ahead(const struct run_case *c)
{
    return mutant_ahead(c) && c->ranks > c->replicas && c->replicas > 1;
}
