/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_state.h - the device's data, for its own files: its streams
 * (cuda_stream.c), the contract's functions (cuda_device.c), and traces for
 * people (cuda_trace.c).
 */
#ifndef FSDP_CTS_CUDA_STATE_H
#define FSDP_CTS_CUDA_STATE_H

#include "cuda_device.h"

enum {
    CUDA_RING_EVENTS = 256, /* of a stream, made when first needed */
    CUDA_WINDOWS = 64,      /* units that a profiler sees unsharded at once */
};

/* A time that was asked for, until the stream has come that far. */
struct cuda_stamp {
    cudaEvent_t event;
    uint64_t *ns;
    uint64_t ticket; /* of the first mark behind it */
    struct cuda_stamp *next;
};

struct fsdp_stream {
    cudaStream_t cuda;
    cudaEvent_t event[CUDA_RING_EVENTS];
    uint64_t given; /* the last ticket; 1 at first, when there is no event */
    bool fresh;     /* was given work since */
    uint64_t paced; /* the ticket that the host waits for next; 0: none yet */
    uint32_t since; /* launches since that */
    struct cuda_stamp *first, **last; /* in the order of the stream */
    uint64_t latest_ns;
    struct fsdp_stream *next;
};

/* Nothing is made here until a time is asked for. */
struct cuda_trace {
    struct fsdp_stream *clock;
    cudaEvent_t base;
    uint64_t base_ns;        /* when that was, by CLOCK_MONOTONIC */
    struct cuda_stamp *free; /* with their events */
    struct {
        const void *p;
        uint64_t range;
    } window[CUDA_WINDOWS];
    unsigned int windows; /* the first that was never used */
};

struct cuda_device {
    const struct fsdp_env *env;
    struct cuda_watch *watch;
    struct cuda_hooks hooks;
    unsigned int processors;
    volatile int *bad_id;      /* pinned; kernels set it */
    struct fsdp_stream *plain; /* of calls without a stream */
    struct fsdp_stream *streams;
    struct cuda_copies *copies;
    struct cuda_trace trace;
    int failed;
    bool stuck; /* and the GPU has not ended the work it was given */
};

/* ---- cuda_stream.c ---- */

int cuda_stream_open(struct cuda_device *device, const char *name,
                     struct fsdp_stream **out);
void cuda_stream_close(struct cuda_device *device, struct fsdp_stream *stream);

/* ---- cuda_trace.c ---- */

int cuda_trace_stamp(struct cuda_device *device, struct fsdp_stream *stream,
                     uint64_t *ns);
/* The stream has come as far as `ticket`: tells the times asked for before
 * it. */
int cuda_trace_tell(struct cuda_device *device, struct fsdp_stream *stream,
                    uint64_t ticket);
/* Drops times that were not told. */
void cuda_trace_forget(struct cuda_device *device, struct fsdp_stream *stream);
void cuda_trace_close(struct cuda_device *device);
/* Shows a unit's window to profilers. */
void cuda_trace_live(struct cuda_device *device, uint32_t kind, uint32_t unit,
                     const void *p);
void cuda_trace_dead(struct cuda_device *device, const void *p);

#endif
