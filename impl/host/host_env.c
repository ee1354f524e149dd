/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_env.c - puts the host's device and communicator into a rank's env.
 *
 * `exchange` is replaced, too: it uses the same ways between ranks as the
 * communicator, whose collectives may still be running on a stream's thread.
 */
#include "host_env.h"

#include "host_comm.h"
#include "host_device.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

struct host {
    struct fsdp_device device;
    struct fsdp_comm comm;
    /* The members of env that these replace. */
    const struct fsdp_device *real_device;
    const struct fsdp_device *real_host;
    const struct fsdp_comm *real_comm;
    int (*exchange)(void *self, const void *mine, uint64_t bytes, void *all);
    void *exchange_self;
};

static int fail(const struct fsdp_env *env, int32_t status, const char *message)
{
    struct fsdp_error *e = env->error;

    if (e && e->status == FSDP_OK) {
        e->status = status;
        e->rank = (int32_t)env->rank;
        snprintf(e->where, sizeof(e->where), "host");
        snprintf(e->message, sizeof(e->message), "%s", message);
    }
    return status;
}

/* The status of the drain is not needed: if a collective has failed, the real
 * communicator either knows, or can still exchange. */
static int exchange_in_order(void *self, const void *mine, uint64_t bytes,
                             void *all)
{
    struct host *h = self;

    (void)host_comm_drain(&h->comm);
    return h->exchange(h->exchange_self, mine, bytes, all);
}

/* The env of an older driver has no field for it. */
static void put_host(struct fsdp_env *env, const struct fsdp_device *host)
{
    if (env->size > offsetof(struct fsdp_env, host)) {
        env->host = host;
    }
}

int host_open(struct fsdp_env *env)
{
    enum simd_level level;
    char message[128];
    struct host *h;
    int status = simd_choose_environment(&level, message, sizeof(message));

    if (status != FSDP_OK) {
        return fail(env, status, message);
    }
    h = calloc(1, sizeof(*h));
    if (!h) {
        return fail(env, FSDP_ERR_NOMEM, "no memory for the host device");
    }
    status = host_device_open(level, &h->device);
    if (status == FSDP_OK) {
        status = host_comm_open(env->comm, &h->comm);
    }
    if (status != FSDP_OK) {
        host_device_close(&h->device);
        free(h);
        return fail(env, status,
                    status == FSDP_ERR_UNSUPPORTED
                        ? "the communicator is not one of the host that "
                          "takes no streams"
                        : "no memory for the host device");
    }
    h->real_device = env->device;
    h->real_host = fsdp_host_of(env);
    h->real_comm = env->comm;
    h->exchange = env->exchange;
    h->exchange_self = env->exchange_self;
    env->device = &h->device;
    put_host(env, &h->device); /* the same memory */
    env->comm = &h->comm;
    env->exchange = exchange_in_order;
    env->exchange_self = h;
    env->engine = h;
    return FSDP_OK;
}

void host_close(struct fsdp_env *env)
{
    struct host *h = env->engine;

    if (!h) {
        return;
    }
    host_device_close(&h->device); /* first: its streams may run collectives */
    env->device = h->real_device;
    put_host(env, h->real_host);
    env->comm = h->real_comm;
    env->exchange = h->exchange;
    env->exchange_self = h->exchange_self;
    env->engine = NULL;
    host_comm_close(&h->comm);
    free(h);
}
