/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_flights.h - the part of a rank's record about when collectives of the
 * last step were given out, and who waited for whom: positions in the order of
 * calls, no times.
 *
 * Position 0 is the first BEGIN of the step; each point, END, step and
 * zero_grad is the next one.
 */
#ifndef FSDP_CTS_RECORD_FLIGHTS_H
#define FSDP_CTS_RECORD_FLIGHTS_H

#include <fsdp/comm.h>

/* Nobody waited. */
#define RECORD_NO_POSITION UINT32_MAX

struct record_flight {
    uint32_t kind, unit;
    uint32_t issued; /* while the engine stood at this position */
    /* Behind what the model's stream was given at positions below this one, as
     * far as that is known: 0: behind nothing of this step. */
    uint32_t behind;
    /* The model's stream is behind it from the end of this position on, or
     * RECORD_NO_POSITION. */
    uint32_t awaited;
    uint32_t on_stream; /* 0: had finished when the call returned */
};

struct record_flights {
    uint32_t n;
    struct record_flight *flight;
};

#endif
