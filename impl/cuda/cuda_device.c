/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_device.c - struct fsdp_device over the CUDA runtime.
 *
 * A ticket is the number of an event. A stream has a ring of events: when one
 * is recorded again, those who still ask for its old ticket wait for more than
 * they would have to, never for less.
 */
#include "cuda_device.h"

#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    RING = 256, /* events of a stream, made when first needed */
};

struct fsdp_stream {
    cudaStream_t cuda;
    cudaEvent_t event[RING];
    uint64_t given; /* the last ticket; 1 at first, when there is no event */
    bool fresh;     /* was given work since */
    struct fsdp_stream *next;
};

struct cuda_device {
    const struct fsdp_env *env;
    struct cuda_watch *watch;
    struct cuda_hooks hooks;
    unsigned int processors;
    volatile int *bad_id;      /* pinned; kernels set it */
    struct fsdp_stream *plain; /* of calls without a stream */
    struct fsdp_stream *streams;
    struct cuda_copies *copies;
    int failed;
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
    if (e != NULL && e->status == FSDP_OK) {
        e->status = status;
        e->rank = (int32_t)d->env->rank;
        e->native = native;
        snprintf(e->where, sizeof(e->where), "cuda");
        snprintf(e->message, sizeof(e->message), "%s: %s", what, why);
    }
    cuda_watch_abort(d->watch);
    if (d->hooks.give_up != NULL) {
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
    if (d->hooks.look != NULL) {
        FSDP_TRY(d->hooks.look(d->hooks.self));
    }
    return d->failed;
}

/* ---- Streams ----------------------------------------------------------- */

struct fsdp_stream *cuda_device_stream(struct cuda_device *d,
                                       struct fsdp_stream *stream,
                                       struct cuda_target *target)
{
    stream = stream != NULL ? stream : d->plain;
    stream->fresh = true;
    if (target != NULL) {
        *target =
            (struct cuda_target){stream->cuda, d->processors, (int *)d->bad_id};
    }
    return stream;
}

int cuda_device_mark(struct cuda_device *d, struct fsdp_stream *s,
                     uint64_t *ticket)
{
    cudaEvent_t *event = &s->event[(s->given + 1) % RING];

    if (s->fresh) {
        if (*event == NULL) {
            FSDP_TRY(cuda_device_check(
                d, cudaEventCreateWithFlags(event, cudaEventDisableTiming),
                "cudaEventCreate"));
        }
        FSDP_TRY(cuda_device_check(d, cudaEventRecord(*event, s->cuda),
                                   "cudaEventRecord"));
        s->given++;
        s->fresh = false;
    }
    *ticket = s->given;
    return FSDP_OK;
}

static int host_wait(struct cuda_device *d, cudaEvent_t event)
{
    struct cuda_wait wait = {0, 0};
    cudaError_t error = cudaEventQuery(event);

    while (error == cudaErrorNotReady) {
        FSDP_TRY(cuda_device_look(d, &wait));
        error = cudaEventQuery(event);
    }
    FSDP_TRY(cuda_device_check(d, error, "work of a stream"));
    if (*d->bad_id != 0) {
        return cuda_device_fail(d, FSDP_ERR_INVALID, 0, "an operator",
                                "met an id that is out of range");
    }
    return FSDP_OK;
}

int cuda_device_order(struct cuda_device *d, struct fsdp_stream *later,
                      struct fsdp_stream *earlier, uint64_t ticket)
{
    cudaEvent_t event;

