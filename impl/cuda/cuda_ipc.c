/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_ipc.c - the transport between processes that share one GPU, or GPUs
 * that reach each other: memory and events that CUDA lets other processes
 * open. NCCL has no place for two ranks on one GPU.
 *
 * Each member has an outbox with a place for every other one. A turn: wait
 * until all have taken what lay there, put the next pieces, wait until the
 * others have put theirs, take them. The GPU waits for events; but an event of
 * another process may be waited for only once it was recorded, so hosts tell
 * each other by counters which turn they have come to.
 */
#include "cuda_transport.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PLACE_BYTES = 1 << 20, /* for each member, of an outbox */
    /* Other processes are given whole blocks of this size: smaller allocations
     * would share one, and be given away together. */
    SHARED_BYTES = 2 << 20,
};

/* What the other members need to reach this one's outbox and events. */
struct card {
    int32_t pid;
    cudaIpcMemHandle_t outbox;
    cudaIpcEventHandle_t put, taken;
};

struct ipc {
    struct cuda_group group;
    struct cuda_counters *counters; /* shared */
    uint64_t turn;
    uint64_t place_bytes;
    unsigned char *outbox[CUDA_MAX_RANKS]; /* of each member */
    cudaEvent_t put[CUDA_MAX_RANKS];       /* NULL until opened */
    cudaEvent_t taken[CUDA_MAX_RANKS];
};

static uint32_t world_rank(const struct ipc *x, uint32_t member)
{
    return x->group.first + member * x->group.stride;
}

/* Another member's host has come to `turn`: its event was recorded. */
static int come_to(struct ipc *x, _Atomic uint64_t *counter, uint64_t turn)
{
    struct cuda_wait wait = {0, 0};

    while (atomic_load_explicit(counter, memory_order_acquire) < turn) {
        FSDP_TRY(cuda_device_look(x->group.device, &wait));
    }
    return FSDP_OK;
}

static int ipc_check(struct ipc *x, cudaError_t error, const char *what)
{
    return cuda_device_check(x->group.device, error, what);
}

static int copy(struct ipc *x, const struct cuda_target *target, void *to,
                const void *from, uint64_t bytes)
{
    return bytes == 0
               ? FSDP_OK
               : ipc_check(x,
                           cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault,
                                           target->stream),
                           "cudaMemcpyAsync");
}

/* Bytes [at, at + a place) of a message of that length. */
static uint64_t piece(const struct ipc *x, uint64_t at, uint64_t bytes)
{
    uint64_t left = at < bytes ? bytes - at : 0;

    return left < x->place_bytes ? left : x->place_bytes;
}

static int put_parts(struct ipc *x, const struct cuda_target *target,
                     const struct cuda_message *message, uint64_t at)
{
    unsigned char *outbox = x->outbox[x->group.me];

    for (uint32_t r = 0; r < x->group.extent; r++) {
        const struct cuda_message *m = &message[r];

        if (r == x->group.me) {
            continue;
        }
        FSDP_TRY(
            come_to(x, &x->counters->taken[world_rank(x, r)], x->turn - 1));
        FSDP_TRY(ipc_check(x,
                           cudaStreamWaitEvent(target->stream, x->taken[r], 0),
                           "cudaStreamWaitEvent"));
        FSDP_TRY(copy(x, target, outbox + r * x->place_bytes,
                      (const unsigned char *)m->in + at,
                      piece(x, at, m->in_bytes)));
    }
    FSDP_TRY(ipc_check(x, cudaEventRecord(x->put[x->group.me], target->stream),
                       "cudaEventRecord"));
    atomic_store_explicit(&x->counters->put[world_rank(x, x->group.me)],
                          x->turn, memory_order_release);
    return FSDP_OK;
}

static int take_parts(struct ipc *x, const struct cuda_target *target,
                      const struct cuda_message *message, uint64_t at)
{
    for (uint32_t r = 0; r < x->group.extent; r++) {
        const struct cuda_message *m = &message[r];

        if (r == x->group.me) {
            continue;
        }
        FSDP_TRY(come_to(x, &x->counters->put[world_rank(x, r)], x->turn));
        FSDP_TRY(ipc_check(x, cudaStreamWaitEvent(target->stream, x->put[r], 0),
                           "cudaStreamWaitEvent"));
        FSDP_TRY(copy(x, target, (unsigned char *)m->out + at,
                      x->outbox[r] + x->group.me * x->place_bytes,
                      piece(x, at, m->out_bytes)));
    }
    FSDP_TRY(ipc_check(x,
                       cudaEventRecord(x->taken[x->group.me], target->stream),
                       "cudaEventRecord"));
    atomic_store_explicit(&x->counters->taken[world_rank(x, x->group.me)],
                          x->turn, memory_order_release);
    return FSDP_OK;
}

