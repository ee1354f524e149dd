/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixed_watch_testing.c - stands between an engine and its device and
 * communicator. Each rank is a thread and has its own.
 */
#include "run/worker/mixed_watch_testing.h"

#include <string.h>

static _Thread_local struct {
    struct fsdp_device device;
    struct fsdp_comm comm;
    const struct fsdp_device *real_device;
    const struct fsdp_comm *real_comm;
    const struct mixed_case *c;
    struct {
        void *p;
        uint32_t kind;
        uint64_t bytes;
    } live[64];
    uint64_t bytes[FSDP_N_KINDS];
    struct mixed_seen said;
} seen;

static void see_live(void *self, struct fsdp_stream *stream, uint32_t kind,
                     uint32_t unit, void *p, uint64_t bytes)
{
    int i = 0;

    while (i < 63 && seen.live[i].p) {
        i++;
    }
    seen.live[i].p = p;
    seen.live[i].kind = kind;
    seen.live[i].bytes = bytes;
    seen.bytes[kind] += bytes;
    if (seen.bytes[kind] > seen.said.peak[kind]) {
        seen.said.peak[kind] = seen.bytes[kind];
    }
    seen.real_device->live(self, stream, kind, unit, p, bytes);
}

static void see_dead(void *self, struct fsdp_stream *stream, void *p)
{
    for (int i = 0; i < 64; i++) {
        if (p && seen.live[i].p == p) {
            seen.bytes[seen.live[i].kind] -= seen.live[i].bytes;
            seen.live[i].p = NULL;
        }
    }
    seen.real_device->dead(self, stream, p);
}

static int see_collective(void *self, struct fsdp_stream *stream,
                          const struct fsdp_collective *c)
{
    const struct mixed_policy *p = &seen.c->policy[c->unit];
    bool gathers = c->kind == FSDP_ALL_GATHER;
    uint32_t dtype = gathers ? p->param : p->reduce;

    seen.said.collectives++;
    if (c->dtype != dtype || (!gathers && fsdp_sum_dtype(c) != p->sum)) {
        seen.said.wrong_wire = true;
    }
    return seen.real_comm->run(self, stream, c);
}

void mixed_watch(struct fsdp_env *env, const struct mixed_case *c)
{
    memset(&seen, 0, sizeof(seen));
    seen.c = c;
    seen.real_device = env->device;
    seen.real_comm = env->comm;
    seen.device = *env->device;
    seen.device.live = see_live;
    seen.device.dead = see_dead;
    seen.comm = *env->comm;
    seen.comm.run = see_collective;
    env->device = &seen.device;
    env->comm = &seen.comm;
}

void mixed_unwatch(struct fsdp_env *env)
{
    env->device = seen.real_device;
    env->comm = seen.real_comm;
}

const struct mixed_seen *mixed_seen(void)
{
    return &seen.said;
}
