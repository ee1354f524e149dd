/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_device.c - struct fsdp_device over the CUDA runtime: failures, memory,
 * the functions of the contract. Streams are in cuda_stream.c.
 */
#include "cuda_state.h"
#include "cuda_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    GRACE_MS = 1000, /* for what is under way when something has failed */
};

/* ---- Failures ---------------------------------------------------------- */

int cuda_device_status(const struct cuda_device *d)
{
    return d->failed;
}

int cuda_device_fail(struct cuda_device *d, int status, int native,
                     const char *what, const char *why)
{
    struct fsdp_error *e = d->env->error;

    if (d->failed != FSDP_OK) {
        return d->failed;
    }
    d->failed = status;
    if (e && e->status == FSDP_OK) {
        e->status = status;
        e->rank = (int32_t)d->env->rank;
        e->native = native;
        snprintf(e->where, sizeof(e->where), "cuda");
        snprintf(e->message, sizeof(e->message), "%s: %s", what, why);
    }
    cuda_watch_abort(d->watch);
    if (d->hooks.give_up) {
        d->hooks.give_up(d->hooks.self);
    }
    return status;
}

int cuda_device_check(struct cuda_device *d, cudaError_t error,
                      const char *what)
{
    char why[128];

    if (error == cudaSuccess) {
        return FSDP_OK;
    }
    (void)cudaGetLastError(); /* it is told here, and not once more */
    snprintf(why, sizeof(why), "%s (%s)", cudaGetErrorString(error),
             cudaGetErrorName(error));
    return cuda_device_fail(d, FSDP_ERR_DEVICE, (int)error, what, why);
}

int cuda_device_look(struct cuda_device *d, struct cuda_wait *wait)
{
    char said[80];
    int status = cuda_watch_look(d->watch, wait, said);

    if (status != FSDP_OK) {
        return cuda_device_fail(d, status, 0, "waiting for the GPU", said);
    }
    if (d->hooks.look) {
        FSDP_TRY(d->hooks.look(d->hooks.self));
    }
    return d->failed;
}

/* ---- The functions of the contract ------------------------------------- */

/* The error does not stick, since the caller may go on with less; but the
 * message is set. */
static int too_little(struct cuda_device *d, uint64_t bytes)
{
    struct fsdp_error *e = d->env->error;
    size_t left = 0;
    size_t all = 0;

    (void)cudaGetLastError();
    (void)cudaMemGetInfo(&left, &all);
    if (e && e->status == FSDP_OK) {
        e->status = FSDP_ERR_NOMEM;
        e->rank = (int32_t)d->env->rank;
        e->native = cudaErrorMemoryAllocation;
        snprintf(e->where, sizeof(e->where), "cuda");
        snprintf(e->message, sizeof(e->message),
                 "the GPU has too little memory: %llu bytes were asked for, "
                 "%zu of %zu are left",
                 (unsigned long long)bytes, left, all);
    }
    return FSDP_ERR_NOMEM;
}

static int device_alloc(void *self, uint64_t bytes, void **out)
{
    struct cuda_device *d = self;
    cudaError_t error;

    if (!out) {
        return FSDP_ERR_INVALID;
    }
    *out = NULL;
    FSDP_TRY(d->failed);
    error = cudaMalloc(out, bytes > 0 ? bytes : 1);
    if (error == cudaErrorMemoryAllocation) {
        return too_little(d, bytes);
    }
    return cuda_device_check(d, error, "cudaMalloc");
}

static bool all_done(const struct cuda_device *d)
{
    bool all = true;

    for (struct fsdp_stream *s = d->streams; s; s = s->next) {
        all = all && cudaStreamQuery(s->cuda) != cudaErrorNotReady;
    }
    return all;
}

/* After a failure there may be work that never ends. */
bool cuda_device_idle(struct cuda_device *d)
{
    const struct timespec moment = {0, 1000000};

    if (d->failed == FSDP_OK) {
        (void)cuda_device_finish_all(d);
    }
    for (int i = 0; d->failed != FSDP_OK && !d->stuck && !all_done(d); i++) {
        nanosleep(&moment, NULL);
        d->stuck = i == GRACE_MS;
    }
    return !d->stuck;
}

void cuda_device_free(struct cuda_device *d, void *p)
{
    if (p && cuda_device_idle(d)) {
        (void)cudaFree(p);
    }
}

static void device_free(void *self, void *p)
{
    cuda_device_free(self, p);
}

/* Only wrappers of a device, and profilers, use what is said to be live. */
static void device_live(void *self, struct fsdp_stream *stream, uint32_t kind,
                        uint32_t unit, void *p, uint64_t bytes)
{
    (void)stream;
    if (bytes > 0) {
        cuda_trace_live(self, kind, unit, p);
    }
}

static void device_dead(void *self, struct fsdp_stream *stream, void *p)
{
    (void)stream;
    cuda_trace_dead(self, p);
}

/* Without a stream: has finished on return. */
static int end_call(struct cuda_device *d, struct fsdp_stream *stream)
{
    return !stream ? cuda_device_finish(d, d->plain) : FSDP_OK;
}

static int device_copy(void *self, struct fsdp_stream *stream, void *to,
                       const void *from, uint64_t bytes)
{
    struct cuda_device *d = self;

    FSDP_TRY(d->failed);
    if (bytes == 0) {
        return FSDP_OK;
    }
    if (!to || !from) {
        return FSDP_ERR_INVALID;
    }
    FSDP_TRY(cuda_copies_run(d->copies, stream, to, from, bytes));
    return end_call(d, stream);
}

