/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_stream.c - the ring of items, and which thread does them.
 *
 * Work is often shorter than waking a thread. So a thread that waits for a
 * stream whose own thread is not at work does the work itself: a stream is a
 * queue with an order, and its own thread does the items that no other thread
 * is in a hurry for. An item is done by one thread at a time, in order, and no
 * helper ever does an item that it does not wait for. An item that waits for
 * another stream is not begun before that stream has come so far: whichever
 * thread finds it ready takes its turn. Waits only go back in the order in
 * which work was given, so they end, and chains of helpers are no longer than
 * there are streams. host_stream_thread.c says when a stream's thread is woken.
 */
#include "host_stream_state.h"

#include <fsdp/status.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORTH_NS = 20000,     /* the cost of waking a thread, to both, and some
                           * more */
    LONG_NS = 1000000000, /* as long as any */
};

struct order {
    struct host_stream *earlier;
    uint64_t ticket;
};

static struct host_stream_item *item_at(struct host_stream *s, uint64_t i)
{
    return &s->ring[i % HOST_STREAM_ITEMS];
}

void host_stream_retain(struct host_stream *s)
{
    atomic_fetch_add(&s->users, 1);
}

void host_stream_release(struct host_stream *s)
{
    if (!s) {
        return;
    }
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
    s->ns -= item_at(s, s->done)->ns;
    s->done = done;
    if (done >= s->wanted) {
        s->wanted = UINT64_MAX; /* threads that still wait set it again */
        pthread_cond_broadcast(&s->less);
    }
}

static void do_work(struct host_stream *s, struct host_stream_item *item)
{
    int status;

    s->busy = true;
    pthread_mutex_unlock(&s->lock);
    /* No other thread writes s->status while `busy` is set. */
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

/* A stream that has failed still waits, so that when it is done, everything
 * that it was ordered after is done, too, and memory may be freed. */
static bool pass_order(struct host_stream *s, const struct order *o)
{
    if (o->earlier->done < o->ticket) {
        return false;
    }
    struct host_stream *earlier = o->earlier;
    note_done(s, failure_until(earlier, o->ticket));
    host_stream_release(earlier);
    return true;
}

static int wait_for(struct host_stream *s, uint64_t least);

/* NOLINTNEXTLINE(misc-no-recursion): see above. */
void host_stream_advance(struct host_stream *s)
{
    struct host_stream_item *item = item_at(s, s->done);
    struct order o;

    if (item->work) {
        do_work(s, item);
        return;
    }
    memcpy(&o, item->argument, sizeof(o));
    if (pass_order(s, &o)) {
        return;
    }
    host_stream_retain(o.earlier);
    pthread_mutex_unlock(&s->lock);
    (void)wait_for(o.earlier, o.ticket);
    host_stream_release(o.earlier);
    pthread_mutex_lock(&s->lock);
}

static void sleep_until(struct host_stream *s, uint64_t least)
{
    pthread_mutex_unlock(&s->lock);
    (void)host_stream_soon(&s->done, least);
    pthread_mutex_lock(&s->lock);
    if (s->busy && s->done < least) {
        s->wanted = least < s->wanted ? least : s->wanted;
        pthread_cond_wait(&s->less, &s->lock);
    }
}

/* The thread is woken last, so that it does not run into the lock. */
void host_stream_hand_back(struct host_stream *s)
{
    bool enough = s->rest == HOST_STREAM_ASLEEP || s->ns >= WORTH_NS;
    bool wakes = s->rest != HOST_STREAM_UP && !s->busy &&
                 (s->closing || (s->given != s->done && enough));

    if (wakes) {
        s->wakes += s->rest == HOST_STREAM_NAPPING;
        s->rest = HOST_STREAM_UP;
    }
    pthread_mutex_unlock(&s->lock);
    if (wakes) {
        pthread_cond_signal(&s->more);
    }
}

/* Returns once the items up to `least` are done, by the stream's thread or by
 * this one. NOLINTNEXTLINE(misc-no-recursion): see above. */
static int wait_for(struct host_stream *s, uint64_t least)
{
    if (s->done < least) {
        pthread_mutex_lock(&s->lock);
        while (s->done < least) {
            if (s->busy) {
                sleep_until(s, least);
            } else {
                host_stream_advance(s);
            }
        }
        host_stream_hand_back(s);
    }
    return failure_until(s, least);
}

/* ---- Work and order ---------------------------------------------------- */

/* When the ring is full this waits until half of it is empty, lest every later
 * item waits again. */
static void push(struct host_stream *s, host_work *work, const void *argument,
                 size_t bytes, uint64_t ns)
{
    struct host_stream_item *item;

    if (s->given - s->done == HOST_STREAM_ITEMS) {
        (void)wait_for(s, s->given - HOST_STREAM_ITEMS / 2);
    }
    pthread_mutex_lock(&s->lock);
    item = item_at(s, s->given);
    item->work = work;
    item->ns = ns;
    if (bytes > 0) {
        memcpy(item->argument, argument, bytes);
    }
    s->ns += ns;
    s->given++;
    host_stream_hand_back(s);
}

int host_stream_push(struct host_stream *s, host_work *work,
                     const void *argument, size_t bytes, uint64_t ns)
{
    if (bytes > HOST_STREAM_ARGUMENT) {
        return FSDP_ERR_INVALID;
    }
    push(s, work, argument, bytes, ns < LONG_NS ? ns : LONG_NS);
    return FSDP_OK;
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
    host_stream_retain(earlier);
    push(later, NULL, &o, sizeof(o), 0);
    return FSDP_OK;
}

uint64_t host_stream_wakes(struct host_stream *s)
{
    uint64_t wakes;

    pthread_mutex_lock(&s->lock);
    wakes = s->wakes;
    pthread_mutex_unlock(&s->lock);
    return wakes;
}
