/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_queue.h - TEST ONLY: streams as queues, and events, for the files
 * that do their work.
 */
#ifndef FSDP_CTS_EMULATED_QUEUE_H
#define FSDP_CTS_EMULATED_QUEUE_H

#include "emulated.h"

#include <stdatomic.h>

/* The part of an event that processes share, in memory of the one that made
 * it. */
struct emulated_shared {
    _Atomic uint64_t recorded, done;
    _Atomic uint32_t alive;
};

/* An event is kept when it is destroyed, so that its later use is seen. */
struct emulated_event {
    bool alive, timed, opened; /* opened: another process has made it */
    int device;
    cudaStream_t stream; /* of the last record */
    uint64_t recorded, done;
    struct emulated_shared *shared; /* or NULL: then those are there */
    uint64_t ns;                    /* of the last that is done */
};

struct emulated_item {
    struct emulated_item *next;
    struct emulated_work work;
    /* Or, if work.progress is NULL, a record of, or a wait for this: */
    cudaEvent_t event;
    uint64_t number;
    bool waits;
    cudaStream_t recorder; /* of a wait: the stream that was to record it; NULL:
                            * none of this process */
};

struct emulated_stream {
    bool alive;
    int device;
    unsigned int n;      /* items that were given and are not done */
    unsigned int weight; /* how often it is drawn */
    struct emulated_item *first, **last;
    struct emulated_stream *next; /* of this thread */
};

uint64_t emulated_event_recorded(cudaEvent_t event);
uint64_t emulated_event_done(cudaEvent_t event);
/* A record that the stream has come to. */
void emulated_event_reach(cudaEvent_t event, uint64_t number);

enum {
    EMULATED_PLACES = 1024, /* of a stream; a real one has about as many */
};

bool emulated_stream_good(cudaStream_t stream);
cudaError_t emulated_queue_push(cudaStream_t stream, struct emulated_item item);
/* Does what lies before the event's number; false if that waits for others. */
bool emulated_queue_until(cudaStream_t stream, cudaEvent_t event,
                          uint64_t number);
/* Does an operation of some stream, if any can be done. */
void emulated_queue_try(void);
/* Whether work is only done once a caller waits for it. */
bool emulated_queue_late(void);

/* emulated_ipc.c: a place in this process's shared memory; NULL: no room. */
struct emulated_shared *emulated_ipc_event(void);

#endif
