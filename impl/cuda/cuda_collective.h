/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_collective.h - one collective of a member of a group.
 */
#ifndef FSDP_CTS_CUDA_COLLECTIVE_H
#define FSDP_CTS_CUDA_COLLECTIVE_H

#include "cuda_transport.h"

/* Whether the transport's ring has the order of comm.h. */
enum cuda_ring {
    CUDA_RING_UNKNOWN = 0,
    CUDA_RING_SAME,
    CUDA_RING_OTHER,
};

struct cuda_member {
    struct cuda_group group;
    struct cuda_transport transport; /* none if the group is one rank */
    cudaEvent_t last;                /* recorded after the group's last
                                      * collective */
    float *staging;                  /* extent times chunk */
    uint64_t chunk;                  /* elements of up to four bytes */
    enum cuda_ring ring;
};

/* Enqueues a collective that has been checked. */
int cuda_collective(struct cuda_member *member,
                    const struct cuda_target *target,
                    const struct fsdp_collective *collective);

/* Moves bytes once in each way that there is. A library connects ranks when
 * they first talk to each other: it then opens sockets, takes memory, and may
 * wait. */
int cuda_collective_connect(struct cuda_member *member,
                            const struct cuda_target *target);

/* A reduce-scatter by our own fold, whichever fold `c` names. */
int cuda_collective_scatter(struct cuda_member *member,
                            const struct cuda_target *target,
                            const struct fsdp_collective *collective);

/* cuda_ring.c: tries the transport's ring once, and remembers. Collective;
 * waits. FSDP_CUDA_RING=own in the environment: it is not even tried. */
int cuda_ring_try(struct cuda_member *member);

#endif
