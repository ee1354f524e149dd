/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer_mutants.c - engines that treat a model's buffers as parameters, as one
 * value of all ranks, or as their own to write; and saves that have others.
 */
#include "mutants/mutant_kit.h"

#include <fsdp/arith/cast.h>
#include <stdlib.h>
#include <string.h>

/* ---- Which cases show it ------------------------------------------------ */

static bool trains(const struct run_case *c)
{
    return case_has_buffers(c) && c->scenario == CASE_TRAIN &&
           c->precision == CASE_F32 && c->ranks > c->replicas;
}

static bool trains_in_16_bits(const struct run_case *c)
{
    return case_has_buffers(c) && c->precision == CASE_BF16;
}

static bool trains_in_units(const struct run_case *c)
{
    return case_has_buffers(c) && c->precision == CASE_UNITS;
}

static bool resumes(const struct run_case *c)
{
    return case_has_buffers(c) && c->scenario == CASE_RESUME &&
           c->precision == CASE_F32;
}

static bool resumes_in_16_bits(const struct run_case *c)
{
    return case_has_buffers(c) && c->scenario == CASE_RESUME &&
           c->precision != CASE_F32;
}

static bool evaluates(const struct run_case *c)
{
    return case_has_buffers(c) && c->scenario == CASE_EVAL;
}

static bool plays_all(const struct run_case *c)
{
    return case_has_buffers(c) && case_is_script(c);
}

static bool misuses(const struct run_case *c)
{
    return case_has_buffers(c) && c->scenario == CASE_MISUSE;
}

static bool begins_again(const struct run_case *c)
{
    return case_has_buffers(c) && c->scenario == CASE_AGAIN;
}

/* ---- Buffers in host memory --------------------------------------------- */

enum {
    MOST_BUFFERS = 8,
    MOST_BYTES = 256 /* of one */
};

struct copies {
    unsigned char data[MOST_BUFFERS][MOST_BYTES];
    bool made;
};
static _Thread_local struct copies before;

static void forget_copies(void)
{
    before.made = false;
}

static int find(struct fsdp_sharded *s, uint32_t b, struct fsdp_tensor *t,
                uint64_t *bytes)
{
    FSDP_TRY(mutant_real.engine.buffer(s, b, t));
    *bytes = t->shape[0] * fsdp_dtype_bytes(t->dtype);
    return *bytes <= MOST_BYTES && b < MOST_BUFFERS ? FSDP_OK
                                                    : FSDP_ERR_INTERNAL;
}

static int copy(void *to, const void *from, uint64_t bytes)
{
    const struct fsdp_device *d = mutant_real.device;

    FSDP_TRY(d->sync(d->self, NULL));
    return d->copy(d->self, NULL, to, from, bytes);
}

static int take(struct fsdp_sharded *s, struct copies *to)
{
    for (uint32_t b = 0; b < mutant_real.model->n_buffers; b++) {
        struct fsdp_tensor t;
        uint64_t bytes;

        FSDP_TRY(find(s, b, &t, &bytes));
        FSDP_TRY(copy(to->data[b], t.data, bytes));
    }
    to->made = true;
    return FSDP_OK;
}

/* Those that are persisted, or the others. */
static int give(struct fsdp_sharded *s, struct copies *from, bool persisted)
{
    for (uint32_t b = 0; from->made && b < mutant_real.model->n_buffers; b++) {
        const bool is =
            (mutant_real.model->buffer_flags[b] & FSDP_NOT_PERSISTED) == 0;
        struct fsdp_tensor t;
        uint64_t bytes;

        if (is == persisted) {
            FSDP_TRY(find(s, b, &t, &bytes));
            FSDP_TRY(copy(t.data, from->data[b], bytes));
        }
    }
    return FSDP_OK;
}

static int give_all(struct fsdp_sharded *s, struct copies *from)
{
    FSDP_TRY(give(s, from, true));
    return give(s, from, false);
}

/* ---- Passes ------------------------------------------------------------- */

/* Each rank has its part alone. */
static int buffer_sharded(struct fsdp_sharded *s, uint32_t b,
                          struct fsdp_tensor *out)
{
    FSDP_TRY(mutant_real.engine.buffer(s, b, out));
    out->shape[0] =
        (out->shape[0] + mutant_real.shards - 1) / mutant_real.shards;
    return FSDP_OK;
}

