/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ending.h - how a rank of a world can end: what worlds report and records
 * keep.
 */
#ifndef FSDP_CTS_ENDING_H
#define FSDP_CTS_ENDING_H

enum {
    WORLD_MAX_RANKS = 512
};

enum world_end {
    WORLD_RETURNED = 0,  /* the body returned; `status` is its result */
    WORLD_SIGNALLED = 1, /* killed by `signal` */
    WORLD_EXITED = 2,    /* called exit(`status`) before the body returned */
    /* It had not ended when the watchdog saw no progress. `status` is what the
     * body returned after its collectives were aborted, or FSDP_ERR_TIMEOUT if
     * the rank had to be killed. in_collective is 1 for ranks that waited in
     * one. */
    WORLD_TIMED_OUT = 3,
};

#endif
