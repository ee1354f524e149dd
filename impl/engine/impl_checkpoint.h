/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_checkpoint.h - what the engine keeps of saves and loads. The format and
 * its durability are in checkpoint/checkpoint.h.
 *
 * A save copies all that rests to host memory, and training goes on; a thread
 * of its own writes the copy. That thread sees nothing but the copy and files.
 */
#ifndef FSDP_CTS_IMPL_CHECKPOINT_H
#define FSDP_CTS_IMPL_CHECKPOINT_H

#include "impl_calls.h"

#include "checkpoint/checkpoint.h"

#include <pthread.h>

/* The slices of one form's tensors that this rank owns. */
struct impl_holding {
    struct checkpoint_table table;
    struct checkpoint_slice *slice;
    float **at;    /* where each slice lies: */
    bool *on_host; /* on the host, or on the device */
    uint64_t *in;  /* where each slice begins in a snapshot */
    uint32_t n;
    uint64_t sum; /* elements of all slices */
};

struct impl_checkpoints {
    struct impl_holding named; /* parameters and states */
    struct impl_holding flat;  /* flat shards, padding and all: local form */
    struct checkpoint_saving *saving; /* NULL: none is under way */
    const struct impl_holding *saved;
    float *snapshot;
    pthread_t writer;
    bool writes;  /* the thread has been started */
    bool changed; /* other slices are held: other parameters are trained now */
    struct checkpoint_kept kept;
};

/* Fills s->checkpoints, when it is first needed. */
int impl_checkpoints(struct fsdp_sharded *s);

/* impl_gather_full.c: one rank writes, and the others send to it.
 * Collective. */
int impl_gather_full(struct fsdp_sharded *s);

#endif
