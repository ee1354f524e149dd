/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_stream.h - a stream on the host: a thread, and a bounded queue of work
 * that it does in order. It knows nothing of operators and collectives.
 *
 * One thread pushes; any thread may wait.
 */
#ifndef FSDP_CTS_HOST_STREAM_H
#define FSDP_CTS_HOST_STREAM_H

#include <stddef.h>
#include <stdint.h>

enum {
    HOST_STREAM_ITEMS = 256,    /* that wait at most; push blocks if there are
                                 * more */
    HOST_STREAM_ARGUMENT = 384, /* bytes of an item's argument at most */
};

struct host_stream;

/*
 * An item of work; what it returns other than FSDP_OK is the failure of its
 * stream. Every item is called, once. `failed` is the first failure of the
 * stream so far: if it is one, the item does no work, but gives back what its
 * argument holds.
 */
typedef int host_work(void *argument, int failed);

/* Starts the thread. The system shows the first 15 bytes of `name`, which may
 * be NULL. NOMEM. */
int host_stream_open(const char *name, struct host_stream **out);

/* Returns when all work is done. NULL is allowed. Other streams may still have
 * waits for this one in their queues. */
void host_stream_close(struct host_stream *stream);

/* Gives a copy of the argument to the stream. INVALID if it is too long. The
 * work takes about `ns`: for short work no thread is woken, so that it may
 * begin a millisecond later, unless a thread waits for it. */
int host_stream_push(struct host_stream *stream, host_work *work,
                     const void *argument, size_t bytes, uint64_t ns);

/* A ticket for all work that was pushed so far; never 0. */
uint64_t host_stream_mark(struct host_stream *stream);

/* Blocks until the work that `ticket` stands for is done; 0: all that was
 * pushed before. Returns the first failure in it. INVALID: a ticket from the
 * future. */
int host_stream_wait(struct host_stream *stream, uint64_t ticket);

/* Work that `later` is given from now on starts after the work that `ticket` of
 * `earlier` stands for; a failure in that becomes later's own. */
int host_stream_order(struct host_stream *later, struct host_stream *earlier,
                      uint64_t ticket);

/* The stream's tickets can be waited for, even after it is closed, until it is
 * released as often as it was retained. NULL may be released. */
void host_stream_retain(struct host_stream *stream);
void host_stream_release(struct host_stream *stream);

/* How often the stream's thread was woken for work from a nap, which it would
 * soon have ended by itself. */
uint64_t host_stream_wakes(struct host_stream *stream);

#endif
