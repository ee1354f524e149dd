/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_private.h - what an engine may hold beside what the oracle says, where
 * the memory of whole processes is weighed.
 */
#ifndef FSDP_CTS_CASE_PRIVATE_H
#define FSDP_CTS_CASE_PRIVATE_H

enum {
    /* For its own tables, stacks, and pages that are not full. */
    PRIVATE_SLACK = 256 * 1024,
    /* Where it brings a device: for that one's threads, queues, and what it
     * packs matrices into, too. */
    PRIVATE_SLACK_OF_DEVICE = 5 * 1024 * 1024,
    /* By as much what rests may grow in the second half of a long run. */
    PRIVATE_STEADY = 32 * 1024,
    PRIVATE_STEADY_OF_DEVICE = 128 * 1024, /* its queues are used by and by */
    /* Of files that ranks can write to, at rest. */
    PRIVATE_FILES = 64 * 1024
};

#endif
