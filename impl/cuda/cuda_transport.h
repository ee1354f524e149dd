/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_transport.h - how bytes get from GPU to GPU within a group of ranks.
 * What is done with them, above all folds, is the communicator's part
 * (cuda_comm.c).
 *
 * All functions enqueue on the target's stream, in the same order on every
 * member; a failure sticks to the device (cuda_device.h).
 */
#ifndef FSDP_CTS_CUDA_TRANSPORT_H
#define FSDP_CTS_CUDA_TRANSPORT_H

#include "cuda_device.h"

/* The bytes that one member sends to, or receives from, another; 0: nothing. */
struct cuda_message {
    const void *in;
    uint64_t in_bytes;
    void *out;
    uint64_t out_bytes;
};

struct cuda_group {
    struct cuda_device *device;
    uint32_t extent, me;
    uint32_t first, stride; /* member r is rank first + r * stride */
};

struct cuda_transport {
    void *self;
    /* Exchanges message[r] with each other member r. The longest of all
     * messages of the group is one that every member sends or receives. */
    int (*exchange)(void *self, const struct cuda_target *target,
                    const struct cuda_message *message);
    /* Every member's bytes, in order; in may be its own place in out. */
    int (*all_gather)(void *self, const struct cuda_target *target,
                      const void *in, void *out, uint64_t bytes);
    int (*broadcast)(void *self, const struct cuda_target *target,
                     const void *in, void *out, uint64_t bytes, uint32_t root);
    /* A reduce-scatter by ring of float32; NULL: there is none. */
    int (*ring)(void *self, const struct cuda_target *target, const float *in,
                float *out, uint64_t n);
    int (*look)(void *self);     /* in a wait: FSDP_OK, or a failure */
    void (*give_up)(void *self); /* after a failure */
    void (*close)(void *self);
};

/* ---- cuda_nccl.c ---- */

enum {
    CUDA_NCCL_ID = 128 /* bytes that the first member sends to the others */
};

/* MISMATCH: another major version of the library. */
int cuda_nccl_check(struct cuda_device *device);
int cuda_nccl_id(struct cuda_device *device, void *id);
/* Collective within the group. */
int cuda_nccl_open(const struct cuda_group *group, const void *id,
                   struct cuda_transport *out);

/* ---- cuda_ipc.c ---- */

/* Collective among all ranks, whose processes share a host: two exchanges. A
 * turn moves place_bytes to each member, or less. */
int cuda_ipc_open(const struct fsdp_env *env, const struct cuda_group *group,
                  struct cuda_counters *counters, uint64_t place_bytes,
                  struct cuda_transport *out);

#endif