    if (d->failed != FSDP_OK || earlier == NULL || later == earlier) {
        return d->failed;
    }
    if (ticket == 0) {
        FSDP_TRY(cuda_device_mark(d, earlier, &ticket));
    }
    if (ticket > earlier->given) {
        return FSDP_ERR_INVALID;
    }
    event = earlier->event[ticket % RING];
    if (event == NULL) {
        return FSDP_OK; /* there was no work */
    }
    if (later == NULL) {
        return host_wait(d, event);
    }
    later->fresh = true;
    return cuda_device_check(d, cudaStreamWaitEvent(later->cuda, event, 0),
                             "cudaStreamWaitEvent");
}

int cuda_device_finish(struct cuda_device *d, struct fsdp_stream *stream)
{
    return cuda_device_order(d, NULL, stream, 0);
}

static int stream_open(struct cuda_device *d, struct fsdp_stream **out)
{
    struct fsdp_stream *s = calloc(1, sizeof(*s));

    *out = NULL;
    if (s == NULL) {
        return FSDP_ERR_NOMEM;
    }
    if (cuda_device_check(
            d, cudaStreamCreateWithFlags(&s->cuda, cudaStreamNonBlocking),
            "cudaStreamCreate") != FSDP_OK) {
        free(s);
        return d->failed;
    }
    s->given = 1;
    s->next = d->streams;
    d->streams = s;
    *out = s;
    return FSDP_OK;
}

static void stream_close(struct cuda_device *d, struct fsdp_stream *stream)
{
    struct fsdp_stream **link = &d->streams;

    while (*link != NULL && *link != stream) {
        link = &(*link)->next;
    }
    if (*link == NULL) {
        return;
    }
    *link = stream->next;
    (void)cuda_device_finish(d, stream);
    for (int i = 0; i < RING; i++) {
        if (stream->event[i] != NULL) {
            (void)cudaEventDestroy(stream->event[i]);
        }
    }
    (void)cudaStreamDestroy(stream->cuda);
    free(stream);
}

/* ---- The functions of the contract ------------------------------------- */

static int device_alloc(void *self, uint64_t bytes, void **out)
{
    struct cuda_device *d = self;
    cudaError_t error;

    if (out == NULL) {
        return FSDP_ERR_INVALID;
    }
    *out = NULL;
    FSDP_TRY(d->failed);
    error = cudaMalloc(out, bytes > 0 ? bytes : 1);
    if (error == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        return FSDP_ERR_NOMEM;
    }
    return cuda_device_check(d, error, "cudaMalloc");
}

static void device_free(void *self, void *p)
{
    (void)self;
    if (p != NULL) {
        (void)cudaFree(p);
    }
}

/* Values are of interest to those who wrap a device. */
static void device_live(void *self, struct fsdp_stream *stream, uint32_t kind,
                        uint32_t unit, void *p, uint64_t bytes)
{
    (void)self;
    (void)stream;
    (void)kind;
    (void)unit;
    (void)p;
    (void)bytes;
}

static void device_dead(void *self, struct fsdp_stream *stream, void *p)
{
    (void)self;
    (void)stream;
    (void)p;
}

/* Without a stream: has finished on return. */
static int end_call(struct cuda_device *d, struct fsdp_stream *stream)
{
    return stream == NULL ? cuda_device_finish(d, d->plain) : FSDP_OK;
}

static int device_copy(void *self, struct fsdp_stream *stream, void *to,
                       const void *from, uint64_t bytes)
{
    struct cuda_device *d = self;

    FSDP_TRY(d->failed);
    if (bytes == 0) {
        return FSDP_OK;
    }
    if (to == NULL || from == NULL) {
        return FSDP_ERR_INVALID;
    }
    FSDP_TRY(cuda_copies_run(d->copies, stream, to, from, bytes));
    return end_call(d, stream);
}

static int device_run(void *self, struct fsdp_stream *stream,
                      const struct fsdp_op *op)
{
    struct cuda_device *d = self;
    struct cuda_target target;
    cudaError_t error;
    int status;

    FSDP_TRY(d->failed);
    if (op == NULL || op->size < sizeof(*op)) {
        return FSDP_ERR_INVALID;
    }
    (void)cuda_device_stream(d, stream, &target);
    nvtxRangePushA(cuda_ops_name(op->kind));
    status = cuda_ops_run(op, &target, &error);
    nvtxRangePop();
    if (status == FSDP_ERR_DEVICE) {
        return cuda_device_check(d, error, cuda_ops_name(op->kind));
    }
    FSDP_TRY(status);
    return end_call(d, stream);
}

static int device_stream_open(void *self, const char *name,
                              struct fsdp_stream **out)
{
    (void)name;
    return out != NULL ? stream_open(self, out) : FSDP_ERR_INVALID;
}

static void device_stream_close(void *self, struct fsdp_stream *stream)
{
    if (stream != NULL) {
        stream_close(self, stream);
    }
}

static int device_mark(void *self, struct fsdp_stream *stream,
                       uint64_t *out_ticket)
{
    struct cuda_device *d = self;

    if (out_ticket == NULL) {
        return FSDP_ERR_INVALID;
    }
    *out_ticket = 1;
    FSDP_TRY(d->failed);
    return stream != NULL ? cuda_device_mark(d, stream, out_ticket) : FSDP_OK;
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
    struct cuda_device *d = self;

    if (stream != NULL) {
        return cuda_device_finish(d, stream);
    }
    for (struct fsdp_stream *s = d->streams; s != NULL; s = s->next) {
        FSDP_TRY(cuda_device_finish(d, s));
    }
    return d->failed;
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
    FSDP_TRY(cuda_device_check(d, cuda_kernels_loadable(),
                               "this build has no kernels for this GPU"));
    FSDP_TRY(cuda_device_check(
        d, cudaHostAlloc(&word, sizeof(int), cudaHostAllocMapped),
        "cudaHostAlloc"));
    d->bad_id = word;
    *d->bad_id = 0;
    FSDP_TRY(stream_open(d, &d->plain));
    return cuda_copies_open(d, &d->copies);
}

int cuda_device_open(const struct fsdp_env *env, struct cuda_watch *watch,
                     int ordinal, struct fsdp_device *out)
{
    struct cuda_device *d = calloc(1, sizeof(*d));
    int status;

    *out = (struct fsdp_device){0};
    if (d == NULL) {
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
    };
    return FSDP_OK;
}

void cuda_device_close(struct fsdp_device *device)
{
    struct cuda_device *d = device->self;

    if (d == NULL) {
        return;
    }
    while (d->streams != NULL) {
        stream_close(d, d->streams);
    }
    cuda_copies_close(d->copies);
    if (d->bad_id != NULL) {
        (void)cudaFreeHost((void *)d->bad_id);
    }
    free(d);
    *device = (struct fsdp_device){0};
}