/* DistributedDataParallel's broadcast_buffers, of the first rank's. */
static int buffer_broadcast(struct fsdp_sharded *s, uint32_t point,
                            uint32_t index)
{
    for (uint32_t b = 0;
         point == FSDP_BEGIN && b < mutant_real.model->n_buffers; b++) {
        struct fsdp_collective c = {.size = sizeof(c),
                                    .kind = FSDP_BROADCAST,
                                    .dim = FSDP_DIM_SHARD,
                                    .unit = FSDP_NO_UNIT};
        struct fsdp_tensor t;
        uint64_t bytes;

        FSDP_TRY(find(s, b, &t, &bytes));
        c.dtype = t.dtype;
        c.n = t.shape[0];
        c.in = mutant_real.rank % mutant_real.shards == 0 ? t.data : NULL;
        c.out = t.data;
        FSDP_TRY(copy(before.data[b], t.data, bytes)); /* waits for it */
        FSDP_TRY(mutant_communicate(NULL, &c));
    }
    return mutant_real.engine.at(s, point, index);
}

static _Thread_local const struct fsdp_env *my_env;

static void note_env(struct fsdp_env *env)
{
    my_env = env;
}

/* All have what one of them has. */
static int meet(struct fsdp_sharded *s, uint32_t from)
{
    static _Thread_local void *room;
    unsigned char(*all)[MOST_BUFFERS][MOST_BYTES] =
        mutant_room(&room, (size_t)16 * MOST_BUFFERS * MOST_BYTES);

    if (!all || mutant_real.world > 16) {
        return FSDP_ERR_NOMEM;
    }
    FSDP_TRY(take(s, &before));
    FSDP_TRY(my_env->exchange(my_env->exchange_self, before.data,
                              sizeof(before.data), all));
    memcpy(before.data, all[from % mutant_real.world], sizeof(before.data));
    return give_all(s, &before);
}

/* The same, and nobody sees a collective. */
static int buffer_broadcast_unseen(struct fsdp_sharded *s, uint32_t point,
                                   uint32_t index)
{
    if (point == FSDP_BEGIN) {
        FSDP_TRY(meet(s, 0));
    }
    return mutant_real.engine.at(s, point, index);
}

static int reset(struct fsdp_sharded *s)
{
    const struct fsdp_model *m = mutant_real.model;

    for (uint32_t b = 0; b < m->n_buffers; b++) {
        unsigned char stored[MOST_BYTES];
        struct fsdp_tensor t;
        uint64_t bytes;

        FSDP_TRY(find(s, b, &t, &bytes));
        FSDP_TRY(m->initial_buffer(m->context, b, 0, t.shape[0], stored));
        for (uint64_t i = 0; t.dtype != m->buffer_dtype[b] && i < t.shape[0];
             i++) {
            fsdp_store(t.dtype, before.data[b], i,
                       fsdp_load(m->buffer_dtype[b], stored, i));
        }
        FSDP_TRY(copy(t.data,
                      t.dtype == m->buffer_dtype[b] ? stored : before.data[b],
                      bytes));
    }
    return FSDP_OK;
}

static int buffer_reset_at_begin(struct fsdp_sharded *s, uint32_t point,
                                 uint32_t index)
{
    if (point == FSDP_BEGIN) {
        FSDP_TRY(reset(s));
    }
    return mutant_real.engine.at(s, point, index);
}

/* What a pass has written is gone behind it. */
static int undo_behind(struct fsdp_sharded *s, uint32_t point, uint32_t index,
                       bool undoes)
{
    FSDP_TRY(mutant_real.engine.at(s, point, index));
    if (point == FSDP_BEGIN) {
        return take(s, &before);
    }
    return undoes ? give_all(s, &before) : FSDP_OK;
}

static int buffer_stale_after_eval(struct fsdp_sharded *s, uint32_t point,
                                   uint32_t index)
{
    return undo_behind(s, point, index,
                       point == FSDP_END && index == FSDP_SEQUENCE_EVAL);
}

static int buffer_cancelled(struct fsdp_sharded *s, uint32_t point,
                            uint32_t index)
{
    return undo_behind(s, point, index, point == FSDP_CANCEL);
}

/* A copy is lent: as if a buffer had a window. */
static _Thread_local void *lent[MOST_BUFFERS];

static void forget_lent(void)
{
    memset(lent, 0, sizeof(lent));
}

