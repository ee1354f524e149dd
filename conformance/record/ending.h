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
    WORLD_EXITED = 2,    /* left with exit(`status`) in the middle */
    /* Had not ended when the watchdog found no progress. `status` is what the
     * body returned after its collectives were aborted, FSDP_ERR_TIMEOUT if
     * it had to be killed. in_collective is 1 for those who waited. */
    WORLD_TIMED_OUT = 3,
};

#endif
