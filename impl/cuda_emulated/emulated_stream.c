/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_stream.c - TEST ONLY: streams as queues, and events.
 *
 * Nothing is done when it is enqueued. Who asks for an event makes its stream
 * do what lies before it, and what other streams that one waits for, no more.
 */
#include "emulated.h"
#include "emulated_block.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct emulated_event {
    cudaStream_t stream; /* of the last record */
    uint64_t recorded, done;
    unsigned int users; /* the owner, and items of queues */
    bool shared;        /* with other processes */
    bool timed;
    uint64_t ns; /* of the last that is done */
};

struct item {
    struct item *next;
    struct emulated_work work;
    /* Or, if work.progress is NULL, a record of, or a wait for this: */
    cudaEvent_t event;
    uint64_t number;
    cudaStream_t recorder; /* of a wait: who was to record that number */
};

struct emulated_stream {
    struct item *first, **last;
    struct emulated_stream *next; /* of this thread */
};

static _Thread_local struct emulated_stream *streams;

static void release_event(cudaEvent_t event)
{
    if (--event->users == 0) {
        free(event);
    }
}

static cudaError_t push(cudaStream_t stream, struct item item)
{
    struct item *i = malloc(sizeof(*i));

    if (emulated_broken() != cudaSuccess || i == NULL) {
        free(i);
        return emulated_broken() != cudaSuccess ? emulated_broken()
                                                : cudaErrorMemoryAllocation;
    }
    *i = item;
    i->next = NULL;
    *stream->last = i;
    stream->last = &i->next;
    return cudaSuccess;
}

cudaError_t emulated_push(cudaStream_t stream, struct emulated_work work)
{
    return push(stream, (struct item){.work = work});
}

/* ---- Doing it ---------------------------------------------------------- */

static bool advance(cudaStream_t stream, cudaEvent_t event, uint64_t number);

static bool do_item(struct item *item)
{
    if (item->work.progress != NULL) {
        bool done = item->work.progress(item->work.argument);

        if (done && item->work.done != NULL) {
            item->work.done(item->work.argument);
        }
        return done;
    }
    if (item->recorder != NULL) {
        return item->event->done >= item->number ||
               advance(item->recorder, item->event, item->number);
    }
    item->event->done = item->number;
    if (item->event->timed) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        item->event->ns =
            (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    }
    return true;
}

/* Does what a stream has until `event` has come to `number`; NULL: all. */
static bool advance(cudaStream_t stream, cudaEvent_t event, uint64_t number)
{
    while (stream->first != NULL && (event == NULL || event->done < number)) {
        struct item *item = stream->first;

        if (emulated_broken() != cudaSuccess || !do_item(item)) {
            return false;
        }
        stream->first = item->next;
        if (stream->first == NULL) {
            stream->last = &stream->first;
        }
        if (item->event != NULL) {
            release_event(item->event);
        }
        free(item);
    }
    return event == NULL || event->done >= number;
}

bool emulated_flush(void)
{
    bool all = true;

    for (cudaStream_t s = streams; s != NULL; s = s->next) {
        all = advance(s, NULL, 0) && all;
    }
    return all || emulated_broken() != cudaSuccess;
}

/* ---- Streams and events ------------------------------------------------ */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    *stream = calloc(1, sizeof(**stream));
    if (*stream == NULL || flags != cudaStreamNonBlocking) {
        return cudaErrorInvalidValue;
    }
    (*stream)->last = &(*stream)->first;
    (*stream)->next = streams;
    streams = *stream;
    return cudaSuccess;
}