static int buffer_copy_lent(struct fsdp_sharded *s, uint32_t b,
                            struct fsdp_tensor *out)
{
    const struct fsdp_device *d = mutant_real.device;
    uint64_t bytes;

    FSDP_TRY(mutant_real.engine.buffer(s, b, out));
    if (!mutant_now.in_pass || b >= MOST_BUFFERS) {
        return FSDP_OK;
    }
    bytes = out->shape[0] * fsdp_dtype_bytes(out->dtype);
    if (!lent[b]) {
        FSDP_TRY(d->alloc(d->self, bytes, &lent[b]));
    }
    FSDP_TRY(copy(lent[b], out->data, bytes));
    out->data = lent[b];
    return FSDP_OK;
}

static void copy_lent_destroy(struct fsdp_sharded *s)
{
    for (uint32_t b = 0; b < MOST_BUFFERS; b++) {
        mutant_real.device->free(mutant_real.device->self, lent[b]);
        lent[b] = NULL;
    }
    mutant_real.engine.destroy(s);
}

/* ---- What shard is told ------------------------------------------------- */

static _Thread_local struct {
    struct fsdp_model model;
    struct fsdp_units units;
    uint32_t dtype[MOST_BUFFERS], flags[MOST_BUFFERS], module[MOST_BUFFERS];
} told;

static void tell(const struct fsdp_model *model)
{
    told.model = *model;
    for (uint32_t b = 0; b < model->n_buffers && b < MOST_BUFFERS; b++) {
        told.dtype[b] = model->buffer_dtype[b];
        told.flags[b] = model->buffer_flags[b];
    }
    told.model.buffer_dtype = told.dtype;
    told.model.buffer_flags = told.flags;
}

/* Buffers of floating point are stored in the buffer dtype. */
static int initial_as_told(void *context, uint32_t b, uint64_t first,
                           uint64_t n, void *out)
{
    const struct fsdp_model *m = mutant_real.model;
    unsigned char stored[MOST_BYTES];

    FSDP_TRY(m->initial_buffer(context, b, first, n, stored));
    if (told.dtype[b] == m->buffer_dtype[b]) {
        memcpy(out, stored, n * fsdp_dtype_bytes(told.dtype[b]));
        return FSDP_OK;
    }
    for (uint64_t i = 0; i < n; i++) {
        fsdp_store(told.dtype[b], out, i,
                   fsdp_load(m->buffer_dtype[b], stored, i));
    }
    return FSDP_OK;
}

static int buffer_cast_kept_in_save(const struct fsdp_env *env,
                                    const struct fsdp_model *model,
                                    const struct fsdp_units *units,
                                    const struct fsdp_options *options,
                                    struct fsdp_sharded **out)
{
    tell(model);
    told.model.initial_buffer = initial_as_told;
    for (uint32_t b = 0; b < model->n_buffers && b < MOST_BUFFERS; b++) {
        const uint32_t u = units->unit_of_module[model->buffer_module[b]];

        if (told.dtype[b] == FSDP_DTYPE_F32 && u != FSDP_NO_UNIT &&
            options->buffer_dtype != FSDP_DTYPE_NONE) {
            told.dtype[b] = units->buffer_dtype && units->buffer_dtype[u] != 0
                                ? units->buffer_dtype[u]
                                : options->buffer_dtype;
        }
    }
    return mutant_real.engine.shard(env, &told.model, units, options, out);
}

static int buffer_not_persisted_saved(const struct fsdp_env *env,
                                      const struct fsdp_model *model,
                                      const struct fsdp_units *units,
                                      const struct fsdp_options *options,
                                      struct fsdp_sharded **out)
{
    tell(model);
    memset(told.flags, 0, sizeof(told.flags));
    return mutant_real.engine.shard(env, &told.model, units, options, out);
}

/* Rounded to float16 on the way. */
static int initial_twice(void *context, uint32_t b, uint64_t first, uint64_t n,
                         void *out)
{
    const struct fsdp_model *m = mutant_real.model;

    FSDP_TRY(m->initial_buffer(context, b, first, n, out));
    for (uint64_t i = 0; m->buffer_dtype[b] == FSDP_DTYPE_F32 && i < n; i++) {
        float *x = out;

        x[i] = fsdp_round(FSDP_DTYPE_F16, x[i]);
    }
    return FSDP_OK;
}

