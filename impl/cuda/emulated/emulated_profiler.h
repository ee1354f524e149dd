/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_profiler.h - TEST ONLY: the ranges of this thread as a profiler
 * would have seen them, while it looked.
 */
#ifndef FSDP_CTS_EMULATED_PROFILER_H
#define FSDP_CTS_EMULATED_PROFILER_H

#include <stdbool.h>
#include <stdint.h>

struct emulated_profile {
    bool looks;
    unsigned int pushed, popped, depth;
    unsigned int started, ended;
    unsigned int wrong; /* malformed, or ended and not begun */
    char last[32];      /* the last range that was pushed or started */
    uint64_t unit;      /* its payload; UINT64_MAX: none */
};

struct emulated_profile *emulated_profile(void);

#endif
