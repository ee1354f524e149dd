/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer_mutants.c - engines that treat a model's buffers as parameters, as one
 * value of all ranks, or as their own to write.
 */
#include "mutants/buffer_copies.h"

#include <fsdp/arith/cast.h>
#include <string.h>

/* ---- Which cases show it ------------------------------------------------ */

static bool trains(const struct run_case *c)
{
    return case_has_buffers(c) && c->scenario == CASE_TRAIN &&
           c->precision == CASE_F32 && c->ranks > c->replicas;
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

/* ---- Passes ------------------------------------------------------------- */

/* Each rank keeps only its part of a buffer. */
static int buffer_sharded(struct fsdp_sharded *s, uint32_t b,
                          struct fsdp_tensor *out)
{
    FSDP_TRY(mutant_real.engine.buffer(s, b, out));
    out->shape[0] =
        (out->shape[0] + mutant_real.shards - 1) / mutant_real.shards;
    return FSDP_OK;
}

/* Broadcasts the first rank's buffers, as DistributedDataParallel's
 * broadcast_buffers does. */
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

        FSDP_TRY(buffers_find(s, b, &t, &bytes));
        c.dtype = t.dtype;
        c.n = t.shape[0];
        c.in = mutant_real.rank % mutant_real.shards == 0 ? t.data : NULL;
        c.out = t.data;
        FSDP_TRY(buffers_copy(buffers_before.data[b], t.data,
                              bytes)); /* waits for it */
        FSDP_TRY(mutant_communicate(NULL, &c));
    }
    return mutant_real.engine.at(s, point, index);
}

/* The same, without a collective that the recorder sees. */
static int buffer_broadcast_unseen(struct fsdp_sharded *s, uint32_t point,
                                   uint32_t index)
{
    if (point == FSDP_BEGIN) {
        FSDP_TRY(buffers_meet(s, 0));
    }
    return mutant_real.engine.at(s, point, index);
}

static int reset(struct fsdp_sharded *s)
{
    const struct fsdp_model *m = mutant_real.model;

    for (uint32_t b = 0; b < m->n_buffers; b++) {
        unsigned char stored[BUFFERS_MOST_BYTES];
        struct fsdp_tensor t;
        uint64_t bytes;

        FSDP_TRY(buffers_find(s, b, &t, &bytes));
        FSDP_TRY(m->initial_buffer(m->context, b, 0, t.shape[0], stored));
        for (uint64_t i = 0; t.dtype != m->buffer_dtype[b] && i < t.shape[0];
             i++) {
            fsdp_store(t.dtype, buffers_before.data[b], i,
                       fsdp_load(m->buffer_dtype[b], stored, i));
        }
        FSDP_TRY(buffers_copy(
            t.data,
            t.dtype == m->buffer_dtype[b] ? stored : buffers_before.data[b],
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

/* Undoes behind a pass what the pass has written. */
static int undo_behind(struct fsdp_sharded *s, uint32_t point, uint32_t index,
                       bool undoes)
{
    FSDP_TRY(mutant_real.engine.at(s, point, index));
    if (point == FSDP_BEGIN) {
        return buffers_take(s, &buffers_before);
    }
    return undoes ? buffers_give_all(s, &buffers_before) : FSDP_OK;
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

/* Lends a copy, as if a buffer had a window. */
static _Thread_local void *lent[BUFFERS_MOST];

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
    if (!mutant_now.in_pass || b >= BUFFERS_MOST) {
        return FSDP_OK;
    }
    bytes = out->shape[0] * fsdp_dtype_bytes(out->dtype);
    if (!lent[b]) {
        FSDP_TRY(d->alloc(d->self, bytes, &lent[b]));
    }
    FSDP_TRY(buffers_copy(lent[b], out->data, bytes));
    out->data = lent[b];
    return FSDP_OK;
}

static void copy_lent_destroy(struct fsdp_sharded *s)
{
    for (uint32_t b = 0; b < BUFFERS_MOST; b++) {
        mutant_real.device->free(mutant_real.device->self, lent[b]);
        lent[b] = NULL;
    }
    mutant_real.engine.destroy(s);
}

/* ---- Lives -------------------------------------------------------------- */

/* The second life begins with the first one's buffers. */
static int buffer_outlives(const struct fsdp_env *env,
                           const struct fsdp_model *model,
                           const struct fsdp_units *units,
                           const struct fsdp_options *options,
                           struct fsdp_sharded **out)
{
    FSDP_TRY(mutant_real.engine.shard(env, model, units, options, out));
    return buffers_give_all(*out, &buffers_before);
}

static void outlives_destroy(struct fsdp_sharded *s)
{
    if (s) {
        (void)buffers_take(s, &buffers_before);
    }
    mutant_real.engine.destroy(s);
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
        mutant_say("there is no such buffer");
    }
    return status;
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
     .calls.at = buffer_broadcast_unseen},
    {.name = "buffer-cancelled",
     .text = "CANCEL takes back what the model wrote to buffers",
     .evidence = "a pass that is undone as a whole",
     .kills = "buffer.as-unsharded",
     .shows = {.in = plays_all},
     .calls.at = buffer_cancelled,
     .forget = buffers_forget},
    {.name = "buffer-copy-lent",
     .text = "in a pass a copy of a buffer is lent, and what is written is "
             "lost",
     .evidence = "a cast at each use",
     .kills = "buffer.writes-stay",
     .shows = {.in = trains},
     .calls = {.buffer = buffer_copy_lent, .destroy = copy_lent_destroy},
     .forget = forget_lent},
    {.name = "buffer-misnamed",
     .text = "buffers are declared as shards of parameters",
     .evidence = "buffers in the flat parameter",
     .kills = "memory.buffers memory.rest-after-shard",
     .shows = {.in = trains},
     .fault = {MUTANT_MISNAMES, FSDP_BUFFER, FSDP_PARAM_SHARD}},
    {.name = "buffer-outlives",
     .text = "a second life begins with the buffers of the first",
     .evidence = "buffers that are kept by the name of the model",
     .kills = "buffer.initial",
     .shows = {.in = begins_again},
     .calls = {.shard = buffer_outlives, .destroy = outlives_destroy},
     .forget = buffers_forget},
    {.name = "buffer-reset-at-begin",
     .text = "each pass begins with the initial buffers",
     .evidence = "buffers that are made with each forward's copy",
     .kills = "buffer.writes-stay",
     .shows = {.in = trains},
     .calls.at = buffer_reset_at_begin},
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
     .forget = buffers_forget},
    {.name = "buffer-unnamed",
     .text = "a buffer that there is not is refused, and not said which",
     .evidence = "an error without the number",
     .kills = "error.unknown-buffer",
     .shows = {.in = misuses},
     .calls.buffer = buffer_unnamed},
    {0},
};
