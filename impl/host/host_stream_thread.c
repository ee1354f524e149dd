/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_stream_thread.c - a stream's thread: its life, and its naps.
 *
 * A thread is not woken for little work. One that has run out of work naps, and
 * is not woken as long as it is given little, because a thread that needs the
 * result will most likely be faster itself. Whatever no thread has needed by
 * the end of the nap, the stream's thread does. So all work gets done, even if
 * no thread waits for it, as other ranks and other threads may count on. When a
 * nap ends and other threads have done all that was given meanwhile, the next
 * nap is twice as long, up to a bound: with many ranks on few cores naps would
 * otherwise end more often than anything is given. When a nap ends and nothing
 * was given at all, the thread sleeps until it is given something, however
 * little.
 */
#include "host_stream_state.h"

#include <errno.h>
#include <fsdp/status.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    NAP_NS = 500000,
    LONGEST_NAP_NS = 16 * NAP_NS,
};

static struct timespec end_of_nap(int64_t ns)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += ns;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

/* Returns when the thread is woken, or when a nap ends and it finds work that
 * no other thread is doing. */
static void doze(struct host_stream *s)
{
    int64_t ns = NAP_NS;
    struct timespec end = end_of_nap(ns);
    uint64_t given = s->given;

    s->rest = HOST_STREAM_NAPPING;
    while (s->rest == HOST_STREAM_NAPPING) {
        if (pthread_cond_timedwait(&s->more, &s->lock, &end) != ETIMEDOUT ||
            s->rest == HOST_STREAM_UP) {
            continue;
        }
        if (s->given != s->done && !s->busy) {
            s->rest = HOST_STREAM_UP;
        } else if (s->given == given && s->given == s->done) {
            s->rest = HOST_STREAM_ASLEEP;
        }
        given = s->given;
        ns = ns < LONGEST_NAP_NS ? 2 * ns : ns;
        end = end_of_nap(ns);
    }
    while (s->rest == HOST_STREAM_ASLEEP) {
        pthread_cond_wait(&s->more, &s->lock);
    }
}

/* Waits for something to do; false once the stream ends. */
static bool has_work(struct host_stream *s)
{
    while (s->given == s->done || s->busy) {
        if (s->closing && s->given == s->done) {
            return false;
        }
        pthread_mutex_unlock(&s->lock);
        (void)host_stream_soon(&s->given, s->done + 1);
        pthread_mutex_lock(&s->lock);
        if (s->busy || (s->given == s->done && !s->closing)) {
            doze(s);
        }
    }
    return true;
}

static void *work_through(void *self)
{
    struct host_stream *s = self;

    /* The thread names itself: the name of another thread is written through
     * /proc, whose entries for it the kernel then looks for when the process
     * ends. */
    if (s->name[0] != '\0') {
        (void)pthread_setname_np(pthread_self(), s->name);
    }
    pthread_mutex_lock(&s->lock);
    while (has_work(s)) {
        host_stream_advance(s);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- Open and close ---------------------------------------------------- */

/* The lock is never held for longer than it takes to copy an item. */
static int make_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attributes;
    int status = pthread_mutexattr_init(&attributes);

    if (status == 0) {
#ifdef __GLIBC__
        (void)pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
#endif
        status = pthread_mutex_init(lock, &attributes);
        pthread_mutexattr_destroy(&attributes);
    }
    return status;
}

/* Naps end by a clock that cannot be set. */
static int make_more(pthread_cond_t *more)
{
    pthread_condattr_t attributes;
    int status = pthread_condattr_init(&attributes);

    if (status == 0) {
        status = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        if (status == 0) {
            status = pthread_cond_init(more, &attributes);
        }
        pthread_condattr_destroy(&attributes);
    }
    return status;
}

static int make(struct host_stream **out)
{
    struct host_stream *s = malloc(sizeof(*s));

    if (!s) {
        return FSDP_ERR_NOMEM;
    }
    /* The ring is not cleared: an item is written before it is read, and most
     * items are never used. */
    memset(s, 0, offsetof(struct host_stream, ring));
    if (make_lock(&s->lock) != 0) {
        goto no_lock;
    }
    if (make_more(&s->more) != 0) {
        goto no_more;
    }
    if (pthread_cond_init(&s->less, NULL) != 0) {
        goto no_less;
    }
    s->given = 1;
    s->done = 1;
    s->users = 1;
    s->wanted = UINT64_MAX;
    *out = s;
    return FSDP_OK;
no_less:
    pthread_cond_destroy(&s->more);
no_more:
    pthread_mutex_destroy(&s->lock);
no_lock:
    free(s);
    return FSDP_ERR_NOMEM;
}

int host_stream_open(const char *name, struct host_stream **out)
{
    struct host_stream *s = NULL;
    sigset_t all;
    sigset_t before;
    int status;

    *out = NULL;
    FSDP_TRY(make(&s));
    snprintf(s->name, sizeof(s->name), "%s", name ? name : "");
    /* Signals to the process are left to threads that handle them. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    status = pthread_create(&s->thread, NULL, work_through, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (status != 0) {
        host_stream_release(s);
        return FSDP_ERR_NOMEM;
    }
    *out = s;
    return FSDP_OK;
}

void host_stream_close(struct host_stream *s)
{
    if (!s) {
        return;
    }
    pthread_mutex_lock(&s->lock);
    s->closing = true;
    host_stream_hand_back(s);
    pthread_join(s->thread, NULL);
    host_stream_release(s);
}
