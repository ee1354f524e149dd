/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_comm.c - collectives as work of streams.
 *
 * Each call draws a number, and a collective begins when those with lower
 * numbers have ended, whatever streams they are on. A stream holds up another
 * one by that, but never in a circle: what a call waits for was given earlier.
 *
 * After a failure on a stream no later collective is begun: some would have
 * been given by a caller who did not know that this rank is out of step. A
 * call without a stream tells the caller, and leaves it to him.
 */
#include "host_comm.h"

#include "host_device.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct host_comm {
    const struct fsdp_comm *real;
    pthread_mutex_t lock;
    pthread_cond_t turn; /* ended has grown */
    uint64_t given;
    uint64_t ended;
    int status; /* the first failure of those on streams */
};

struct call {
    struct host_comm *comm;
    uint64_t number;
    bool on_stream;
    struct fsdp_collective collective;
};

_Static_assert(sizeof(struct call) <= HOST_STREAM_ARGUMENT,
               "a collective fits an item of a queue");

static int do_collective(void *argument, int failed)
{
    struct call *call = argument;
    struct host_comm *h = call->comm;
    int status;

    pthread_mutex_lock(&h->lock);
    while (h->ended != call->number) {
        pthread_cond_wait(&h->turn, &h->lock);
    }
    status = h->status != FSDP_OK ? h->status : failed;
    pthread_mutex_unlock(&h->lock);
    if (status == FSDP_OK) {
        status = h->real->run(h->real->self, NULL, &call->collective);
    }
    pthread_mutex_lock(&h->lock);
    if (call->on_stream) {
        h->status = status;
    }
    h->ended++;
    pthread_cond_broadcast(&h->turn);
    pthread_mutex_unlock(&h->lock);
    return status;
}

static int run(void *self, struct fsdp_stream *stream,
               const struct fsdp_collective *collective)
{
    struct host_comm *h = self;
    struct call call = {.comm = h, .on_stream = stream != NULL};

    if (collective == NULL || collective->size < sizeof(*collective)) {
        return FSDP_ERR_INVALID;
    }
    call.collective = *collective;
    pthread_mutex_lock(&h->lock);
    call.number = h->given++;
    pthread_mutex_unlock(&h->lock);
    return stream != NULL
               ? host_device_push(stream, do_collective, &call, sizeof(call))
               : do_collective(&call, FSDP_OK);
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
    if (h == NULL) {
        return FSDP_ERR_NOMEM;
    }
    if (pthread_mutex_init(&h->lock, NULL) != 0) {
        free(h);
        return FSDP_ERR_NOMEM;
    }
    if (pthread_cond_init(&h->turn, NULL) != 0) {
        pthread_mutex_destroy(&h->lock);
        free(h);
        return FSDP_ERR_NOMEM;
    }
    h->real = real;
    *out = (struct fsdp_comm){.size = sizeof(*out),
                              .place = FSDP_PLACE_HOST,
                              .takes_streams = 1,
                              .self = h,
                              .run = run,
                              .abort = abort_all};
    return FSDP_OK;
}

void host_comm_close(struct fsdp_comm *comm)
{
    struct host_comm *h = comm->self;

    if (h != NULL) {
        pthread_cond_destroy(&h->turn);
        pthread_mutex_destroy(&h->lock);
        free(h);
        *comm = (struct fsdp_comm){0};
    }
}

int host_comm_drain(const struct fsdp_comm *comm)
{
    struct host_comm *h = comm->self;
    uint64_t least;
    int status;

    pthread_mutex_lock(&h->lock);
    least = h->given;
    while (h->ended < least) {
        pthread_cond_wait(&h->turn, &h->lock);
    }
    status = h->status;
    pthread_mutex_unlock(&h->lock);
    return status;
}
