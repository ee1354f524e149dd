/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_testing.h - what tests of streams need: a gate that holds a stream up
 * until the test opens it, so that no test depends on how long something takes.
 */
#ifndef FSDP_CTS_HOST_TESTING_H
#define FSDP_CTS_HOST_TESTING_H

#include "host_stream.h"

#include <stdatomic.h>
#include <time.h>

static inline void sleep_us(long us)
{
    struct timespec t = {us / 1000000, us % 1000000 * 1000};

    nanosleep(&t, NULL);
}

static inline void sleep_ms(long ms)
{
    sleep_us(1000 * ms);
}

struct gate {
    _Atomic int open;
    _Atomic int reached; /* a stream stands before it */
};

/* An item of work; its argument is a struct gate *. */
static inline int pass_gate(void *argument, int failed)
{
    struct gate *gate = *(struct gate **)argument;

    gate->reached = 1;
    while (!gate->open) {
        sleep_ms(1);
    }
    return failed;
}

/* An item of work that fails; its argument is an int, the status. */
static inline int fail_with(void *argument, int failed)
{
    return failed != 0 ? failed : *(int *)argument;
}

#endif
