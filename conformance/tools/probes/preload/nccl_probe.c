/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_probe.c - a profiler plug-in of NCCL that logs the collectives of a
 * program.
 *
 * Handles and contexts are numbers, not memory: a context is the number of a
 * communicator in the log, plus 1, and a handle that of a call. NCCL gives a
 * call's handle as the parent of what is launched for it, which may be after
 * the call was stopped, in another thread, or, in a CUDA graph, many times.
 */
#include "tools/probes/preload/call_log.h"
#include "tools/probes/preload/nccl_profiler_abi.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct call_log calls = CALL_LOG_INITIAL;
static bool watches_fork;

static void lock(void)
{
    (void)pthread_mutex_lock(&calls.log.lock);
}

static void unlock(void)
{
    (void)pthread_mutex_unlock(&calls.log.lock);
}

static void in_child(void)
{
    probe_log_forget(&calls.log);
    unlock();
}

/* ---- NCCL's words ---- */

static uint32_t kind_of(const char *func)
{
    static const struct {
        const char *func;
        uint32_t kind;
    } known[] = {
        {"AllGather", PROBE_ALL_GATHER},
        {"ReduceScatter", PROBE_REDUCE_SCATTER},
        {"AllReduce", PROBE_ALL_REDUCE},
        {"Broadcast", PROBE_BROADCAST},
        {"Reduce", PROBE_REDUCE},
        {"AlltoAll", PROBE_ALL_TO_ALL},
        {"Gather", PROBE_GATHER},
        {"Scatter", PROBE_SCATTER},
        {"Send", PROBE_SEND},
        {"Recv", PROBE_RECV},
    };

    for (size_t i = 0; func && i < sizeof(known) / sizeof(*known); i++) {
        if (strcmp(known[i].func, func) == 0) {
            return known[i].kind;
        }
    }
    return PROBE_OTHER;
}

static uint32_t dtype_of(const char *type)
{
    static const struct {
        const char *type;
        uint32_t dtype;
    } known[] = {
        {"ncclFloat32", PROBE_F32},   {"ncclBfloat16", PROBE_BF16},
        {"ncclFloat16", PROBE_F16},   {"ncclFloat64", PROBE_F64},
        {"ncclInt8", PROBE_I8},       {"ncclUint8", PROBE_U8},
        {"ncclInt32", PROBE_I32},     {"ncclUint32", PROBE_U32},
        {"ncclInt64", PROBE_I64},     {"ncclUint64", PROBE_U64},
        {"ncclFloat8e4m3", PROBE_F8}, {"ncclFloat8e5m2", PROBE_F8},
    };

    for (size_t i = 0; type && i < sizeof(known) / sizeof(*known); i++) {
        if (strcmp(known[i].type, type) == 0) {
            return known[i].dtype;
        }
    }
    return PROBE_DERIVED; /* NCCL calls some of its own types "Unknown" */
}

/* NCCL counts as comm.h does: what each rank sends to an all-gather, what each
 * gets from a reduce-scatter. */
static int64_t total_of(uint32_t kind, size_t count, int size)
{
    bool parts = kind == PROBE_ALL_GATHER || kind == PROBE_REDUCE_SCATTER ||
                 kind == PROBE_ALL_TO_ALL || kind == PROBE_GATHER ||
                 kind == PROBE_SCATTER;

    return parts ? (int64_t)count * size : (int64_t)count;
}

/* As NCCL defines it: the part of this rank lies where it belongs. */
static int is_in_place(uint32_t kind, const struct nccl_coll *c, int me,
                       uint32_t element)
{
    const char *in = c->send_buffer;
    const char *out = c->recv_buffer;
    size_t part = c->count * element * (size_t)(me >= 0 ? me : 0);

    switch (kind) {
    case PROBE_ALL_GATHER:
        return element > 0 ? in == out + part : -1;
    case PROBE_REDUCE_SCATTER:
        return element > 0 ? out == in + part : -1;
    default:
        return in == out;
    }
}

/* ---- The log ---- */

enum {
    MOST_COMMS = 4096 /* whose size and rank are known */
};
static struct {
    int size, me;
} comms[MOST_COMMS];