/* A count goes through the type of parameters. */
static int initial_count_cast(void *context, uint32_t b, uint64_t first,
                              uint64_t n, void *out)
{
    const struct fsdp_model *m = mutant_real.model;

    FSDP_TRY(m->initial_buffer(context, b, first, n, out));
    for (uint64_t i = 0; m->buffer_dtype[b] == FSDP_DTYPE_I64 && i < n; i++) {
        int64_t *x = out;

        x[i] = (int64_t)(float)x[i];
    }
    return FSDP_OK;
}

static int shard_with(const struct fsdp_env *env,
                      const struct fsdp_model *model,
                      const struct fsdp_units *units,
                      const struct fsdp_options *options,
                      struct fsdp_sharded **out,
                      int (*initial)(void *context, uint32_t b, uint64_t first,
                                     uint64_t n, void *out))
{
    tell(model);
    told.model.initial_buffer = initial;
    return mutant_real.engine.shard(env, &told.model, units, options, out);
}

static int buffer_cast_twice(const struct fsdp_env *env,
                             const struct fsdp_model *model,
                             const struct fsdp_units *units,
                             const struct fsdp_options *options,
                             struct fsdp_sharded **out)
{
    return shard_with(env, model, units, options, out, initial_twice);
}

static int buffer_count_cast(const struct fsdp_env *env,
                             const struct fsdp_model *model,
                             const struct fsdp_units *units,
                             const struct fsdp_options *options,
                             struct fsdp_sharded **out)
{
    return shard_with(env, model, units, options, out, initial_count_cast);
}

static void buffer_dtype_ignored(struct fsdp_options *o)
{
    o->buffer_dtype = FSDP_DTYPE_NONE;
}

static int buffer_unit_dtype_ignored(const struct fsdp_env *env,
                                     const struct fsdp_model *model,
                                     const struct fsdp_units *units,
                                     const struct fsdp_options *options,
                                     struct fsdp_sharded **out)
{
    told.units = *units;
    told.units.buffer_dtype = NULL;
    return mutant_real.engine.shard(env, model, &told.units, options, out);
}

/* The second life begins with what the first one's buffers had. */
static int buffer_outlives(const struct fsdp_env *env,
                           const struct fsdp_model *model,
                           const struct fsdp_units *units,
                           const struct fsdp_options *options,
                           struct fsdp_sharded **out)
{
    FSDP_TRY(mutant_real.engine.shard(env, model, units, options, out));
    return give_all(*out, &before);
}

static void outlives_destroy(struct fsdp_sharded *s)
{
    if (s) {
        (void)take(s, &before);
    }
    mutant_real.engine.destroy(s);
}

/* ---- Saves and loads ---------------------------------------------------- */

static int buffer_lost_on_load(struct fsdp_sharded *s, const char *directory)
{
    FSDP_TRY(take(s, &before));
    FSDP_TRY(mutant_real.engine.load(s, directory));
    return give(s, &before, true);
}

/* The others go on with what they had. */
static int buffer_loaded_on_rank_0(struct fsdp_sharded *s,
                                   const char *directory)
{
    FSDP_TRY(take(s, &before));
    FSDP_TRY(mutant_real.engine.load(s, directory));
    return mutant_real.rank == 0 ? FSDP_OK : give(s, &before, true);
}

/* What a load has is given to those that it should leave. */
static int buffer_reset_on_load(struct fsdp_sharded *s, const char *directory)
{
    FSDP_TRY(mutant_real.engine.load(s, directory));
    memset(before.data, 0, sizeof(before.data));
    before.made = true;
    return give(s, &before, false);
}

/* The last rank's, as de-duplication may have it. */
static int buffer_of_last_rank(struct fsdp_sharded *s,
                               const struct fsdp_save *save)
{
    static _Thread_local struct copies own;
    int status;

    FSDP_TRY(take(s, &own));
    FSDP_TRY(meet(s, mutant_real.world - 1));
    status = mutant_real.engine.save_begin(s, save);
    FSDP_TRY(give_all(s, &own));
    return status;
}

/* As they were when the last pass began. */
static int buffer_saved_stale(struct fsdp_sharded *s,
                              const struct fsdp_save *save)
{
    static _Thread_local struct copies own;
    int status;

    FSDP_TRY(take(s, &own));
    if (before.made) {
        FSDP_TRY(give_all(s, &before));
    }
    status = mutant_real.engine.save_begin(s, save);
    FSDP_TRY(give_all(s, &own));
    return status;
}

