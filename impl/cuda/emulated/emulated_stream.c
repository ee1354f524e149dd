/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_stream.c - TEST ONLY: streams as queues, and the order in which
 * their work is done.
 *
 * Late: nothing is done when it is enqueued. A call that waits for an event
 * makes the event's stream do the work before it, and that of other streams
 * which this work waits for, no more. Early: whatever can be done is done at
 * every call. Drawn: at every call so many operations of such streams as the
 * dice say; what they favour changes now and then, so that one stream may stand
 * still while another runs far ahead, or the host ahead of all. A wait does one
 * operation at least, of a stream that can: so every wait ends.
 */
#include "emulated_block.h"
#include "emulated_queue.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LATE,
    EARLY,
    DRAWN
};

static _Thread_local struct emulated_stream *streams;
static _Thread_local _Atomic unsigned int hanging;
static _Thread_local bool busy; /* work does not call for more work */

/* ---- Dice -------------------------------------------------------------- */

static int order(void)
{
    const char *text = getenv("FSDP_EMULATED_ORDER");

    if (!text || strcmp(text, "late") == 0) {
        return LATE;
    }
    return strcmp(text, "early") == 0 ? EARLY : DRAWN;
}

bool emulated_queue_late(void)
{
    return order() == LATE;
}

/* splitmix64. */
static uint64_t draw(void)
{
    static _Thread_local uint64_t state;
    uint64_t x;

    if (state == 0) {
        const char *text = getenv("FSDP_EMULATED_ORDER");

        state = (text ? strtoull(text, NULL, 10) : 0) * 1000003 +
                emulated_rank() + 1;
    }
    x = state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* What the dice favour: how many operations in a call, and which streams. */
static unsigned int most_of_a_call(void)
{
    static const unsigned int weights[] = {0, 1, 1, 8};
    static const unsigned int most[] = {0, 0, 1, 3, 64};
    static _Thread_local unsigned int now;

    if (draw() % 48 == 0) {
        now = most[draw() % 5];
        for (cudaStream_t s = streams; s; s = s->next) {
            s->weight = weights[draw() % 4];
        }
    }
    return now > 0 ? (unsigned int)(draw() % (now + 1)) : 0;
}

/* ---- Doing it ---------------------------------------------------------- */

/* `deep`: what another stream has to do first, it does now. */
static bool do_item(struct emulated_item *item, bool deep)
{
    if (item->work.progress) {
        bool done = item->work.progress(item->work.argument);

        if (done && item->work.done) {
            item->work.done(item->work.argument);
        }
        return done;
    }
    if (item->waits) {
        return emulated_event_done(item->event) >= item->number ||
               (deep && item->recorder &&
                emulated_queue_until(item->recorder, item->event,
                                     item->number));
    }
    emulated_event_reach(item->event, item->number);
    return true;
}

/* The first operation of a stream. */
static bool step(cudaStream_t stream, bool deep)
{
    struct emulated_item *item = stream->first;

    if (!item || emulated_broken() != cudaSuccess || !do_item(item, deep)) {
        return false;
    }
    stream->first = item->next;
    stream->n--;
    if (!stream->first) {
        stream->last = &stream->first;
    }
    free(item);
    return true;
}

bool emulated_queue_until(cudaStream_t stream, cudaEvent_t event,
                          uint64_t number)
{
    while (stream->first && (!event || emulated_event_done(event) < number)) {
        if (!step(stream, true)) {
            return false;
        }
    }
    return !event || emulated_event_done(event) >= number;
}

/* By weight; one that cannot go on costs its turn. */
static bool step_drawn(void)
{
    uint64_t all = 0;
    uint64_t at;

    for (cudaStream_t s = streams; s; s = s->next) {
        all += s->first ? s->weight : 0;
    }
    if (all == 0) {
        return false;
    }
    at = draw() % all;
    for (cudaStream_t s = streams; s; s = s->next) {
        uint64_t mine = s->first ? s->weight : 0;

        if (at < mine) {
            return step(s, false);
        }
        at -= mine;
    }
    return false;
}

static bool step_any(void)
{
    for (cudaStream_t s = streams; s; s = s->next) {
        if (step(s, false)) {
            return true;
        }
    }
    return false;
}

void emulated_turn(void)
{
    int how = order();

    if (how == LATE || busy) {
        return;
    }
    busy = true;
    if (how == EARLY) {
        while (step_any()) {
        }
    } else {
        for (unsigned int n = most_of_a_call(); n > 0; n--) {
            (void)step_drawn();
        }
    }
    busy = false;
}

void emulated_queue_try(void)
{
    emulated_turn();
    if (order() == DRAWN && !busy) {
        busy = true;
        if (!step_drawn()) {
            (void)step_any();
        }
        busy = false;
    }
}

int emulated_yield(void)
{
    emulated_queue_try();
    return sched_yield();
}

static bool all_empty(void)
{
    for (cudaStream_t s = streams; s; s = s->next) {
        if (s->first) {
            return false;
        }
    }
    return true;
}

bool emulated_pending(void)
{
    return !all_empty();
}

bool emulated_flush(void)
{
    if (order() == LATE) {
        for (cudaStream_t s = streams; s; s = s->next) {
            (void)emulated_queue_until(s, NULL, 0);
        }
    } else {
        while (order() == DRAWN && step_drawn()) {
        }
        while (step_any()) {
        }
    }
    return all_empty() || emulated_broken() != cudaSuccess;
}

void emulated_wait(cudaStream_t stream)
{
    emulated_wait_for_device();
    while (stream->first && emulated_broken() == cudaSuccess) {
        if (order() == LATE) {
            (void)emulated_queue_until(stream, NULL, 0);
        } else {
            emulated_queue_try();
        }
        emulated_wait_for_device();
    }
    emulated_memory_waited();
}

_Atomic unsigned int *emulated_hanging(void)
{
    return &hanging;
}

void emulated_wait_for_device(void)
{
    while (atomic_load(&hanging) > 0 && emulated_broken() == cudaSuccess) {
        usleep(1000);
    }
}

/* ---- Streams ----------------------------------------------------------- */

bool emulated_stream_good(cudaStream_t stream)
{
    return stream && stream->alive;
}

/* A caller that gives a stream more than it holds waits within the runtime,
 * while the device goes on with whatever it can. */
static void wait_for_a_place(cudaStream_t stream)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;

    if (stream->n >= EMULATED_PLACES && !atomic_flag_test_and_set(&told)) {
        fprintf(stderr,
                "emulated CUDA: a launch behind %d others waits where "
                "nobody looks around\n",
                EMULATED_PLACES);
    }
    while (stream->n >= EMULATED_PLACES && emulated_broken() == cudaSuccess) {
        if (!step(stream, order() == LATE) && !step_any()) {
            usleep(50);
        }
    }
}