static void *pointer_of(uint64_t number)
{
    return (void *)(uintptr_t)(number + 1);
}

static int64_t number_of(const void *pointer)
{
    return (int64_t)(uintptr_t)pointer - 1;
}

/* NCCL must never fail because of us; without a log it calls us in vain. */
static void *open_comm(uint64_t id, const char *name, int size, int me,
                       const char *library)
{
    struct probe_line line;
    char hex[24];
    struct probe_head head = {.source = PROBE_NCCL,
                              .library = library,
                              .rank = probe_rank_of_environment(),
                              .world = probe_world_of_environment()};

    lock();
    if (calls.log.state == PROBE_LOG_CLOSED) {
        (void)call_log_open(&calls, &head);
    }
    if (!watches_fork) {
        watches_fork = true;
        (void)pthread_atfork(lock, unlock, in_child);
    }
    uint32_t number = calls.comms++;
    if (number < MOST_COMMS) {
        comms[number].size = size;
        comms[number].me = me;
    }
    probe_line_begin(&line, "communicator");
    probe_line_u64(&line, "comm", number);
    probe_line_null(&line, "parent");
    probe_line_u64(&line, "size", size > 0 ? (uint64_t)size : 0);
    probe_line_u64(&line, "me", me > 0 ? (uint64_t)me : 0);
    probe_line_null(&line, "members");
    probe_line_text(&line, "name", name ? name : "");
    snprintf(hex, sizeof(hex), "%016llx", (unsigned long long)id);
    probe_line_text(&line, "id", hex);
    probe_log_write(&calls.log, &line);
    unlock();
    return pointer_of(number);
}

static struct probe_call describe(int64_t comm, const char *func,
                                  const char *datatype, size_t count, int root)
{
    uint32_t kind = kind_of(func);
    uint32_t dtype = dtype_of(datatype);
    uint32_t element = probe_dtype_bytes(dtype);
    int size = comm < MOST_COMMS ? comms[comm].size : 0;
    bool rooted = kind == PROBE_BROADCAST || kind == PROBE_REDUCE ||
                  kind == PROBE_GATHER || kind == PROBE_SCATTER;

    return (struct probe_call){
        .call = func ? func : "",
        .kind = kind,
        .dtype = dtype,
        .mode = PROBE_ENQUEUED,
        .comm = comm,
        .root = rooted && root >= 0 ? root : -1,
        .n = (int64_t)count,
        .total = size > 0 ? total_of(kind, count, size) : -1,
        .bytes = element > 0 ? (int64_t)count * element : -1,
        .in_place = -1,
    };
}

static void *log_call(const struct probe_call *call)
{
    lock();
    uint64_t seq = call_log_call(&calls, call);
    unlock();
    return pointer_of(seq);
}

/* Logs a launch: how a call ran on the GPU. */
static void log_launch(int64_t call, int64_t comm, const struct nccl_coll *c)
{
    struct probe_call d =
        describe(comm, c->func, c->datatype, c->count, c->root);
    int in_place =
        is_in_place(d.kind, c, comm < MOST_COMMS ? comms[comm].me : -1,
                    probe_dtype_bytes(d.dtype));
    struct probe_line line;

    probe_line_begin(&line, "launch");
    if (call < 0) {
        probe_line_null(&line, "of");
    } else {
        probe_line_u64(&line, "of", (uint64_t)call);
    }
    probe_line_u64(&line, "comm", (uint64_t)comm);
    probe_line_text(&line, "kind", probe_kind_name(d.kind));
    probe_line_u64(&line, "n", c->count);
    probe_line_add(&line, ",\"in_place\":%s",
                   in_place < 0    ? "null"
                   : in_place != 0 ? "true"
                                   : "false");
    probe_line_text(&line, "algo", c->algo ? c->algo : "");
    probe_line_text(&line, "proto", c->proto ? c->proto : "");
    lock();
    probe_log_write(&calls.log, &line);
    unlock();
}

__attribute__((destructor)) static void at_exit(void)
{
    lock();
    call_log_end(&calls, PROBE_EXITED);
    unlock();
}

