/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_count.h - a device and a communicator that count their calls, around
 * those of an engine; on request they also note when each call's work ran, by
 * the clock of its stream.
 */
#ifndef FSDP_CTS_BENCH_COUNT_H
#define FSDP_CTS_BENCH_COUNT_H

#include <fsdp/engine.h>
#include <stdbool.h>

enum {
    BENCH_COUNT_BLOCKS = 4096,
    BENCH_COUNT_PIECE = 2 << 20,
    BENCH_COUNT_SMALL = 1 << 20
};

/* Nanoseconds that the stream writes (device.h, stamp): there once the device
 * has been synchronised. */
struct bench_span {
    uint64_t begin, end;
    uint32_t share; /* enum share */
};

struct bench_count {
    const struct fsdp_device *real;
    const struct fsdp_comm *real_comm;
    struct fsdp_device device;
    struct fsdp_comm comm;
    uint64_t calls;       /* operators, copies and collectives */
    uint64_t bytes, peak; /* of storage */
    /* The same, if each allocation takes whole pieces of 2 MiB, as drivers give
     * them; small allocations share one. */
    uint64_t rounded, rounded_peak;
    /* NULL, or called whenever peak has grown. */
    void (*more)(void *self);
    void *more_self;
    /* NULL, or room for that many spans: times are taken if the device has
     * them. More spans than that: NOMEM. */
    struct bench_span *span;
    uint64_t n_spans, room;
    struct {
        void *p;
        uint64_t bytes;
    } block[BENCH_COUNT_BLOCKS]; /* those beyond are not counted */
};

/* Whether this device says when its work ran. */
bool bench_count_times(const struct fsdp_device *device);

/* Puts the counters around the device and the communicator of env. */
void bench_count_open(struct bench_count *count, struct fsdp_env *env);

#endif