int cuda_device_copy(struct cuda_device *d, void *to, const void *from,
                     uint64_t bytes)
{
    return device_copy(d, NULL, to, from, bytes);
}

static int device_run(void *self, struct fsdp_stream *stream,
                      const struct fsdp_op *op)
{
    struct cuda_device *d = self;
    struct cuda_target target;
    cudaError_t error;
    int status;

    FSDP_TRY(d->failed);
    if (!op || op->size < sizeof(*op)) {
        return FSDP_ERR_INVALID;
    }
    (void)cuda_device_stream(d, stream, &target);
    cuda_trace_push(cuda_ops_name(op->kind), op->unit);
    status = cuda_ops_run(op, &target, &error);
    cuda_trace_pop();
    if (status == FSDP_ERR_DEVICE) {
        return cuda_device_check(d, error, cuda_ops_name(op->kind));
    }
    FSDP_TRY(status);
    FSDP_TRY(cuda_device_pace(d, &target, 1));
    return end_call(d, stream);
}

static int device_stream_open(void *self, const char *name,
                              struct fsdp_stream **out)
{
    return out ? cuda_stream_open(self, name, out) : FSDP_ERR_INVALID;
}

static void device_stream_close(void *self, struct fsdp_stream *stream)
{
    if (stream) {
        cuda_stream_close(self, stream);
    }
}

static int device_mark(void *self, struct fsdp_stream *stream,
                       uint64_t *out_ticket)
{
    struct cuda_device *d = self;

    if (!out_ticket) {
        return FSDP_ERR_INVALID;
    }
    *out_ticket = 1;
    FSDP_TRY(d->failed);
    return stream ? cuda_device_mark(d, stream, out_ticket) : FSDP_OK;
}

static int device_wait(void *self, struct fsdp_stream *later,
                       struct fsdp_stream *earlier, uint64_t ticket,
                       const char *edge)
{
    (void)edge;
    return cuda_device_order(self, later, earlier, ticket);
}

static int device_sync(void *self, struct fsdp_stream *stream)
{
    return stream ? cuda_device_finish(self, stream)
                  : cuda_device_finish_all(self);
}

static int device_stamp(void *self, struct fsdp_stream *stream, uint64_t *ns)
{
    return ns ? cuda_trace_stamp(self, stream, ns) : FSDP_ERR_INVALID;
}

/* ---- Open and close ---------------------------------------------------- */

void cuda_device_hook(struct cuda_device *d, const struct cuda_hooks *hooks)
{
    d->hooks = *hooks;
}

struct cuda_device *cuda_device_of(const struct fsdp_device *device)
{
    return device->self;
}

static int prepare(struct cuda_device *d, int ordinal)
{
    void *word = NULL;
    int processors = 1;

    FSDP_TRY(cuda_device_check(d, cudaSetDevice(ordinal), "cudaSetDevice"));
    FSDP_TRY(cuda_device_check(
        d,
        cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount,
                               ordinal),
        "cudaDeviceGetAttribute"));
    d->processors = (unsigned int)processors;
    FSDP_TRY(cuda_device_check(d, cuda_ops_load(),
                               "this build has no kernels for this GPU"));
    FSDP_TRY(cuda_device_check(
        d, cudaHostAlloc(&word, sizeof(int), cudaHostAllocMapped),
        "cudaHostAlloc"));
    d->bad_id = word;
    *d->bad_id = 0;
    FSDP_TRY(cuda_stream_open(d, "plain", &d->plain));
    return cuda_copies_open(d, &d->copies);
}

int cuda_device_open(const struct fsdp_env *env, struct cuda_watch *watch,
                     int ordinal, struct fsdp_device *out)
{
    struct cuda_device *d = calloc(1, sizeof(*d));
    int status;

    *out = (struct fsdp_device){0};
    if (!d) {
        return FSDP_ERR_NOMEM;
    }
    d->env = env;
    d->watch = watch;
    out->self = d;
    status = prepare(d, ordinal);
    if (status != FSDP_OK) {
        status = cuda_device_fail(d, status, 0, "the device", "no memory");
        cuda_device_close(out);
        return status;
    }
    *out = (struct fsdp_device){
        .size = sizeof(*out),
        .place = FSDP_PLACE_CUDA,
        .self = d,
        .profile = "f32-fma",
        .alloc = device_alloc,
        .free = device_free,
        .live = device_live,
        .dead = device_dead,
        .copy = device_copy,
        .run = device_run,
        .stream_open = device_stream_open,
        .stream_close = device_stream_close,
        .mark = device_mark,
        .wait = device_wait,
        .sync = device_sync,
        .stamp = device_stamp,
    };
    return FSDP_OK;
}

void cuda_device_close(struct fsdp_device *device)
{
    struct cuda_device *d = device->self;
    bool idle;

    if (!d) {
        return;
    }
    idle = cuda_device_idle(d);
    while (d->streams) {
        cuda_stream_close(d, d->streams);
    }
    cuda_trace_close(d);
    cuda_copies_close(d->copies, idle);
    if (d->bad_id && idle) {
        (void)cudaFreeHost((void *)d->bad_id);
    }
    free(d);
    *device = (struct fsdp_device){0};
}