cudaError_t emulated_queue_push(cudaStream_t stream, struct emulated_item item)
{
    struct emulated_item *i;

    if (!busy) {
        busy = true;
        wait_for_a_place(stream);
        busy = false;
    }
    if (emulated_broken() != cudaSuccess) {
        return emulated_broken();
    }
    i = malloc(sizeof(*i));
    if (!i) {
        return emulated_say(cudaErrorMemoryAllocation);
    }
    *i = item;
    i->next = NULL;
    stream->n++;
    *stream->last = i;
    stream->last = &i->next;
    return cudaSuccess;
}

cudaError_t emulated_push(cudaStream_t stream, struct emulated_work work)
{
    return emulated_queue_push(stream, (struct emulated_item){.work = work});
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    struct emulated_stream *s;

    emulated_turn();
    if (!stream || (flags & ~cudaStreamNonBlocking) != 0) {
        return emulated_say(cudaErrorInvalidValue);
    }
    if (flags != cudaStreamNonBlocking) {
        emulated_undefined("a stream that waits for the default stream");
    }
    /* The memory that threads of blocks need is taken with the first stream,
     * not by the first kernel that has so many: a process grows by what an
     * engine does in its run. A thread that only chooses a GPU makes no
     * stream. */
    s = emulated_block_make() ? calloc(1, sizeof(*s)) : NULL;
    if (!s) {
        return emulated_say(cudaErrorMemoryAllocation);
    }
    s->alive = true;
    s->device = emulated_device();
    s->weight = 1;
    s->last = &s->first;
    s->next = streams;
    streams = s;
    *stream = s;
    return emulated_say(cudaSuccess);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    if (!emulated_stream_good(stream)) {
        return emulated_say(cudaErrorInvalidResourceHandle);
    }
    if (stream->first && emulated_broken() == cudaSuccess) {
        if (order() == LATE) {
            (void)emulated_queue_until(stream, NULL, 0);
        } else {
            emulated_queue_try();
        }
    }
    if (stream->first) {
        return emulated_say(cudaErrorNotReady);
    }
    emulated_memory_waited();
    return emulated_say(cudaSuccess);
}

/* The stream's work is done, or never will be. */
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    cudaStream_t *link = &streams;

    if (!emulated_stream_good(stream)) {
        return emulated_say(cudaErrorInvalidResourceHandle);
    }
    (void)emulated_queue_until(stream, NULL, 0);
    while (*link && *link != stream) {
        link = &(*link)->next;
    }
    if (*link) {
        *link = stream->next;
    }
    while (stream->first) {
        struct emulated_item *item = stream->first;

        stream->first = item->next;
        if (!item->work.progress && !item->waits) {
            emulated_event_reach(item->event, item->number);
        } else if (item->work.done) {
            item->work.done(item->work.argument);
        }
        free(item);
    }
    stream->last = &stream->first;
    stream->n = 0;
    stream->alive = false;
    return emulated_say(cudaSuccess);
}
