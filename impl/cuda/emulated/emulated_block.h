/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_block.h - TEST ONLY: a block of threads on one thread of the CPU.
 *
 * Each thread of the block is a fiber. It runs until it waits at a barrier, of
 * its block or of its warp, or has ended; then the next one runs. So a barrier
 * that is missing shows: what another thread should have written is not there.
 * From one block to the next the order of the threads turns round, so that it
 * shows whichever of the two comes first.
 */
#ifndef FSDP_CTS_EMULATED_BLOCK_H
#define FSDP_CTS_EMULATED_BLOCK_H

#include "cuda_runtime_api.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The variables that the running kernel sees. */
extern __thread struct uint3 threadIdx, blockIdx, blockDim, gridDim;

/* Takes the memory that the threads of any block need on the calling thread of
 * the CPU, their stacks, until that thread ends. */
bool emulated_block_make(void);

/* Runs all blocks of a grid. False: some threads wait at a barrier that the
 * others have not come to, and never will; the rest is not run. */
bool emulated_grid(struct dim3 grid, struct dim3 block, void (*run)(void *),
                   void *kernel);

/* Called by kernels. `warp`: the barrier of the warp, not of the block. */
void emulated_barrier(int warp);
unsigned int emulated_lane(void);
/* The value that another lane of the warp gives; all 32 call it. */
uint32_t emulated_from_lane(uint32_t mine, unsigned int lane);
/* A bit of each lane of the warp; all 32 call it. */
uint32_t emulated_ballot(bool mine);

/* Ends the thread that runs, and its grid; returns where none runs. */
void emulated_leave_block(void);
/* A vector is read from where it must not lie. */
void emulated_misaligned(void);

/* Enqueues a kernel; takes `kernel`, which came from malloc. */
cudaError_t emulated_launch(const cudaLaunchConfig_t *config,
                            const void *function, void (*run)(void *),
                            void *kernel);

#ifdef __cplusplus
}
#endif
#endif
