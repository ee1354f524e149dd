/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_count.h - a device and a communicator that count what they are given,
 * around those of an engine.
 */
#ifndef FSDP_CTS_BENCH_COUNT_H
#define FSDP_CTS_BENCH_COUNT_H

#include <fsdp/engine.h>

enum {
    BENCH_COUNT_BLOCKS = 4096
};

struct bench_count {
    const struct fsdp_device *real;
    const struct fsdp_comm *real_comm;
    struct fsdp_device device;
    struct fsdp_comm comm;
    uint64_t calls;       /* operators, copies and collectives */
    uint64_t bytes, peak; /* of storage */
    struct {
        void *p;
        uint64_t bytes;
    } block[BENCH_COUNT_BLOCKS]; /* those beyond are not counted */
};

/* Puts it around what env has. */
void bench_count_open(struct bench_count *count, struct fsdp_env *env);

#endif
