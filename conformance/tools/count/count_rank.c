/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count_rank.c - a communicator that sends nothing, a device that computes
 * nothing. An engine that asks others what they have is told what it has
 * itself.
 */
#include "tools/count/count_rank.h"

#include <stdlib.h>
#include <string.h>

/* The state while a rank is played. */
static struct {
    const struct fsdp_engine *engine, *lender;
    struct fsdp_device device; /* the engine's, or the lender's, but for: */
    uint32_t world;
} now;

static int run_nothing(void *self, struct fsdp_stream *stream,
                       const struct fsdp_op *op)
{
    (void)self;
    (void)stream;
    (void)op;
    return FSDP_OK;
}

static int copy_nothing(void *self, struct fsdp_stream *stream, void *to,
                        const void *from, uint64_t bytes)
{
    (void)self;
    (void)stream;
    (void)to;
    (void)from;
    (void)bytes;
    return FSDP_OK;
}

/* The streams and the storage are real. */
static void compute_nothing(struct fsdp_env *env)
{
    if (env->device) {
        memset(&now.device, 0, sizeof(now.device));
        memcpy(&now.device, env->device,
               env->device->size < sizeof(now.device) ? env->device->size
                                                      : sizeof(now.device));
        now.device.run = run_nothing;
        now.device.copy = copy_nothing;
        env->device = &now.device;
    }
}

static int open_engine(struct fsdp_env *env)
{
    FSDP_TRY(now.engine->open(env));
    compute_nothing(env);
    return FSDP_OK;
}

static int open_lender(struct fsdp_env *env)
{
    FSDP_TRY(now.lender->open(env));
    compute_nothing(env);
    return FSDP_OK;
}

static int send_nothing(void *self, struct fsdp_stream *stream,
                        const struct fsdp_collective *c)
{
    (void)self;
    (void)stream;
    (void)c;
    return FSDP_OK;
}

static void end_nothing(void *self, int32_t status)
{
    (void)self;
    (void)status;
}

static int exchange_mine(void *self, const void *mine, uint64_t bytes,
                         void *all)
{
    (void)self;
    for (uint32_t r = 0; r < now.world; r++) {
        memcpy((char *)all + r * bytes, mine, bytes);
    }
    return FSDP_OK;
}

int count_rank(const struct drive *d, uint32_t rank, struct record_rank *out,
               struct fsdp_error *error)
{
    struct fsdp_engine engine = *d->engine;
    struct fsdp_engine lender = *d->device_engine;
    struct drive alone = *d;
    struct world_rank w = {
        .rank = rank,
        .world = d->c->ranks,
        .comm = {.size = sizeof(w.comm),
                 .place = FSDP_PLACE_HOST,
                 .run = send_nothing,
                 .abort = end_nothing},
        .exchange = exchange_mine,
        .error = error,
    };

    now.engine = d->engine;
    now.lender = d->device_engine;
    now.world = d->c->ranks;
    engine.open = d->engine->open ? open_engine : NULL;
    lender.open = open_lender;
    alone.engine = &engine;
    alone.device_engine = &lender;
    alone.keep = out;
    alone.without_values = true;
    return drive_rank(&alone, &w);
}