static int note_at_begin(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    if (point == FSDP_BEGIN) {
        FSDP_TRY(take(s, &before));
    }
    return mutant_real.engine.at(s, point, index);
}

/* ---- Calls -------------------------------------------------------------- */

static int buffer_beyond(struct fsdp_sharded *s, uint32_t b,
                         struct fsdp_tensor *out)
{
    return mutant_real.engine.buffer(
        s, b < mutant_real.model->n_buffers ? b : 0, out);
}

static int buffer_unnamed(struct fsdp_sharded *s, uint32_t b,
                          struct fsdp_tensor *out)
{
    const int status = mutant_real.engine.buffer(s, b, out);

    if (status != FSDP_OK) {
        strcpy(my_env->error->message, "there is no such buffer");
    }
    return status;
}

static bool disagrees(const struct run_case *c)
{
    return c->scenario == CASE_DISAGREE && case_has_buffers(c);
}

/* Each is called as its module is, on all ranks. */
static int buffer_names_unread(const struct fsdp_env *env,
                               const struct fsdp_model *model,
                               const struct fsdp_units *units,
                               const struct fsdp_options *options,
                               struct fsdp_sharded **out)
{
    static _Thread_local struct fsdp_model unnamed; /* is borrowed */
    static _Thread_local const char *name[MOST_BUFFERS];

    unnamed = *model;
    for (uint32_t b = 0; b < model->n_buffers && b < MOST_BUFFERS; b++) {
        name[b] = model->module_name[model->buffer_module[b]];
    }
    unnamed.buffer_name = name;
    return mutant_real.engine.shard(env, &unnamed, units, options, out);
}