/* Every member takes as many turns: the longest message of all is one that each
 * of them sends or receives (cuda_transport.h). */
static int exchange(void *self, const struct cuda_target *target,
                    const struct cuda_message *message)
{
    struct ipc *x = self;
    uint64_t most = 0;

    for (uint32_t r = 0; r < x->group.extent; r++) {
        if (r != x->group.me) {
            uint64_t in = message[r].in_bytes;
            uint64_t out = message[r].out_bytes;

            most = in > most ? in : most;
            most = out > most ? out : most;
        }
    }
    for (uint64_t at = 0; at < most; at += x->place_bytes) {
        x->turn++;
        FSDP_TRY(put_parts(x, target, message, at));
        FSDP_TRY(take_parts(x, target, message, at));
        FSDP_TRY(
            cuda_device_pace(x->group.device, target, 2 * x->group.extent));
    }
    return FSDP_OK;
}

static int all_gather(void *self, const struct cuda_target *target,
                      const void *in, void *out, uint64_t bytes)
{
    struct ipc *x = self;
    struct cuda_message message[CUDA_MAX_RANKS];
    unsigned char *own = (unsigned char *)out + x->group.me * bytes;

    for (uint32_t r = 0; r < x->group.extent; r++) {
        message[r] = (struct cuda_message){
            in, bytes, (unsigned char *)out + r * bytes, bytes};
    }
    FSDP_TRY(exchange(x, target, message));
    return in == own ? FSDP_OK : copy(x, target, own, in, bytes);
}

static int broadcast(void *self, const struct cuda_target *target,
                     const void *in, void *out, uint64_t bytes, uint32_t root)
{
    struct ipc *x = self;
    struct cuda_message message[CUDA_MAX_RANKS] = {{NULL, 0, NULL, 0}};

    for (uint32_t r = 0; r < x->group.extent && x->group.me == root; r++) {
        message[r].in = in;
        message[r].in_bytes = bytes;
    }
    if (x->group.me != root) {
        message[root].out = out;
        message[root].out_bytes = bytes;
    }
    FSDP_TRY(exchange(x, target, message));
    return x->group.me != root || in == out ? FSDP_OK
                                            : copy(x, target, out, in, bytes);
}

/* ---- Life -------------------------------------------------------------- */

static int ipc_look(void *self)
{
    (void)self; /* what others do is seen by the watch */
    return FSDP_OK;
}

static void give_up(void *self)
{
    (void)self;
}

/* All others have taken what lies in the outbox. */
static int emptied(struct ipc *x)
{
    struct cuda_wait wait = {0, 0};

    for (uint32_t r = 0; r < x->group.extent; r++) {
        if (r == x->group.me) {
            continue;
        }
        FSDP_TRY(come_to(x, &x->counters->taken[world_rank(x, r)], x->turn));
        while (cudaEventQuery(x->taken[r]) == cudaErrorNotReady) {
            FSDP_TRY(cuda_device_look(x->group.device, &wait));
        }
    }
    return FSDP_OK;
}

/* A member's events. */
static void destroy_events(struct ipc *x, uint32_t r)
{
    if (x->put[r]) {
        (void)cudaEventDestroy(x->put[r]);
    }
    if (x->taken[r]) {
        (void)cudaEventDestroy(x->taken[r]);
    }
}

/* Gives back what is the others', and waits until they have. */
static int part(struct ipc *x)
{
    FSDP_TRY(cuda_device_status(x->group.device));
    /* This member may still be reading the others' outboxes. */
    FSDP_TRY(cuda_device_finish_all(x->group.device));
    FSDP_TRY(emptied(x));
    for (uint32_t r = 0; r < x->group.extent; r++) {
        if (r != x->group.me) {
            destroy_events(x, r);
            FSDP_TRY(ipc_check(x, cudaIpcCloseMemHandle(x->outbox[r]),
                               "cudaIpcCloseMemHandle"));
        }
    }
    atomic_store_explicit(&x->counters->closed[world_rank(x, x->group.me)], 1,
                          memory_order_release);
    for (uint32_t r = 0; r < x->group.extent; r++) {
        if (r != x->group.me) {
            FSDP_TRY(come_to(x, &x->counters->closed[world_rank(x, r)], 1));
        }
    }
    return FSDP_OK;
}

