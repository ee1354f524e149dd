/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_trace.c - what ran when, for people: times from events, for traces
 * (device.h, stamp), and ranges for profilers that read NVTX.
 *
 * A time is an event behind the work. It is known when the host has waited for
 * the event: so long after another event, whose time the host knows. Nothing is
 * made, recorded or asked unless a trace is wanted, and where no profiler looks
 * a range costs a call through a pointer that is NULL.
 */
#include "cuda_trace.h"

#include "cuda_state.h"

#include <nvtx3/nvToolsExt.h>
#include <stdlib.h>
#include <time.h>

enum {
    TRIES = 8,     /* at the moment of the base */
    FAR_MS = 1000, /* a float has no microseconds much beyond */
    NS_OF_MS = 1000000,
};

static uint64_t now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- Times ------------------------------------------------------------- */

static int make_event(struct cuda_device *d, cudaEvent_t *event)
{
    return cuda_device_check(d, cudaEventCreateWithFlags(event, 0),
                             "cudaEventCreate");
}

/* When an event that has nothing to wait for happens, by the host's clock:
 * between these two. */
static int look_once(struct cuda_device *d, cudaEvent_t event, uint64_t *before,
                     uint64_t *behind)
{
    struct cuda_wait wait = {0, 0};
    cudaError_t error;

    *before = now();
    error = cudaEventRecord(event, d->trace.clock->cuda);
    if (error == cudaSuccess) {
        error = cudaEventQuery(event);
    }
    while (error == cudaErrorNotReady) {
        FSDP_TRY(cuda_device_look(d, &wait));
        error = cudaEventQuery(event);
    }
    *behind = now();
    return cuda_device_check(d, error, "an event for traces");
}

/* The base is the event that is known best of some. */
static int begin_clock(struct cuda_device *d)
{
    struct cuda_trace *t = &d->trace;
    cudaEvent_t other = NULL;
    uint64_t best = UINT64_MAX;
    int status = FSDP_OK;

    FSDP_TRY(cuda_stream_open(d, "clock", &t->clock));
    FSDP_TRY(make_event(d, &t->base));
    FSDP_TRY(make_event(d, &other));
    for (int i = 0; i < TRIES && status == FSDP_OK; i++) {
        uint64_t before = 0;
        uint64_t behind = 0;

        status = look_once(d, other, &before, &behind);
        if (status == FSDP_OK && behind - before < best) {
            cudaEvent_t swapped = t->base;

            best = behind - before;
            t->base_ns = before + best / 2;
            t->base = other;
            other = swapped;
        }
    }
    (void)cudaEventDestroy(other);
    return status;
}

static int take_stamp(struct cuda_device *d, struct cuda_stamp **out)
{
    struct cuda_stamp *s = d->trace.free;
    int status;

    *out = s;
    if (s) {
        d->trace.free = s->next;
        return FSDP_OK;
    }
    s = calloc(1, sizeof(*s));
    if (!s) {
        return FSDP_ERR_NOMEM;
    }
    status = make_event(d, &s->event);
    if (status != FSDP_OK) {
        free(s);
        return status;
    }
    *out = s;
    return FSDP_OK;
}

static void give(struct cuda_device *d, struct cuda_stamp *s)
{
    s->next = d->trace.free;
    d->trace.free = s;
}

int cuda_trace_stamp(struct cuda_device *d, struct fsdp_stream *stream,
                     uint64_t *ns)
{
    struct cuda_stamp *s = NULL;

    FSDP_TRY(d->failed);
    if (!stream) {
        *ns = now();
        return FSDP_OK;
    }
    if (!d->trace.clock) {
        FSDP_TRY(begin_clock(d));
    }
    FSDP_TRY(take_stamp(d, &s));
    if (cuda_device_check(d, cudaEventRecord(s->event, stream->cuda),
                          "cudaEventRecord") != FSDP_OK) {
        give(d, s);
        return d->failed;
    }
    stream->fresh = true;
    s->ns = ns;
    s->ticket = stream->given + 1;
    s->next = NULL;
    *stream->last = s;
    stream->last = &s->next;
    return FSDP_OK;
}