const struct mutant buffer_mutants[] = {
    {.name = "buffer-beyond",
     .text = "a buffer that there is not is the first one",
     .evidence = "an index that is not checked",
     .kills = "error.unknown-buffer",
     .shows = {.in = misuses},
     .calls.buffer = buffer_beyond},
    {.name = "buffer-broadcast",
     .text = "at BEGIN buffers become the first rank's, by a broadcast",
     .evidence = "DistributedDataParallel's broadcast_buffers",
     .kills = "buffer.writes-stay comm.nothing-else",
     .shows = {.in = trains},
     .calls.at = buffer_broadcast},
    {.name = "buffer-broadcast-unseen",
     .text = "at BEGIN buffers become the first rank's, out of band",
     .evidence = "DistributedDataParallel's broadcast_buffers",
     .kills = "buffer.writes-stay comm.nothing-exchanged",
     .shows = {.in = trains},
     .calls.at = buffer_broadcast_unseen,
     .change_env = note_env},
    {.name = "buffer-cancelled",
     .text = "CANCEL takes back what the model wrote to buffers",
     .evidence = "a pass that is undone as a whole",
     .kills = "buffer.as-unsharded",
     .shows = {.in = plays_all},
     .calls.at = buffer_cancelled,
     .forget = forget_copies},
    {.name = "buffer-cast-kept-in-save",
     .text = "a save has buffers in the buffer dtype",
     .evidence = "FullyShardedDataParallel restores dtypes, not bits",
     .kills = "buffer.saved-dtype",
     .shows = {.in = resumes_in_16_bits, .mixed = true},
     .calls.shard = buffer_cast_kept_in_save},
    {.name = "buffer-cast-twice",
     .text = "buffers are rounded to float16, then to the buffer dtype",
     .evidence = "a model that is cast before it is wrapped",
     .kills = "buffer.initial",
     .shows = {.in = trains_in_16_bits, .mixed = true},
     .calls.shard = buffer_cast_twice},
    {.name = "buffer-copy-lent",
     .text = "in a pass a copy of a buffer is lent, and what is written is "
             "lost",
     .evidence = "a cast at each use",
     .kills = "buffer.writes-stay",
     .shows = {.in = trains},
     .calls = {.buffer = buffer_copy_lent, .destroy = copy_lent_destroy},
     .forget = forget_lent},
    {.name = "buffer-count-cast",
     .text = "buffers of integers go through float32",
     .evidence = "microsoft/DeepSpeed: module.half() casts all",
     .kills = "buffer.initial",
     .shows = {.in = trains},
     .calls.shard = buffer_count_cast},
    {.name = "buffer-dtype-ignored",
     .text = "buffers stay in the dtype that they are stored in",
     .evidence = "an option that is read and not used",
     .kills = "buffer.dtype memory.buffers",
     .shows = {.in = trains_in_16_bits, .mixed = true},
     .options = buffer_dtype_ignored},
    {.name = "buffer-loaded-on-rank-0",
     .text = "a load gives buffers to rank 0 alone",
     .evidence = "a state dict that one rank has",
     .kills = "buffer.saved",
     .shows = {.in = resumes},
     .calls.load = buffer_loaded_on_rank_0},
    {.name = "buffer-lost-on-load",
     .text = "a load leaves buffers as they are",
     .evidence = "a checkpoint of parameters alone",
     .kills = "buffer.saved",
     .shows = {.in = resumes},
     .calls.load = buffer_lost_on_load},
    {.name = "buffer-misnamed",
     .text = "buffers are declared as shards of parameters",
     .evidence = "buffers in the flat parameter",
     .kills = "memory.buffers memory.rest-after-shard",
     .shows = {.in = trains},
     .fault = {MUTANT_MISNAMES, FSDP_BUFFER, FSDP_PARAM_SHARD}},
    {.name = "buffer-names-unread",
     .text = "ranks do not compare how buffers are called",
     .evidence = "a hash over parameters alone",
     .kills = "error.buffers-disagree",
     .shows = {.in = disagrees},
     .calls.shard = buffer_names_unread},
    {.name = "buffer-not-persisted-saved",
     .text = "a save has what is not persisted, and a load gives it back",
     .evidence = "a state dict of named_buffers()",
     .kills = "buffer.not-loaded buffer.not-persisted",
     .shows = {.in = resumes},
     .calls.shard = buffer_not_persisted_saved},
    {.name = "buffer-of-last-rank",
     .text = "a save has the buffers of the last rank",
     .evidence = "torch.distributed.checkpoint: the rank that de-duplication "
                 "picks",
     .kills = "buffer.saved",
     .shows = {.in = resumes},
     .calls.save_begin = buffer_of_last_rank,
     .change_env = note_env},
    {.name = "buffer-outlives",
     .text = "a second life begins with the buffers of the first",
     .evidence = "buffers that are kept by the name of the model",
     .kills = "buffer.initial",
     .shows = {.in = begins_again},
     .calls = {.shard = buffer_outlives, .destroy = outlives_destroy},
     .forget = forget_copies},
    {.name = "buffer-reset-at-begin",
     .text = "each pass begins with the initial buffers",
     .evidence = "buffers that are made with each forward's copy",
     .kills = "buffer.writes-stay",
     .shows = {.in = trains},
     .calls.at = buffer_reset_at_begin},
    {.name = "buffer-reset-on-load",
     .text = "a load sets buffers that are not persisted to zero",
     .evidence = "a model that is made empty before it is loaded",
     .kills = "buffer.not-loaded",
     .shows = {.in = resumes},
     .calls.load = buffer_reset_on_load},
    {.name = "buffer-saved-stale",
     .text = "a save has buffers as the last pass found them",
     .evidence = "a copy that is made before the forward",
     .kills = "buffer.saved",
     .shows = {.in = resumes},
     .calls = {.save_begin = buffer_saved_stale, .at = note_at_begin},
     .forget = forget_copies},
    {.name = "buffer-sharded",
     .text = "each rank has a part of each buffer",
     .evidence = "buffers in the flat parameter",
     .kills = "buffer.whole",
     .shows = {.in = trains},
     .calls.buffer = buffer_sharded},
    {.name = "buffer-stale-after-eval",
     .text = "behind an evaluation buffers are as before it",
     .evidence = "buffers that are saved and restored around a full-precision "
                 "evaluation",
     .kills = "buffer.as-unsharded",
     .shows = {.in = evaluates},
     .calls.at = buffer_stale_after_eval,
     .forget = forget_copies},
    {.name = "buffer-unit-dtype-ignored",
     .text = "all buffers have the options' buffer dtype",
     .evidence = "a policy of the root's for all",
     .kills = "buffer.dtype memory.buffers",
     .shows = {.in = trains_in_units, .mixed = true},
     .calls.shard = buffer_unit_dtype_ignored},
    {.name = "buffer-unnamed",
     .text = "a buffer that there is not is refused, and not said which",
     .evidence = "an error without the number",
     .kills = "error.unknown-buffer",
     .shows = {.in = misuses},
     .calls.buffer = buffer_unnamed,
     .change_env = note_env},
    {0},
};
