/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated.h - TEST ONLY: what the parts of the emulation share. A process is
 * a machine with FSDP_EMULATED_GPUS GPUs (8), of FSDP_EMULATED_MEMORY bytes
 * (4 GiB, which is the most); a rank is a thread of one. Work on streams is
 * done by the thread that waits for it, and only then: what an engine forgot
 * to wait for has not happened, on any machine, every time.
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
 *   rank-dies     the process is killed, in a collective
 *   cublas-wrong  products of the library beside which ours are measured
 */
#ifndef EMULATED_H
#define EMULATED_H

#include "cuda_runtime_api.h"

#include <stdbool.h>

/* Whether the fault comes now; each call counts. */
bool emulated_fault(const char *name);
/* The rank that this thread plays, for faults. */
void emulated_set_rank(uint32_t rank);
/* An error that sticks: every later call returns it. */
void emulated_break(cudaError_t error);
cudaError_t emulated_broken(void);

/* Memory of the device is there only while the device works, who opens it
 * then: the host that reads it dies of SIGSEGV, as with a GPU. */
void emulated_memory_make(void);
void emulated_memory_open(void);
void emulated_memory_close(void);
/* Bytes of it that are allocated, and that there are. */
size_t emulated_memory_taken(void);
size_t emulated_memory_room(void);

/* Work that may have to wait for other ranks: called again until it says
 * true; then `done` is called with the same argument, once. */
struct emulated_work {
    bool (*progress)(void *argument);
    void (*done)(void *argument);
    void *argument;
};
cudaError_t emulated_push(cudaStream_t stream, struct emulated_work work);

/* Does what all streams of this thread still have to do, as a GPU would by
 * itself; true if nothing is left, false if the rest waits for other ranks. */
bool emulated_flush(void);

#endif
