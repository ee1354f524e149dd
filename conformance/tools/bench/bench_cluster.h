/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cluster.h - this machine, or these, as `plan` wants them described, and
 * steps of an engine there, to be compared with what is planned of them.
 */
#ifndef FSDP_CTS_BENCH_CLUSTER_H
#define FSDP_CTS_BENCH_CLUSTER_H

#include "tools/bench/bench.h"

/* What is measured of what a cluster's file says (docs/plan.md). */
struct bench_machines {
    char source[128];
    uint32_t ranks;
    double flops; /* a second, of a model's matrix products */
    double memory_bandwidth, bandwidth; /* bytes a second */
    double latency;                     /* seconds */
};

/* Seconds of a collective of all ranks for two sizes of the whole, in bytes,
 * as a line: latency, and bytes a second that a ring carries. A second size
 * that takes no longer than the first: INVALID. */
int bench_cluster_line(const double bytes[2], const double seconds[2],
                       uint32_t ranks, struct bench_machines *out);
/* Writes what `plan --cluster` reads: all ranks on one host, whose links and
 * network are the same. IO. */
int bench_cluster_write(const struct bench_machines *m, const char *path,
                        struct fsdp_error *error);

#endif
