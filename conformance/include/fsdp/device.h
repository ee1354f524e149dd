/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - memory, streams and operators, as an engine and a model see
 * them: on the host, on CUDA, or on nothing but a clock.
 *
 * Storage and liveness are separate, because real engines keep pools: alloc
 * and free speak of storage; live and dead say that a range now holds, or no
 * longer holds, a value of some kind. Recorders count live bytes by kind and
 * poison what is dead; a pool that hands out stale bytes is then seen.
 *
 * Streams: work given to one stream happens in order. NULL is no stream: the
 * call has finished when it returns. Work on different streams is ordered by
 * `wait` and `sync` alone. A device on which every stream finishes at once
 * is a valid device.
 *
 * An operator's struct is read during the call only; what its ranges point to
 * is used until the stream has come that far. `free` and `stream_close` may
 * only be given what no stream still uses.
 *
 * Threads: one thread of a rank calls its device at a time.
 * Memory pointers are the device's; only `copy` takes host pointers too.
 */
#ifndef FSDP_DEVICE_H
#define FSDP_DEVICE_H

#include <fsdp/model.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fsdp_stream;

/* The kinds of values that a live range holds. Only a model has ACTIVATION. */
enum fsdp_kind {
    FSDP_PARAM_SHARD = 0,
    FSDP_PARAM_FULL = 1, /* unsharded */
    FSDP_GRAD_SHARD = 2, /* reduced */
    FSDP_GRAD_FULL = 3,  /* unsharded, this rank's own */
    FSDP_OPTIM = 4,
    FSDP_STAGING = 5, /* packing, reduce inputs and outputs, fresh gradients */
    FSDP_ACTIVATION = 6,
    FSDP_BUFFER = 7, /* a model's buffer (model.h) */
    FSDP_N_KINDS = 8,
};

enum fsdp_place {
    FSDP_PLACE_HOST = 0,
    FSDP_PLACE_CUDA = 1,
};

struct fsdp_op; /* op.h */

struct fsdp_device {
    uint32_t size;
    uint32_t place; /* where pointers from alloc point */
    void *self;
    const char *profile; /* "f32-fma", or "own" */

    /* Storage, aligned to at least 64 bytes; its content is undefined. 0
     * bytes give a valid pointer that holds nothing. Local. NOMEM. */
    int (*alloc)(void *self, uint64_t bytes, void **out);
    /* NULL is allowed. A value that the range held is dead by then. */
    void (*free)(void *self, void *p);

    /* From here on, in the order of `stream`, [p, p + bytes) holds a value of
     * `kind` that belongs to `unit` (or FSDP_NO_UNIT). It lies inside one
     * allocation and overlaps no other live range. 0 bytes: no effect.
     *
     * What counts as live at once: a range counts until its `dead` is ordered
     * before whatever makes the next one live. Enqueueing `dead` behind work
     * that has not run does not give the memory back yet. */
    void (*live)(void *self, struct fsdp_stream *stream, uint32_t kind,
                 uint32_t unit, void *p, uint64_t bytes);
    /* The live range that began at p is dead. NULL, or a p at which no live
     * range begins: no effect. An empty range was never live: do not call
     * `dead` for it, another one may begin at its address. */
    void (*dead)(void *self, struct fsdp_stream *stream, void *p);

    /* Copies bytes; either side may be host memory. With a stream, host
     * memory must stay valid until it has been synchronised. A range that
     * begins in an allocation and ends beyond it may be refused: INVALID. So
     * may those of `run` and of a communicator. */
    int (*copy)(void *self, struct fsdp_stream *stream, void *to,
                const void *from, uint64_t bytes);
    /* Runs an operator. UNSUPPORTED if the device lacks it; INVALID if its
     * ranges are not as op.h has them. */
    int (*run)(void *self, struct fsdp_stream *stream,
               const struct fsdp_op *op);

    int (*stream_open)(void *self, const char *name, struct fsdp_stream **out);
    /* Waits until the stream has nothing left to do. NULL: no effect. */
    void (*stream_close)(void *self, struct fsdp_stream *stream);
    /* A ticket for all that `stream` was given so far; never 0. Tickets of a
     * stream grow. NULL stream: any ticket, its work has finished. Local. */
    int (*mark)(void *self, struct fsdp_stream *stream, uint64_t *out_ticket);
    /* Work that `later` is given from now on starts after the work that
     * `earlier` was given up to `ticket` has finished; ticket 0: all that it
     * was given before now. later = NULL: the call returns when that has
     * finished. earlier = NULL: nothing to wait for. `edge` names the reason,
     * such as "all-gather->compute"; it is static, and traces, race detectors
     * and mutants use it: do not replace a wait by a sync. */
    int (*wait)(void *self, struct fsdp_stream *later,
                struct fsdp_stream *earlier, uint64_t ticket, const char *edge);
    /* Blocks the caller until the stream has nothing left to do; returns its
     * first failure. NULL: all streams of the device. */
    int (*sync)(void *self, struct fsdp_stream *stream);
    /* For traces: writes the time at which the stream has come this far to
     * *ns, in nanoseconds of a clock that all ranks of a machine share
     * (CLOCK_MONOTONIC). *ns is host memory and stays valid until the stream
     * has been synchronised. NULL, or beyond `size`: the device does not
     * tell. */
    int (*stamp)(void *self, struct fsdp_stream *stream, uint64_t *ns);
};

#ifdef __cplusplus
}
#endif
#endif
