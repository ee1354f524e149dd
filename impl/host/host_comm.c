/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_comm.c - collectives as work of streams.
 *
 * A collective begins when the one that was given before it has ended, whatever
 * streams the two are on: the later one's stream is ordered behind the earlier
 * one. Each rank therefore does its collectives one at a time, in the order of
 * the calls, which is the same on all ranks.
 *
 * That is why ranks never wait for each other in a circle, whichever thread
 * does the work. A thread that waits for a collective whose stream's thread is
 * not at it does the collective itself, after it has waited for all those
 * before it, and done them likewise. Of all collectives that some rank has not
 * ended, take the first. Each rank that was given it has ended all collectives
 * before it; whatever else it is ordered behind was given earlier and concerns
 * this rank alone; and some thread does it: one that waits, or the thread of
 * its stream. A thread that stands in a collective keeps no thread from it but
 * those that wait for it.
 *
 * After a failure on a stream no later collective is begun: some would have
 * been given by a caller that did not know that this rank is out of step. A
 * call without a stream reports its failure to the caller, which decides.
 */
#include "host_comm.h"

#include "host_device.h"

#include <stdlib.h>

enum {
    MEETING_NS = 2000, /* time until all ranks know of each other */
    BYTES_A_NS = 5,
};

struct host_comm {
    const struct fsdp_comm *real;
    struct host_stream *last; /* has the last collective; retained; or NULL */
    uint64_t ticket;          /* of that collective */
};

struct call {
    const struct fsdp_comm *real;
    struct fsdp_collective collective;
};

_Static_assert(sizeof(struct call) <= HOST_STREAM_ARGUMENT,
               "a collective fits an item of a queue");

static int do_collective(void *argument, int failed)
{
    const struct call *call = argument;
    const struct fsdp_comm *real = call->real;

    return failed != FSDP_OK ? failed
                             : real->run(real->self, NULL, &call->collective);
}

/* About how long it takes: ranks meet, and move some bytes. */
static uint64_t about_ns(const struct fsdp_collective *c)
{
    uint64_t bytes = 0;

    if (__builtin_mul_overflow(c->n, fsdp_dtype_bytes(c->dtype), &bytes)) {
        return UINT64_MAX;
    }
    return MEETING_NS + bytes / BYTES_A_NS;
}

static int push(struct host_comm *h, struct host_stream *stream,
                const struct call *call)
{
    if (h->last) {
        FSDP_TRY(host_stream_order(stream, h->last, h->ticket));
    }
    FSDP_TRY(host_stream_push(stream, do_collective, call, sizeof(*call),
                              about_ns(&call->collective)));
    if (h->last != stream) {
        host_stream_retain(stream);
        host_stream_release(h->last);
        h->last = stream;
    }
    h->ticket = host_stream_mark(stream);
    return FSDP_OK;
}

static int drain(const struct host_comm *h)
{
    return h->last ? host_stream_wait(h->last, h->ticket) : FSDP_OK;
}

static int host_comm_run(void *self, struct fsdp_stream *stream,
                         const struct fsdp_collective *collective)
{
    struct host_comm *h = self;
    struct call call = {.real = h->real};

    if (!collective || collective->size < FSDP_COLLECTIVE_LEAST) {
        return FSDP_ERR_INVALID;
    }
    call.collective = fsdp_collective_of(collective);
    if (stream) {
        return push(h, host_device_queue(stream), &call);
    }
    return do_collective(&call, drain(h));
}

static void abort_all(void *self, int32_t status)
{
    struct host_comm *h = self;

    h->real->abort(h->real->self, status);
}

int host_comm_open(const struct fsdp_comm *real, struct fsdp_comm *out)
{
    struct host_comm *h;

    *out = (struct fsdp_comm){0};
    if (real->takes_streams || real->place != FSDP_PLACE_HOST) {
        return FSDP_ERR_UNSUPPORTED;
    }
    h = calloc(1, sizeof(*h));
    if (!h) {
        return FSDP_ERR_NOMEM;
    }
    h->real = real;
    *out = (struct fsdp_comm){.size = sizeof(*out),
                              .place = FSDP_PLACE_HOST,
                              .takes_streams = 1,
                              .self = h,
                              .run = host_comm_run,
                              .abort = abort_all};
    return FSDP_OK;
}

void host_comm_close(struct fsdp_comm *comm)
{
    struct host_comm *h = comm->self;

    if (h) {
        host_stream_release(h->last);
        free(h);
        *comm = (struct fsdp_comm){0};
    }
}

int host_comm_drain(const struct fsdp_comm *comm)
{
    return drain(comm->self);
}
