/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_private.h - how much memory a process may hold beyond what the oracle
 * says, where the memory of whole processes is weighed.
 */
#ifndef FSDP_CTS_CASE_PRIVATE_H
#define FSDP_CTS_CASE_PRIVATE_H

enum {
    /* For the engine's own tables, stacks, and pages that are not full. */
    PRIVATE_SLACK = 256 * 1024,
    /* The same for an engine that brings its own device: also for that device's
     * threads, queues, and the memory that it packs matrices into. */
    PRIVATE_SLACK_OF_DEVICE = 5 * 1024 * 1024,
    /* How much the memory at rest may grow in the second half of a long run. */
    PRIVATE_STEADY = 32 * 1024,
    PRIVATE_STEADY_OF_DEVICE = 128 * 1024, /* queues fill by and by */
    /* For files that ranks can write to, at rest. */
    PRIVATE_FILES = 64 * 1024
};

#endif
