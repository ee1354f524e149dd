/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_device.h - the device on CUDA: memory of one GPU, streams and events,
 * the operators of cuda_kernels.h.
 *
 * Errors: a wrong operator is returned by the call. A failure of the GPU, of
 * another rank or of a collective is found by a thread that waits, and sticks:
 * no later call does anything. While the host waits it looks around
 * (cuda_watch.h), so no wait outlasts the patience of the watch.
 */
#ifndef FSDP_CTS_CUDA_DEVICE_H
#define FSDP_CTS_CUDA_DEVICE_H

#include "cuda_kernels.h"
#include "cuda_watch.h"

struct cuda_device;

/* Borrows env and watch. NOMEM, DEVICE; env->error says why. */
int cuda_device_open(const struct fsdp_env *env, struct cuda_watch *watch,
                     int ordinal, struct fsdp_device *out);
/* All zero is allowed. */
void cuda_device_close(struct fsdp_device *device);

/* ---- For the communicator ---- */

/* Called while a wait lasts, which a failure ends; and after a failure. */
struct cuda_hooks {
    void *self;
    int (*look)(void *self);
    void (*give_up)(void *self);
};
void cuda_device_hook(struct cuda_device *device,
                      const struct cuda_hooks *hooks);

struct cuda_device *cuda_device_of(const struct fsdp_device *device);
/* The stream to launch on; NULL: the stream of calls without one. It counts as
 * having been given work. */
struct fsdp_stream *cuda_device_stream(struct cuda_device *device,
                                       struct fsdp_stream *stream,
                                       struct cuda_target *target);
int cuda_device_order(struct cuda_device *device, struct fsdp_stream *later,
                      struct fsdp_stream *earlier, uint64_t ticket);
int cuda_device_mark(struct cuda_device *device, struct fsdp_stream *stream,
                     uint64_t *ticket);
/* Called after launches on a stream, so that the host does not get too far
 * ahead. */
int cuda_device_pace(struct cuda_device *device,
                     const struct cuda_target *target, uint32_t launches);
/* Blocks until the stream has nothing left to do. */
int cuda_device_finish(struct cuda_device *device, struct fsdp_stream *stream);
int cuda_device_finish_all(struct cuda_device *device);
/* Whether all streams have ended: waits as any wait does, and after a failure
 * for a moment. If they have not ended, functions that give memory back must
 * not be called: they wait for the GPU within the runtime, where no thread
 * looks around. The memory then goes with the process. */
bool cuda_device_idle(struct cuda_device *device);
void cuda_device_free(struct cuda_device *device,
                      void *p); /* NULL is allowed */
/* Between host and GPU, through pinned memory; has finished on return. */
int cuda_device_copy(struct cuda_device *device, void *to, const void *from,
                     uint64_t bytes);
/* Looks around as in a wait, where there is no event: a failure sticks. */
int cuda_device_look(struct cuda_device *device, struct cuda_wait *wait);
/* The first failure, or FSDP_OK. */
int cuda_device_status(const struct cuda_device *device);
/* Notes a failure, if it is the first, and returns it. */
int cuda_device_fail(struct cuda_device *device, int status, int native,
                     const char *what, const char *why);
/* The same for what the runtime returned; FSDP_OK for cudaSuccess. */
int cuda_device_check(struct cuda_device *device, cudaError_t error,
                      const char *what);

/* ---- cuda_copy.c: through pinned memory ---- */

struct cuda_copies; /* pinned memory, in slots */
int cuda_copies_open(struct cuda_device *device, struct cuda_copies **out);
/* `idle`: the GPU does not use them any more. */
void cuda_copies_close(struct cuda_copies *copies, bool idle);
/* The stream has ended, and is about to be closed. NULL is allowed. */
void cuda_copies_forget(struct cuda_copies *copies,
                        const struct fsdp_stream *stream);
int cuda_copies_run(struct cuda_copies *copies, struct fsdp_stream *stream,
                    void *to, const void *from, uint64_t bytes);

/* ---- cuda_ops.c ---- */

/* Checks an operator and enqueues it. INVALID, UNSUPPORTED: *error is not
 * written; DEVICE: it says why. */
int cuda_ops_run(const struct fsdp_op *op, const struct cuda_target *target,
                 cudaError_t *error);
/* Brings all kernels to the current GPU. */
cudaError_t cuda_ops_load(void);
const char *cuda_ops_name(uint32_t kind);

#endif
