/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster.h - the machines that a step is simulated on: hosts of equal ranks,
 * links within a host and between hosts.
 */
#ifndef FSDP_CTS_CLUSTER_H
#define FSDP_CTS_CLUSTER_H

#include "record/record_fields.h"

enum {
    CLUSTER_VERSION = 1,
    CLUSTER_MAX_BYTES = 1 << 20
};

struct cluster {
    char name[64];
    char source[1024]; /* where each number is from */
    uint32_t host_ranks;
    uint64_t memory;          /* bytes of a rank */
    double peak_flops;        /* a second, as the data sheet says */
    double flops;             /* a second, measured in a step's matrix
                               * products */
    double contention;        /* share of compute that communication takes */
    double memory_bandwidth;  /* bytes a second; so are all below */
    double host_bandwidth;    /* of a rank's links within its host */
    double network_bandwidth; /* of a host's links to others */
    double latency;           /* seconds of a collective */
    double host_step, network_step; /* and of each step of its ring */
};

extern const struct record_table cluster_table;

/* FORMAT: a sentence that begins with `file`; also if a link has no
 * bandwidth. */
int cluster_parse(const char *text, size_t bytes, const char *file,
                  struct cluster *out, struct fsdp_error *error);
/* Opens a file, or one of preset_clusters. As cluster_parse; IO, INVALID. */
int cluster_open(const char *what, struct cluster *out,
                 struct fsdp_error *error);

/* The ranks of one collective, and how they are spread over hosts. */
struct cluster_group {
    uint32_t ranks, hosts;
    uint32_t sharing; /* groups that use a host's network at once */
};
/* The groups of a mesh of R x S ranks, ranks of a shard group side by side. */
struct cluster_group cluster_shard_group(const struct cluster *c,
                                         uint32_t shards);
struct cluster_group cluster_replica_group(const struct cluster *c,
                                           uint32_t replicas, uint32_t shards);

/* How many seconds a ring takes to gather or scatter `bytes` of the whole; an
 * all-reduce takes both. 0 for one rank. */
double cluster_seconds(const struct cluster *c, struct cluster_group group,
                       double bytes);

#endif
