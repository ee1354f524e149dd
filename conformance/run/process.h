/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.h - what the kernel says about this process, so that an engine that
 * hides memory or talks past the communicator is seen from outside.
 */
#ifndef FSDP_CTS_PROCESS_H
#define FSDP_CTS_PROCESS_H

#include <stdint.h>

struct process_view {
    uint64_t resident_bytes; /* now; 0: unknown */
    uint64_t peak_bytes;     /* since the process began; 0: unknown */
    uint32_t channels;       /* open descriptors and shared mappings */
};

/* Reads /proc/self; what cannot be read stays 0. */
void process_look(struct process_view *out);

#endif
