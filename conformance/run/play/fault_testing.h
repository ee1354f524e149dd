/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault_testing.h - makes one allocation of one rank fail, and counts what
 * ranks have allocated and not freed. Test only.
 *
 * The test is linked with --wrap of malloc, calloc, realloc, aligned_alloc and
 * free: that reaches the engine, its device, the driver, the recorder and the
 * workload, but not what libraries allocate for themselves. --wrap of
 * pthread_create makes a thread that a rank starts (a stream) count as that
 * rank.
 */
#ifndef FSDP_CTS_FAULT_TESTING_H
#define FSDP_CTS_FAULT_TESTING_H

#include <fsdp/engine.h>
#include <stdbool.h>

enum fault_what {
    FAULT_NONE,
    FAULT_DEVICE, /* the device's alloc */
    FAULT_MEMORY, /* malloc and its family, on a rank's thread */
};

/* False: the test was linked without --wrap, and nothing will fail. */
bool fault_is_wrapped(void);

/* From now on allocation nth (from 1) of this kind fails on this rank. */
void fault_set(uint32_t what, uint32_t rank, uint64_t nth);
bool fault_happened(void);

/* This thread, and those that it starts, count as this rank from now on; or as
 * no rank. */
void fault_play(uint32_t rank);
void fault_play_nobody(void);

/* How many blocks of malloc and its family ranks have not freed. */
uint32_t fault_n_left(void);

/* From now on the engine's device is one whose alloc may fail. In a run only
 * one engine is opened: the last that was given here. */
void fault_engine(struct fsdp_engine *engine);

#endif
