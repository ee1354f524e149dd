/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_flights.h - the part of a rank's record about the last step's
 * collectives: when each was given out, and what waited for what. These are
 * positions in the order of calls, not times.
 *
 * Position 0 is the first BEGIN of the step; each point, END, step and
 * zero_grad after it is the next position.
 */
#ifndef FSDP_CTS_RECORD_FLIGHTS_H
#define FSDP_CTS_RECORD_FLIGHTS_H

#include <fsdp/comm.h>

/* Nothing waited for the collective. */
#define RECORD_NO_POSITION UINT32_MAX

struct record_flight {
    uint32_t kind, unit;
    uint32_t issued; /* it was given out while the engine stood here */
    /* It waits for all that the model's stream was given at positions below
     * this one, as far as that is known; 0: for nothing of this step. */
    uint32_t behind;
    /* The model's stream waits for it from the end of this position on;
     * RECORD_NO_POSITION: it never does. */
    uint32_t awaited;
    uint32_t on_stream; /* 0: it had finished when the call returned */
};

struct record_flights {
    uint32_t n;
    struct record_flight *flight;
};

#endif
