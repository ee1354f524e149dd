/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_stream.c - streams, tickets and waits.
 *
 * A ticket is the number of an event. A stream has a ring of events: when one
 * is recorded again, a caller that still asks for its old ticket waits for more
 * than it would have to, never for less.
 */
#include "cuda_state.h"

#include <nvtx3/nvToolsExtCudaRt.h>
#include <stdlib.h>

enum {
    /* Launches from one ticket to wait for to the next: fewer than events of
     * the ring, else the ticket's would be a later one. */
    PACE = CUDA_RING_EVENTS / 2,
};

struct fsdp_stream *cuda_device_stream(struct cuda_device *d,
                                       struct fsdp_stream *stream,
                                       struct cuda_target *target)
{
    stream = stream ? stream : d->plain;
    stream->fresh = true;
    if (target) {
        *target =
            (struct cuda_target){stream->cuda, d->processors, (int *)d->bad_id};
    }
    return stream;
}

int cuda_device_mark(struct cuda_device *d, struct fsdp_stream *s,
                     uint64_t *ticket)
{
    cudaEvent_t *event = &s->event[(s->given + 1) % CUDA_RING_EVENTS];

    if (s->fresh) {
        if (!*event) {
            FSDP_TRY(cuda_device_check(
                d, cudaEventCreateWithFlags(event, cudaEventDisableTiming),
                "cudaEventCreate"));
        }
        FSDP_TRY(cuda_device_check(d, cudaEventRecord(*event, s->cuda),
                                   "cudaEventRecord"));
        s->given++;
        s->fresh = false;
    }
    *ticket = s->given;
    return FSDP_OK;
}

static int host_wait(struct cuda_device *d, cudaEvent_t event)
{
    struct cuda_wait wait = {0, 0};
    cudaError_t error = cudaEventQuery(event);

    while (error == cudaErrorNotReady) {
        FSDP_TRY(cuda_device_look(d, &wait));
        error = cudaEventQuery(event);
    }
    FSDP_TRY(cuda_device_check(d, error, "work of a stream"));
    if (*d->bad_id != 0) {
        return cuda_device_fail(d, FSDP_ERR_INVALID, 0, "an operator",
                                "met an id that is out of range");
    }
    return FSDP_OK;
}

int cuda_device_order(struct cuda_device *d, struct fsdp_stream *later,
                      struct fsdp_stream *earlier, uint64_t ticket)
{
    cudaEvent_t event;

    if (d->failed != FSDP_OK || !earlier || later == earlier) {
        return d->failed;
    }
    if (ticket == 0) {
        FSDP_TRY(cuda_device_mark(d, earlier, &ticket));
    }
    if (ticket > earlier->given) {
        return FSDP_ERR_INVALID;
    }
    event = earlier->event[ticket % CUDA_RING_EVENTS];
    if (!event) {
        return FSDP_OK; /* there was no work */
    }
    if (!later) {
        FSDP_TRY(host_wait(d, event));
        return cuda_trace_tell(d, earlier, ticket);
    }
    later->fresh = true;
    return cuda_device_check(d, cudaStreamWaitEvent(later->cuda, event, 0),
                             "cudaStreamWaitEvent");
}

/* A stream of the runtime holds some thousand launches. A caller that gives it
 * more waits within the launch, where no thread looks around: for ever, if the
 * stream waits for a rank that has gone. So before there are as many the host
 * waits here, for all work that was given PACE launches ago or earlier. */
int cuda_device_pace(struct cuda_device *d, const struct cuda_target *target,
                     uint32_t launches)
{
    struct fsdp_stream *s = d->streams;
    uint64_t last;

    while (s && s->cuda != target->stream) {
        s = s->next;
    }
    if (!s) {
        return FSDP_OK;
    }
    s->since += launches;
    if (s->since < PACE) {
        return FSDP_OK;
    }
    s->since = 0;
    last = s->paced;
    s->fresh = true;
    FSDP_TRY(cuda_device_mark(d, s, &s->paced));
    s->fresh = true; /* the launches that follow do not set it again */
    return last != 0 ? cuda_device_order(d, NULL, s, last) : FSDP_OK;
}

int cuda_device_finish(struct cuda_device *d, struct fsdp_stream *stream)
{
    return cuda_device_order(d, NULL, stream, 0);
}

int cuda_device_finish_all(struct cuda_device *d)
{
    for (struct fsdp_stream *s = d->streams; s; s = s->next) {
        FSDP_TRY(cuda_device_finish(d, s));
    }
    return d->failed;
}

int cuda_stream_open(struct cuda_device *d, const char *name,
                     struct fsdp_stream **out)
{
    struct fsdp_stream *s = calloc(1, sizeof(*s));

    *out = NULL;
    if (!s) {
        return FSDP_ERR_NOMEM;
    }
    if (cuda_device_check(
            d, cudaStreamCreateWithFlags(&s->cuda, cudaStreamNonBlocking),
            "cudaStreamCreate") != FSDP_OK) {
        free(s);
        return d->failed;
    }
    nvtxNameCudaStreamA(s->cuda, name ? name : "stream");
    s->given = 1;
    s->last = &s->first;
    s->next = d->streams;
    d->streams = s;
    *out = s;
    return FSDP_OK;
}

void cuda_stream_close(struct cuda_device *d, struct fsdp_stream *stream)
{
    struct fsdp_stream **link = &d->streams;

    while (*link && *link != stream) {
        link = &(*link)->next;
    }
    if (!*link) {
        return;
    }
    (void)cuda_device_finish(d, stream);
    if (d->failed != FSDP_OK) {
        /* This stream is closed, but whoever frees memory later must still know
         * that it never ends. */
        (void)cuda_device_idle(d);
    }
    *link = stream->next;
    cuda_copies_forget(d->copies, stream);
    cuda_trace_forget(d, stream);
    for (int i = 0; i < CUDA_RING_EVENTS; i++) {
        if (stream->event[i]) {
            (void)cudaEventDestroy(stream->event[i]);
        }
    }
    (void)cudaStreamDestroy(stream->cuda);
    free(stream);
}
