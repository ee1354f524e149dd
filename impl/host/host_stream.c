/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_stream.c - the ring of items, its thread, and who waits for it.
 *
 * Work is often shorter than waking a thread. So whoever waits for a stream
 * that has work to do, but whose thread is not at it, does that work himself:
 * a stream is a queue with an order, and its thread is who does it if nobody
 * else is in a hurry. An item is done by one thread at a time, in order, and
 * nobody ever does an item that he does not wait for. An item that waits for
 * another stream is not begun before that has come so far: its turn is taken
 * by whoever finds it ready. Waits go back in the order in which work was
 * given, so they end, and chains of helpers are no longer than there are
 * streams.
 *
 * `given` and `done` count items from 1, so that a ticket, the value of
 * `given` when it was asked for, is never 0. Both are written under the lock
 * and read without it by those who look a few times before they sleep.
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
    LOOKS = 300, /* before sleeping; a few microseconds */
};

struct order {
    struct host_stream *earlier;
    uint64_t ticket;
};

struct item {
    host_work *work; /* NULL: the argument is a struct order */
    _Alignas(max_align_t) unsigned char argument[HOST_STREAM_ARGUMENT];
};

struct host_stream {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more; /* for its thread: there is something to do */
    pthread_cond_t less; /* done has grown to `wanted` */
    _Atomic uint64_t given;
    _Atomic uint64_t done;
    uint64_t wanted; /* the least that a sleeper on `less` waits for */
    bool busy;       /* somebody does the item after `done` */
    bool asleep;     /* its thread is, on `more` */
    bool closing;
    int status;                 /* the first failure */
    _Atomic uint64_t failed_at; /* the first ticket that contains it, or 0 */
    /* The owner, each wait for this stream in another one's queue, and who
     * has taken such a wait upon himself. */
    _Atomic uint32_t users;
    struct item ring[HOST_STREAM_ITEMS];
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

static void release(struct host_stream *s)
{
    if (atomic_fetch_sub(&s->users, 1) == 1) {
        pthread_cond_destroy(&s->less);
        pthread_cond_destroy(&s->more);
        pthread_mutex_destroy(&s->lock);
        free(s);
    }
}

/* ---- Doing work: the lock is held before and after --------------------- */

static void note_done(struct host_stream *s, int status)
{
    uint64_t done = s->done + 1;

    if (s->failed_at == 0 && status != FSDP_OK) {
        s->status = status;
        s->failed_at = done;
    }
    s->done = done;
    if (done >= s->wanted) {
        s->wanted = UINT64_MAX; /* who still waits says so again */
        pthread_cond_broadcast(&s->less);
    }
}

static void do_work(struct host_stream *s, struct item *item)
{
    int status;

    s->busy = true;
    pthread_mutex_unlock(&s->lock);
    /* Nobody else writes it while this is busy. */
    status = item->work(item->argument, s->status);
    pthread_mutex_lock(&s->lock);
    s->busy = false;
    note_done(s, status);
}

static int failure_until(const struct host_stream *s, uint64_t ticket)
{
    uint64_t failed_at = s->failed_at;

    return failed_at != 0 && failed_at <= ticket ? s->status : FSDP_OK;
}

/* A stream that has failed waits all the same: when it is done, so is all that
 * it was ordered after, and memory may be freed. */
static bool pass_order(struct host_stream *s, const struct order *o)
{
    if (o->earlier->done < o->ticket) {
        return false;
    }
    struct host_stream *earlier = o->earlier;
    note_done(s, failure_until(earlier, o->ticket));
    release(earlier);
    return true;
}

static int wait_for(struct host_stream *s, uint64_t least);

/* Does the item after `done`, or waits until its turn has come or is over.
 * There is one, and nobody is at it.
 * NOLINTNEXTLINE(misc-no-recursion): see above. */
static void advance(struct host_stream *s)
{
    struct item *item = item_at(s, s->done);
    struct order o;

    if (item->work != NULL) {
        do_work(s, item);
        return;
    }
    memcpy(&o, item->argument, sizeof(o));
    if (pass_order(s, &o)) {
        return;
    }
    atomic_fetch_add(&o.earlier->users, 1);
    pthread_mutex_unlock(&s->lock);
    (void)wait_for(o.earlier, o.ticket);
    release(o.earlier);
    pthread_mutex_lock(&s->lock);
}

static void sleep_until(struct host_stream *s, uint64_t least)
{
    pthread_mutex_unlock(&s->lock);
    (void)soon(&s->done, least);
    pthread_mutex_lock(&s->lock);
    if (s->busy && s->done < least) {
        s->wanted = least < s->wanted ? least : s->wanted;
        pthread_cond_wait(&s->less, &s->lock);
    }
}

/* Its thread goes on where a helper stops, or ends. */
static void hand_back(struct host_stream *s)
{
    if (s->asleep && !s->busy && (s->given != s->done || s->closing)) {
        pthread_cond_signal(&s->more);
    }
}

/* What is waited for is done, by its thread or by this one.
 * NOLINTNEXTLINE(misc-no-recursion): see above. */
static int wait_for(struct host_stream *s, uint64_t least)
{
    if (s->done < least) {
        pthread_mutex_lock(&s->lock);
        while (s->done < least) {
            if (s->busy) {
                sleep_until(s, least);
            } else {
                advance(s);
            }
        }
        hand_back(s);
        pthread_mutex_unlock(&s->lock);
    }
    return failure_until(s, least);
}

/* Waits for something to do; false if there will be nothing. */
static bool has_work(struct host_stream *s)
{
    while (s->given == s->done || s->busy) {
        if (s->closing && s->given == s->done) {
            return false;
        }
        pthread_mutex_unlock(&s->lock);
        (void)soon(&s->given, s->done + 1);
        pthread_mutex_lock(&s->lock);
        if (s->busy || (s->given == s->done && !s->closing)) {
            s->asleep = true;
            pthread_cond_wait(&s->more, &s->lock);
            s->asleep = false;
        }
    }
    return true;
}

static void *work_through(void *self)
{
    struct host_stream *s = self;

    pthread_mutex_lock(&s->lock);
    while (has_work(s)) {
        advance(s);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- Open and close ---------------------------------------------------- */

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

static int push(struct host_stream *s, host_work *work, const void *argument,
                size_t bytes)
{
    struct item *item;

    pthread_mutex_lock(&s->lock);
    while (s->given - s->done == HOST_STREAM_ITEMS) {
        uint64_t least = s->done + 1;
        s->wanted = least < s->wanted ? least : s->wanted;
        pthread_cond_wait(&s->less, &s->lock);
    }
    item = item_at(s, s->given);
    item->work = work;
    if (bytes > 0) {
        memcpy(item->argument, argument, bytes);
    }
    s->given++;
    hand_back(s);
    pthread_mutex_unlock(&s->lock);
    return FSDP_OK;
}

int host_stream_push(struct host_stream *s, host_work *work,
                     const void *argument, size_t bytes)
{
    return bytes > HOST_STREAM_ARGUMENT ? FSDP_ERR_INVALID
                                        : push(s, work, argument, bytes);
}

uint64_t host_stream_mark(struct host_stream *s)
{
    return s->given;
}

int host_stream_wait(struct host_stream *s, uint64_t ticket)
{
    uint64_t least = ticket != 0 ? ticket : s->given;

    return least > s->given ? FSDP_ERR_INVALID : wait_for(s, least);
}

int host_stream_order(struct host_stream *later, struct host_stream *earlier,
                      uint64_t ticket)
{
    struct order o = {earlier, ticket != 0 ? ticket : earlier->given};

    if (o.ticket > earlier->given) {
        return FSDP_ERR_INVALID;
    }
    if (later == earlier || (earlier->done >= o.ticket &&
                             failure_until(earlier, o.ticket) == FSDP_OK)) {
        return FSDP_OK; /* in order as it is */
    }
    atomic_fetch_add(&earlier->users, 1);
    return push(later, NULL, &o, sizeof(o));
}
