/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_event.c - TEST ONLY: events, those that processes share too.
 */
#include "emulated_queue.h"

#include <stdlib.h>
#include <time.h>

uint64_t emulated_event_recorded(cudaEvent_t event)
{
    return event->shared ? atomic_load(&event->shared->recorded)
                         : event->recorded;
}

uint64_t emulated_event_done(cudaEvent_t event)
{
    return event->shared ? atomic_load(&event->shared->done) : event->done;
}

void emulated_event_reach(cudaEvent_t event, uint64_t number)
{
    if (event->shared) {
        atomic_store(&event->shared->done, number);
    } else {
        event->done = number;
    }
    if (event->timed) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        event->ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    }
}

/* An event that can be used; INVALID_RESOURCE_HANDLE else. */
static cudaError_t check_event(cudaEvent_t event)
{
    if (emulated_broken() != cudaSuccess) {
        return emulated_broken();
    }
    if (!event || !event->alive) {
        return emulated_say(cudaErrorInvalidResourceHandle);
    }
    if (event->opened && atomic_load(&event->shared->alive) == 0) {
        emulated_undefined("an event that the process which made it has "
                           "destroyed");
    }
    return emulated_broken();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    const unsigned int known =
        cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
    bool shared = (flags & cudaEventInterprocess) != 0;
    struct emulated_event *e;

    emulated_turn();
    if (!event || (flags & ~known) != 0 ||
        (shared && (flags & cudaEventDisableTiming) == 0)) {
        return emulated_say(cudaErrorInvalidValue);
    }
    e = calloc(1, sizeof(*e));
    if (e && shared) {
        e->shared = emulated_ipc_event();
    }
    if (!e || (shared && !e->shared)) {
        free(e);
        return emulated_say(cudaErrorMemoryAllocation);
    }
    e->alive = true;
    e->device = emulated_device();
    e->timed = (flags & cudaEventDisableTiming) == 0;
    *event = e;
    return emulated_say(cudaSuccess);
}

/* The event is kept: queues may still refer to it. */
cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    if (!event || !event->alive) {
        return emulated_say(cudaErrorInvalidResourceHandle);
    }
    event->alive = false;
    if (event->shared && !event->opened) {
        atomic_store(&event->shared->alive, 0);
    }
    return emulated_say(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    cudaError_t status = check_event(event);
    uint64_t number;

    emulated_turn();
    if (status != cudaSuccess) {
        return status;
    }
    if (!emulated_stream_good(stream) || event->device != stream->device) {
        return emulated_say(cudaErrorInvalidResourceHandle);
    }
    number = emulated_event_recorded(event) + 1;
    status = emulated_queue_push(
        stream, (struct emulated_item){.event = event, .number = number});
    if (status != cudaSuccess) {
        return status;
    }
    event->stream = stream;
    if (event->shared) {
        atomic_store(&event->shared->recorded, number);
    } else {
        event->recorded = number;
    }
    /* Where work is late another process cannot make this one work. So all work
     * before the event is done by the time that the other can know of it. */
    while (status == cudaSuccess && event->shared && emulated_queue_late() &&
           !emulated_queue_until(stream, event, number)) {
        status = emulated_broken();
    }
    return status;
}

/* An event that was never recorded is no reason to wait. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned int flags)
{
    cudaError_t status = check_event(event);

    emulated_turn();
    if (status != cudaSuccess) {
        return status;
    }
    if (!emulated_stream_good(stream)) {
        return emulated_say(cudaErrorInvalidResourceHandle);
    }
    if (flags != 0) {
        return emulated_say(cudaErrorInvalidValue);
    }
    if (emulated_event_recorded(event) > emulated_event_done(event)) {
        status = emulated_queue_push(
            stream,
            (struct emulated_item){.event = event,
                                   .number = emulated_event_recorded(event),
                                   .waits = true,
                                   .recorder = event->stream});
    }
    return status;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    cudaError_t status = check_event(event);
    uint64_t number;

    if (status != cudaSuccess) {
        return status;
    }
    number = emulated_event_recorded(event);
    if (emulated_event_done(event) < number) {
        if (emulated_queue_late() && event->stream) {
            (void)emulated_queue_until(event->stream, event, number);
        } else {
            emulated_queue_try();
        }
    }
    if (emulated_broken() != cudaSuccess) {
        return emulated_broken();
    }
    if (emulated_event_done(event) < number) {
        return emulated_say(cudaErrorNotReady);
    }
    emulated_memory_waited();
    return emulated_say(cudaSuccess);
}

/* For two events that a GPU has come to, and that take times. */
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    cudaError_t status = check_event(start);

    status = status == cudaSuccess ? check_event(end) : status;
    if (status != cudaSuccess) {
        return status;
    }
    if (!ms) {
        return emulated_say(cudaErrorInvalidValue);
    }
    if (!start->timed || !end->timed || start->recorded == 0 ||
        end->recorded == 0 || start->device != end->device) {
        return emulated_say(cudaErrorInvalidResourceHandle);
    }
    if (start->done < start->recorded || end->done < end->recorded) {
        return emulated_say(cudaErrorNotReady);
    }
    *ms = (float)((double)(int64_t)(end->ns - start->ns) * 1e-6);
    return emulated_say(cudaSuccess);
}
