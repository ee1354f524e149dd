/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_plugin.c - TEST ONLY: the engine of impl/engine on the emulated GPU.
 * A GPU works while the host waits for other ranks, the emulation only when it
 * is called. So `exchange` first lets the device do the work it was given or,
 * where orders are drawn, a thread exchanges while this one goes on with some
 * of that work: the host is then ahead of the work that is left.
 */
#include "emulated_queue.h"

#include "cuda/cuda_env.h"
#include "engine/impl.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct emulated {
    int (*exchange)(void *self, const void *mine, uint64_t bytes, void *all);
    void *exchange_self;
    void *engine; /* cuda_env.c's */
};

enum {
    PATIENCE = 100000 /* times 50 microseconds */
};

struct talk {
    struct emulated *e;
    const void *mine;
    uint64_t bytes;
    void *all;
    int status;
    atomic_bool done;
};

static void *talk(void *self)
{
    struct talk *t = self;

    t->status = t->e->exchange(t->e->exchange_self, t->mine, t->bytes, t->all);
    atomic_store(&t->done, true);
    return NULL;
}

static int exchange(void *self, const void *mine, uint64_t bytes, void *all)
{
    struct emulated *e = self;
    struct talk t = {e, mine, bytes, all, FSDP_ERR_INTERNAL, false};
    pthread_t thread;

    if (!emulated_queue_late() &&
        pthread_create(&thread, NULL, talk, &t) == 0) {
        while (!atomic_load(&t.done)) {
            (void)emulated_yield();
        }
        (void)pthread_join(thread, NULL);
        return t.status;
    }
    for (int i = 0; i < PATIENCE && !emulated_flush(); i++) {
        usleep(50);
    }
    return e->exchange(e->exchange_self, mine, bytes, all);
}

int impl_open_device(struct fsdp_env *env)
{
    struct emulated *e = calloc(1, sizeof(*e));
    int status;

    if (!e) {
        return FSDP_ERR_NOMEM;
    }
    e->exchange = env->exchange;
    e->exchange_self = env->exchange_self;
    emulated_set_rank(env->rank);
    status = cuda_open(env);
    if (status != FSDP_OK) {
        free(e);
        return status;
    }
    e->engine = env->engine;
    env->engine = e;
    env->exchange = exchange;
    env->exchange_self = e;
    return FSDP_OK;
}

void impl_close_device(struct fsdp_env *env)
{
    struct emulated *e = env->engine;

    if (e) {
        env->exchange = e->exchange;
        env->exchange_self = e->exchange_self;
        env->engine = e->engine;
        cuda_close(env);
        free(e);
    }
}

const struct fsdp_engine *fsdp_engine_v1(void)
{
    return fsdp_impl_engine();
}