/* ---- Version 5 ---- */

static int init_v5(void **context, uint64_t id, int *mask, const char *name,
                   int n_nodes, int n_ranks, int rank, nccl_logger logger)
{
    (void)n_nodes;
    (void)logger;
    *context = open_comm(id, name, n_ranks, rank, "NCCL, profiler v5");
    *mask = NCCL_PROFILE_COLL_API | NCCL_PROFILE_P2P_API | NCCL_PROFILE_COLL;
    return NCCL_SUCCESS;
}

static int start_v5(void *context, void **handle, struct nccl_event_v5 *event)
{
    int64_t comm = number_of(context);
    struct probe_call call;

    *handle = NULL;
    if (comm < 0) {
        return NCCL_SUCCESS;
    }
    switch (event->type) {
    case NCCL_PROFILE_COLL_API:
        call = describe(comm, event->coll_api.func, event->coll_api.datatype,
                        event->coll_api.count, event->coll_api.root);
        *handle = log_call(&call);
        break;
    case NCCL_PROFILE_P2P_API:
        call = describe(comm, event->p2p_api.func, event->p2p_api.datatype,
                        event->p2p_api.count, -1);
        *handle = log_call(&call);
        break;
    case NCCL_PROFILE_COLL:
        log_launch(number_of(event->parent), comm, &event->coll.coll);
        break;
    default:
        break;
    }
    return NCCL_SUCCESS;
}

/* ---- Version 4, which tells of launches alone ---- */

static int init_v4(void **context, int *mask, const char *name, uint64_t id,
                   int n_nodes, int n_ranks, int rank, nccl_logger logger)
{
    (void)n_nodes;
    (void)logger;
    *context = open_comm(id, name, n_ranks, rank, "NCCL, profiler v4");
    *mask = NCCL_PROFILE_COLL | NCCL_PROFILE_P2P;
    return NCCL_SUCCESS;
}

static int start_v4(void *context, void **handle, struct nccl_event_v4 *event)
{
    int64_t comm = number_of(context);
    struct probe_call call;

    *handle = NULL;
    if (comm < 0) {
        return NCCL_SUCCESS;
    }
    if (event->type == NCCL_PROFILE_COLL) {
        const struct nccl_coll *c = &event->coll;
        call = describe(comm, c->func, c->datatype, c->count, c->root);
        call.in_place =
            is_in_place(call.kind, c, comm < MOST_COMMS ? comms[comm].me : -1,
                        probe_dtype_bytes(call.dtype));
        *handle = log_call(&call);
    } else if (event->type == NCCL_PROFILE_P2P) {
        call = describe(comm, event->p2p.func, event->p2p.datatype,
                        event->p2p.count, -1);
        *handle = log_call(&call);
    }
    return NCCL_SUCCESS;
}

/* ---- Nothing to do ---- */

static int stop(void *handle)
{
    (void)handle;
    return NCCL_SUCCESS;
}

static int record_state(void *handle, int state, void *arguments)
{
    (void)handle;
    (void)state;
    (void)arguments;
    return NCCL_SUCCESS;
}

static int finalize(void *context)
{
    (void)context;
    return NCCL_SUCCESS;
}

/* NCCL looks these names up.
 * NOLINTBEGIN(readability-identifier-naming) */
extern const struct nccl_profiler_v5 ncclProfiler_v5;
extern const struct nccl_profiler_v4 ncclProfiler_v4;

PROBE_EXPORT const struct nccl_profiler_v5 ncclProfiler_v5 = {
    .name = "fsdp-cts",
    .init = init_v5,
    .start_event = start_v5,
    .stop_event = stop,
    .record_event_state = record_state,
    .finalize = finalize,
};

PROBE_EXPORT const struct nccl_profiler_v4 ncclProfiler_v4 = {
    .name = "fsdp-cts",
    .init = init_v4,
    .start_event = start_v4,
    .stop_event = stop,
    .record_event_state = record_state,
    .finalize = finalize,
};
/* NOLINTEND(readability-identifier-naming) */
