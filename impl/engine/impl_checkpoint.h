/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_checkpoint.h - what the engine keeps of saves and loads. The format
 * and its durability are checkpoint/checkpoint.h.
 *
 * A save copies what rests to host memory and goes on training; a thread of
 * its own writes the copy. It sees nothing but that copy and files.
 */
#ifndef FSDP_CTS_IMPL_CHECKPOINT_H
#define FSDP_CTS_IMPL_CHECKPOINT_H

#include "impl_calls.h"

#include "checkpoint/checkpoint.h"

#include <pthread.h>

/* What this rank owns of one form's tensors. */
struct impl_holding {
    struct checkpoint_table table;
    struct checkpoint_slice *slice;
    float **at;    /* where each slice lies, */
    bool *on_host; /* there, or on the device */
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
    bool writes;  /* the thread is there */
    bool changed; /* what is held: other parameters are trained now */
    struct checkpoint_kept kept;
};

/* s->checkpoints, made when it is first needed. */
int impl_checkpoints(struct fsdp_sharded *s);

/* impl_gather_full.c: one rank writes, the others send. Collective. */
int impl_gather_full(struct fsdp_sharded *s);

#endif
