/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_stream.c - the ring of items, its thread, and who waits for it.
 *
 * `given` and `done` count items from 1, so that a ticket, the value of
 * `given` when it was asked for, is never 0. Both are written under the lock
 * and read without it by those who look a few times before they sleep: work
 * is often shorter than waking a thread.
 */
#include "host_stream.h"

#include <fsdp/status.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOKS = 100, /* before sleeping; a few microseconds at most */
};

struct item {
    host_work *work;
    _Alignas(max_align_t) unsigned char argument[HOST_STREAM_ARGUMENT];
};

struct host_stream {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more; /* given has grown, or the stream closes */
    pthread_cond_t less; /* done has grown */
    _Atomic uint64_t given;
    _Atomic uint64_t done;
    bool closing;
    int status;         /* the first failure */
    uint64_t failed_at; /* the first ticket that contains it */
    /* The owner, and each wait for this stream in another one's queue. */
    _Atomic uint32_t users;
    struct item ring[HOST_STREAM_ITEMS];
};

struct order {
    struct host_stream *earlier;
    uint64_t ticket;
};

/* True as soon as *count >= least; false if that takes longer. */
static bool soon(_Atomic uint64_t *count, uint64_t least)
{
    for (int i = 0; i < LOOKS; i++) {
        if (atomic_load_explicit(count, memory_order_acquire) >= least) {
            return true;
        }
#ifdef __x86_64__
        __builtin_ia32_pause();
#endif
    }
    return false;
}

static struct item *item_at(struct host_stream *s, uint64_t i)
{
    return &s->ring[i % HOST_STREAM_ITEMS];
}

/* Waits for the item after `done`; false if there will be none. Returns with
 * the lock held. */
static bool next_item(struct host_stream *s, uint64_t done)
{
    (void)soon(&s->given, done + 1);
    pthread_mutex_lock(&s->lock);
    while (s->given == done && !s->closing) {
        pthread_cond_wait(&s->more, &s->lock);
    }
    return s->given != done;
}

static void *work_through(void *self)
{
    struct host_stream *s = self;
    uint64_t done = s->done;

    while (next_item(s, done)) {
        struct item *item = item_at(s, done);
        int failed = s->status;
        int status;

        pthread_mutex_unlock(&s->lock);
        status = item->work(item->argument, failed);
        done++;
        pthread_mutex_lock(&s->lock);
        if (failed == FSDP_OK && status != FSDP_OK) {
            s->status = status;
            s->failed_at = done;
        }
        s->done = done;
        pthread_cond_broadcast(&s->less);
        pthread_mutex_unlock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- Open and close ---------------------------------------------------- */

static void release(struct host_stream *s)
{
    if (atomic_fetch_sub(&s->users, 1) == 1) {
        pthread_cond_destroy(&s->less);
        pthread_cond_destroy(&s->more);
        pthread_mutex_destroy(&s->lock);
        free(s);
    }
}

static int make(struct host_stream **out)
{
    struct host_stream *s = calloc(1, sizeof(*s));

    if (s == NULL) {
        return FSDP_ERR_NOMEM;
    }
    if (pthread_mutex_init(&s->lock, NULL) != 0) {
        goto no_lock;
    }
    if (pthread_cond_init(&s->more, NULL) != 0) {
        goto no_more;
    }
    if (pthread_cond_init(&s->less, NULL) != 0) {
        goto no_less;
    }
    s->given = 1;
    s->done = 1;
    s->users = 1;
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
    char shown[16];
    sigset_t all;
    sigset_t before;
    int status;

    *out = NULL;
    FSDP_TRY(make(&s));
    /* Signals that the process gets are for those who know what to do. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    status = pthread_create(&s->thread, NULL, work_through, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (status != 0) {
        release(s);
        return FSDP_ERR_NOMEM;
    }
    if (name != NULL) {
        snprintf(shown, sizeof(shown), "%s", name);
        (void)pthread_setname_np(s->thread, shown); /* for debuggers only */
    }
    *out = s;
    return FSDP_OK;
}

void host_stream_close(struct host_stream *s)
{
    if (s == NULL) {
        return;
    }
    pthread_mutex_lock(&s->lock);
    s->closing = true;
    pthread_cond_signal(&s->more);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    release(s);
}

/* ---- Work and order ---------------------------------------------------- */

int host_stream_push(struct host_stream *s, host_work *work,
                     const void *argument, size_t bytes)
{
    struct item *item;

    if (bytes > HOST_STREAM_ARGUMENT) {
        return FSDP_ERR_INVALID;
    }
    pthread_mutex_lock(&s->lock);
    while (s->given - s->done == HOST_STREAM_ITEMS) {
        pthread_cond_wait(&s->less, &s->lock);
    }
    item = item_at(s, s->given);
    item->work = work;
    if (bytes > 0) {
        memcpy(item->argument, argument, bytes);
    }
    s->given++;
    pthread_cond_signal(&s->more);
    pthread_mutex_unlock(&s->lock);
    return FSDP_OK;
}

uint64_t host_stream_mark(struct host_stream *s)
{
    return s->given;
}

int host_stream_wait(struct host_stream *s, uint64_t ticket)
{
    uint64_t least = ticket != 0 ? ticket : s->given;
    int status;

    if (least > s->given) {
        return FSDP_ERR_INVALID;
    }
    (void)soon(&s->done, least);
    pthread_mutex_lock(&s->lock);
    while (s->done < least) {
        pthread_cond_wait(&s->less, &s->lock);
    }
    status = s->failed_at != 0 && s->failed_at <= least ? s->status : FSDP_OK;
    pthread_mutex_unlock(&s->lock);
    return status;
}

/* A stream that has failed waits all the same: when it is done, so is all that
 * it was ordered after, and memory may be freed. */
static int wait_for_earlier(void *argument, int failed)
{
    struct order *o = argument;
    int status = host_stream_wait(o->earlier, o->ticket);

    release(o->earlier);
    return failed != FSDP_OK ? failed : status;
}

int host_stream_order(struct host_stream *later, struct host_stream *earlier,
                      uint64_t ticket)
{
    struct order o = {earlier, ticket != 0 ? ticket : earlier->given};
    int status;

    if (o.ticket > earlier->given) {
        return FSDP_ERR_INVALID;
    }
    if (later == earlier) {
        return FSDP_OK; /* in order as it is */
    }
    atomic_fetch_add(&earlier->users, 1);
    status = host_stream_push(later, wait_for_earlier, &o, sizeof(o));
    if (status != FSDP_OK) {
        release(earlier);
    }
    return status;
}