/* The base moves on, while a float still tells microseconds. */
static int tell_time(struct cuda_device *d, struct fsdp_stream *stream,
                     struct cuda_stamp *s)
{
    struct cuda_trace *t = &d->trace;
    float ms = 0.0f;
    uint64_t ns;

    FSDP_TRY(cuda_device_check(d, cudaEventElapsedTime(&ms, t->base, s->event),
                               "cudaEventElapsedTime"));
    ns = t->base_ns + (uint64_t)(int64_t)((double)ms * NS_OF_MS);
    ns = ns > stream->latest_ns ? ns : stream->latest_ns;
    stream->latest_ns = ns;
    *s->ns = ns;
    if (ms > FAR_MS) {
        cudaEvent_t far = s->event;

        s->event = t->base;
        t->base = far;
        t->base_ns = ns;
    }
    return FSDP_OK;
}

int cuda_trace_tell(struct cuda_device *d, struct fsdp_stream *stream,
                    uint64_t ticket)
{
    while (stream->first && stream->first->ticket <= ticket) {
        struct cuda_stamp *s = stream->first;

        FSDP_TRY(tell_time(d, stream, s));
        stream->first = s->next;
        stream->last = s->next ? stream->last : &stream->first;
        give(d, s);
    }
    return FSDP_OK;
}

void cuda_trace_forget(struct cuda_device *d, struct fsdp_stream *stream)
{
    while (stream->first) {
        struct cuda_stamp *s = stream->first;

        stream->first = s->next;
        give(d, s);
    }
    stream->last = &stream->first;
}

void cuda_trace_close(struct cuda_device *d)
{
    struct cuda_trace *t = &d->trace;

    while (t->free) {
        struct cuda_stamp *s = t->free;

        t->free = s->next;
        (void)cudaEventDestroy(s->event);
        free(s);
    }
    if (t->base) {
        (void)cudaEventDestroy(t->base);
        t->base = NULL;
    }
}

/* ---- Ranges ------------------------------------------------------------ */

static nvtxEventAttributes_t attributes(const char *name, uint32_t unit)
{
    nvtxEventAttributes_t a = {0};

    a.version = NVTX_VERSION;
    a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    a.messageType = NVTX_MESSAGE_TYPE_ASCII;
    a.message.ascii = name;
    if (unit != FSDP_NO_UNIT) {
        a.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
        a.payload.ullValue = unit;
    }
    return a;
}

void cuda_trace_push(const char *name, uint32_t unit)
{
    nvtxEventAttributes_t a = attributes(name, unit);

    (void)nvtxRangePushEx(&a);
}

void cuda_trace_pop(void)
{
    (void)nvtxRangePop();
}

void cuda_trace_live(struct cuda_device *d, uint32_t kind, uint32_t unit,
                     const void *p)
{
    struct cuda_trace *t = &d->trace;
    nvtxEventAttributes_t a;
    unsigned int i = 0;

    if (kind != FSDP_PARAM_FULL) {
        return;
    }
    while (i < t->windows && t->window[i].range != 0) {
        i++;
    }
    if (i == CUDA_WINDOWS) {
        return;
    }
    a = attributes("unit", unit);
    t->window[i].p = p;
    t->window[i].range = nvtxRangeStartEx(&a);
    t->windows += i == t->windows && t->window[i].range != 0;
}

void cuda_trace_dead(struct cuda_device *d, const void *p)
{
    struct cuda_trace *t = &d->trace;

    for (unsigned int i = 0; i < t->windows; i++) {
        if (t->window[i].p == p && t->window[i].range != 0) {
            nvtxRangeEnd(t->window[i].range);
            t->window[i].range = 0;
        }
    }
}
