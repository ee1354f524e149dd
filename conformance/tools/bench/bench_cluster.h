/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cluster.h - describes this machine, or these machines, in the form that
 * `plan` reads, and measures steps of an engine there, to be compared with
 * those that are planned.
 */
#ifndef FSDP_CTS_BENCH_CLUSTER_H
#define FSDP_CTS_BENCH_CLUSTER_H

#include "tools/bench/bench.h"

/* The measured numbers of a cluster's file (docs/plan.md). */
struct bench_machines {
    char source[128];
    uint32_t ranks;
    double flops; /* a second, of a model's matrix products */
    double memory_bandwidth, bandwidth; /* bytes a second */
    double latency;                     /* seconds */
};

/* Fits a line to the seconds that a collective of all ranks takes for two sizes
 * of the whole, in bytes: the latency, and the bytes a second that a ring
 * carries. INVALID if the larger size takes no longer. */
int bench_cluster_line(const double bytes[2], const double seconds[2],
                       uint32_t ranks, struct bench_machines *out);
/* Writes a file for `plan --cluster`: all ranks are on one host, whose links
 * and network are the same. IO. */
int bench_cluster_write(const struct bench_machines *m, const char *path,
                        struct fsdp_error *error);

#endif