/* No member may free memory that others have open, nor destroy events that they
 * ask for: after a failure both are left to the end of the process. */
static void end(void *self)
{
    struct ipc *x = self;

    if (x->group.extent > 1 && part(x) == FSDP_OK) {
        destroy_events(x, x->group.me);
        cuda_device_free(x->group.device, x->outbox[x->group.me]);
    }
    free(x);
}

/* This member's own, and what the others open it by. */
static int make(struct ipc *x, struct card *mine)
{
    const unsigned int flags = cudaEventDisableTiming | cudaEventInterprocess;
    uint32_t me = x->group.me;
    uint64_t bytes = x->place_bytes * x->group.extent;
    void *p = NULL;

    bytes = (bytes + SHARED_BYTES - 1) / SHARED_BYTES * SHARED_BYTES;
    mine->pid = getpid();
    FSDP_TRY(ipc_check(x, cudaMalloc(&p, bytes), "cudaMalloc"));
    x->outbox[me] = p;
    FSDP_TRY(ipc_check(x, cudaEventCreateWithFlags(&x->put[me], flags),
                       "cudaEventCreate"));
    FSDP_TRY(ipc_check(x, cudaEventCreateWithFlags(&x->taken[me], flags),
                       "cudaEventCreate"));
    FSDP_TRY(ipc_check(x, cudaIpcGetMemHandle(&mine->outbox, p),
                       "cudaIpcGetMemHandle"));
    FSDP_TRY(ipc_check(x, cudaIpcGetEventHandle(&mine->put, x->put[me]),
                       "cudaIpcGetEventHandle"));
    return ipc_check(x, cudaIpcGetEventHandle(&mine->taken, x->taken[me]),
                     "cudaIpcGetEventHandle");
}

static int open_others(struct ipc *x, const struct card *all)
{
    for (uint32_t r = 0; r < x->group.extent; r++) {
        const struct card *card = &all[world_rank(x, r)];
        void *p = NULL;

        if (r == x->group.me) {
            continue;
        }
        if (card->pid == getpid()) {
            return cuda_device_fail(
                x->group.device, FSDP_ERR_UNSUPPORTED, 0, "CUDA IPC",
                "ranks that are threads of one process need a GPU each");
        }
        FSDP_TRY(ipc_check(x,
                           cudaIpcOpenMemHandle(&p, card->outbox,
                                                cudaIpcMemLazyEnablePeerAccess),
                           "cudaIpcOpenMemHandle"));
        x->outbox[r] = p;
        FSDP_TRY(ipc_check(x, cudaIpcOpenEventHandle(&x->put[r], card->put),
                           "cudaIpcOpenEventHandle"));
        FSDP_TRY(ipc_check(x, cudaIpcOpenEventHandle(&x->taken[r], card->taken),
                           "cudaIpcOpenEventHandle"));
    }
    return FSDP_OK;
}

int cuda_ipc_open(const struct fsdp_env *env, const struct cuda_group *group,
                  struct cuda_counters *counters, uint64_t place_bytes,
                  struct cuda_transport *out)
{
    struct ipc *x = calloc(1, sizeof(*x));
    struct card *all = calloc(env->world, sizeof(*all));
    struct card mine;
    int status;

    if (!x || !all) {
        free(x);
        free(all);
        return cuda_device_fail(group->device, FSDP_ERR_NOMEM, 0, "CUDA IPC",
                                "no host memory");
    }
    memset(&mine, 0, sizeof(mine));
    x->group = *group;
    x->counters = counters;
    x->place_bytes = place_bytes < PLACE_BYTES ? place_bytes : PLACE_BYTES;
    *out = (struct cuda_transport){.self = x,
                                   .exchange = exchange,
                                   .all_gather = all_gather,
                                   .broadcast = broadcast,
                                   .look = ipc_look,
                                   .give_up = give_up,
                                   .close = end};
    status = group->extent > 1 ? make(x, &mine) : FSDP_OK;
    if (status == FSDP_OK) {
        status = env->exchange(env->exchange_self, &mine, sizeof(mine), all);
    }
    if (status == FSDP_OK) {
        status = open_others(x, all);
    }
    /* No member goes on, and perhaps ends, before all have opened its
     * memory. */
    if (status == FSDP_OK) {
        status = env->exchange(env->exchange_self, &mine, 1, all);
    }
    free(all);
    return status;
}