/* What it was given is done, or never will be. */
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    cudaStream_t *link = &streams;

    (void)advance(stream, NULL, 0);
    while (*link != NULL && *link != stream) {
        link = &(*link)->next;
    }
    if (*link != NULL) {
        *link = stream->next;
    }
    while (stream->first != NULL) {
        struct item *item = stream->first;

        stream->first = item->next;
        if (item->event != NULL) {
            if (item->recorder == NULL) {
                item->event->done = item->number; /* nobody waits for it */
            }
            release_event(item->event);
        } else if (item->work.done != NULL) {
            item->work.done(item->work.argument);
        }
        free(item);
    }
    free(stream);
    return emulated_broken();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    *event = calloc(1, sizeof(**event));
    if (*event == NULL) {
        return cudaErrorMemoryAllocation;
    }
    (*event)->shared = (flags & cudaEventInterprocess) != 0;
    (*event)->timed = (flags & cudaEventDisableTiming) == 0;
    (*event)->users = 1;
    return emulated_broken();
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    release_event(event);
    return emulated_broken();
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    cudaError_t status = push(
        stream, (struct item){.event = event, .number = event->recorded + 1});

    if (status == cudaSuccess) {
        event->stream = stream;
        event->recorded++;
        event->users++;
    }
    /* Another process cannot make this one work: what it waits for is done
     * by the time that it can know of it. */
    while (status == cudaSuccess && event->shared &&
           !advance(stream, event, event->recorded)) {
        status = emulated_broken();
    }
    return status;
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle,
                                  cudaEvent_t event)
{
    memset(handle, 0, sizeof(*handle));
    return event->shared ? emulated_broken() : cudaErrorInvalidValue;
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event,
                                   cudaIpcEventHandle_t handle)
{
    (void)handle;
    return cudaEventCreateWithFlags(event, cudaEventDisableTiming);
}

/* An event that was never recorded is no reason to wait. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned int flags)
{
    cudaError_t status = emulated_broken();

    (void)flags;
    if (status == cudaSuccess && event->recorded > event->done) {
        status = push(stream, (struct item){.event = event,
                                            .number = event->recorded,
                                            .recorder = event->stream});
        event->users += status == cudaSuccess;
    }
    return status;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    bool done = event->done >= event->recorded ||
                advance(event->stream, event, event->recorded);

    if (emulated_broken() != cudaSuccess) {
        return emulated_broken();
    }
    return done ? cudaSuccess : cudaErrorNotReady;
}

/* Of events that a GPU has both come to, and that take times. */
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    if (!start->timed || !end->timed || start->recorded == 0 ||
        end->recorded == 0) {
        return cudaErrorInvalidResourceHandle;
    }
    if (start->done < start->recorded || end->done < end->recorded) {
        return cudaErrorNotReady;
    }
    *ms = (float)((double)(int64_t)(end->ns - start->ns) * 1e-6);
    return emulated_broken();
}

/* ---- Kernels and copies ------------------------------------------------ */

struct kernel {
    struct dim3 grid, block;
    void (*run)(void *);
    void *call;
};

static bool do_kernel(void *self)
{
    struct kernel *k = self;

    if (emulated_fault("launch-dies")) {
        raise(SIGSEGV);
    }
    emulated_memory_open();
    if (emulated_fault("launch")) {
        emulated_break(cudaErrorIllegalAddress);
    } else if (!emulated_grid(k->grid, k->block, k->run, k->call)) {
        fprintf(stderr, "emulated CUDA: threads of a block wait at different "
                        "barriers\n");
        emulated_break(cudaErrorIllegalAddress);
    }
    emulated_memory_close();
    return true;
}

static void end_kernel(void *self)
{
    struct kernel *k = self;

    free(k->call);
    free(k);
}

cudaError_t emulated_launch(const cudaLaunchConfig_t *config,
                            void (*run)(void *), void *kernel)
{
    struct kernel *k = malloc(sizeof(*k));
    cudaError_t status = cudaErrorMemoryAllocation;

    if (k != NULL) {
        *k = (struct kernel){config->gridDim, config->blockDim, run, kernel};
        status = emulated_push(
            config->stream, (struct emulated_work){do_kernel, end_kernel, k});
    }
    if (status != cudaSuccess) {
        free(kernel);
        free(k);
    }
    return status;
}

struct copy {
    void *to;
    const void *from;
    size_t bytes;
};

static bool do_copy(void *self)
{
    struct copy *c = self;

    emulated_memory_open();
    memmove(c->to, c->from, c->bytes);
    emulated_memory_close();
    return true;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t stream)
{
    struct copy *c = malloc(sizeof(*c));
    cudaError_t status = cudaErrorMemoryAllocation;

    (void)kind;
    if (c != NULL) {
        *c = (struct copy){to, from, bytes};
        status =
            emulated_push(stream, (struct emulated_work){do_copy, free, c});
    }
    if (status != cudaSuccess) {
        free(c);
    }
    return status;
}
