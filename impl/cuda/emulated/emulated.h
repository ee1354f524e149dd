/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated.h - TEST ONLY: what the parts of the emulation share. A process is
 * a machine with FSDP_EMULATED_GPUS GPUs (8), of FSDP_EMULATED_MEMORY bytes
 * (4 GiB, which is the most); a rank is a thread of one.
 *
 * FSDP_EMULATED_ORDER says when work on streams is done, and in which order
 * (emulated_stream.c):
 *   late    when somebody waits for it, and no sooner: what an engine forgot
 *           to wait for has not happened, every time. Without the variable
 *   early   at once, if it has nothing to wait for: what an engine forgot to
 *           make wait has overwritten what others still read
 *   a number  drawn: at every call some operations of some streams, so that
 *           any order may come that events allow; the same number, the same
 *           draws
 *
 * FSDP_EMULATED_FAULT=name[:count][@rank] makes something go wrong, the count
 * with the count-th call (the first); without a rank, on every rank:
 *   no-device, old-driver, no-image, nccl-version, nccl-init   at the start
 *   no-memory     an allocation on the GPU; no-pinned: one of pinned memory
 *   launch        a kernel ends with an illegal address
 *   launch-refused  a launch is refused
 *   launch-hang   a kernel never ends
 *   launch-dies   the process crashes when a kernel begins
 *   nccl-error    a collective fails, seen by ncclCommGetAsyncError
 *   nccl-hang     a collective never ends
 *   nccl-order    ncclReduceScatter's ring runs backwards
 *   nccl-channels   the ring of every other channel does
 *   rank-dies     the process is killed, in a collective
 *   cublas-wrong  products of the library beside which ours are measured
 */
#ifndef FSDP_CTS_EMULATED_H
#define FSDP_CTS_EMULATED_H

#include "cuda_runtime_api.h"

#include <stdbool.h>

/* Whether the fault comes now; each call counts. */
bool emulated_fault(const char *name);
/* The rank that this thread plays, for faults and draws. */
void emulated_set_rank(uint32_t rank);
uint32_t emulated_rank(void);
/* The GPU that this thread has chosen; 0 at first. */
int emulated_device(void);
void emulated_bus_id(char *id, size_t bytes, int device);

/* An error that sticks: every later call returns it. */
void emulated_break(cudaError_t error);
/* That error, or that the process was forked from one that used a GPU. */
cudaError_t emulated_broken(void);
/* Notes an error and returns it; or the one that sticks, if one does. */
cudaError_t emulated_say(cudaError_t error);
/* Called for what the documentation calls undefined: says so and breaks. */
void emulated_undefined(const char *what);
/* Called by every function that uses a GPU: from here on the process cannot be
 * forked. */
void emulated_begin(void);

/* Memory of the device can be touched while the device works, which opens it
 * for that. It is closed a little later, at the latest when the host has waited
 * for anything: a host that reads it dies of SIGSEGV, as with a GPU. */
void emulated_memory_make(void);
void emulated_memory_open(void);
void emulated_memory_close(void);
/* The host has waited for the device, and goes on. */
void emulated_memory_waited(void);
/* How many bytes of it are allocated, and how many there are. */
size_t emulated_memory_taken(void);
size_t emulated_memory_room(void);

/* What a range lies in. */
enum emulated_place {
    EMULATED_PAGEABLE,
    EMULATED_PINNED,
    EMULATED_DEVICE,
    EMULATED_NOWHERE, /* of the device, but in no one allocation */
};
enum emulated_place emulated_place(const void *p, size_t bytes);

/* For cudaIpc*: the allocation that begins at p. */
struct emulated_block {
    size_t at, bytes;
    uint64_t shared; /* a number that all small ones have in common */
    int fd;
};
bool emulated_memory_find(const void *p, struct emulated_block *out);
/* Whether another process has it open. */
bool emulated_ipc_opened(size_t at);
bool emulated_ipc_holds(const void *p, size_t bytes);

/* Does device work with the device's memory open. False: the work touched
 * memory that is not the device's, and the error sticks. */
bool emulated_guarded(void (*work)(void *), void *argument);
/* Gives up the device work that runs in there, with that error. Does not
 * return. */
void emulated_trap(cudaError_t error);

/* Work that may have to wait for other ranks: called again until it says
 * true; then `done` is called with the same argument, once. */
struct emulated_work {
    bool (*progress)(void *argument);
    void (*done)(void *argument);
    void *argument;
};
cudaError_t emulated_push(cudaStream_t stream, struct emulated_work work);
/* Waits like a call that returns only when the stream has come that far, and
 * does not look around. */
void emulated_wait(cudaStream_t stream);

/* A call into the runtime: the device may go on meanwhile. */
void emulated_turn(void);
/* Takes the place of sched_yield in the sources of ../cuda. */
int emulated_yield(void);
/* Does what all streams of this thread still have to do, as a GPU would by
 * itself; true if nothing is left, false if the rest waits for other ranks. */
bool emulated_flush(void);
/* Whether these streams have something to do. */
bool emulated_pending(void);

/* How much work of this thread's streams has begun that will never end. */
_Atomic unsigned int *emulated_hanging(void);
/* Waits for all work of the device, as freeing memory does. */
void emulated_wait_for_device(void);

/* How often memory of the host that is not pinned was copied. */
uint64_t emulated_pageable_copies(void);

#endif
