/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_stream_state.h - the fields of a stream, for host_stream.c and
 * host_stream_thread.c alone.
 *
 * `given` and `done` count items from 1, so that a ticket, the value of `given`
 * when it was asked for, is never 0. Both are written under the lock and read
 * without it by threads that look a few times before they sleep.
 */
#ifndef FSDP_CTS_HOST_STREAM_STATE_H
#define FSDP_CTS_HOST_STREAM_STATE_H

#include "host_stream.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
    HOST_STREAM_LOOKS = 300, /* before sleeping; a few microseconds */
};

/* What the stream's thread does while it has no work. */
enum host_stream_rest {
    HOST_STREAM_UP,      /* it looks for work */
    HOST_STREAM_NAPPING, /* it will look in a while */
    HOST_STREAM_ASLEEP,  /* it has to be woken */
};

struct host_stream_item {
    host_work *work; /* NULL: the argument is an order */
    uint64_t ns;     /* about how long it takes */
    _Alignas(max_align_t) unsigned char argument[HOST_STREAM_ARGUMENT];
};

struct host_stream {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more; /* wakes its thread: there is something to do */
    pthread_cond_t less; /* done has grown to `wanted` */
    _Atomic uint64_t given;
    _Atomic uint64_t done;
    uint64_t wanted; /* the least that a sleeper on `less` waits for */
    uint64_t ns;     /* of the items that were given and are not done */
    uint64_t wakes;  /* of its thread, from a nap */
    enum host_stream_rest rest;
    bool busy; /* a thread is doing the item after `done` */
    bool closing;
    char name[16];              /* for debuggers only */
    int status;                 /* the first failure */
    _Atomic uint64_t failed_at; /* the first ticket that includes it, or 0 */
    /* Counts the owner, each wait for this stream in another one's queue, each
     * thread that does such a wait, and everyone that retains the stream. */
    _Atomic uint32_t users;
    struct host_stream_item ring[HOST_STREAM_ITEMS]; /* the last */
};

/* True as soon as *count >= least; false if that takes longer. */
static inline bool host_stream_soon(_Atomic uint64_t *count, uint64_t least)
{
    for (int i = 0; i < HOST_STREAM_LOOKS; i++) {
        if (atomic_load_explicit(count, memory_order_acquire) >= least) {
            return true;
        }
#ifdef __x86_64__
        __builtin_ia32_pause();
#endif
    }
    return false;
}

/* Does the item after `done`, or waits until its turn has come or is over. The
 * caller knows that there is such an item, and that no thread is doing it. The
 * lock is held before and after. */
void host_stream_advance(struct host_stream *s);

/* Gives back the lock. The stream's thread goes on where a helper stops, or
 * with new items, if that is worth waking it; or it ends. */
void host_stream_hand_back(struct host_stream *s);

#endif
