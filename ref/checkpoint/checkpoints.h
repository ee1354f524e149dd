/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoints.h - what the reference engine keeps of saves and loads. The
 * format and its durability are checkpoint/checkpoint.h; here is which slice is
 * whose.
 */
#ifndef FSDP_CTS_CHECKPOINTS_H
#define FSDP_CTS_CHECKPOINTS_H

#include "ref/engine/sharded.h"

#include "checkpoint/checkpoint.h"

struct ref_checkpoints {
    struct checkpoint_table table;  /* parameters and states, by name */
    struct checkpoint_table local;  /* this layout's own flat parameters */
    struct checkpoint_slice *slice; /* of table: what is this rank's */
    struct checkpoint_slice *local_slice; /* of local: whole shards */
    float **at, **local_at;               /* where each of them lies */
    uint32_t n, n_local;
    bool changed; /* all of these: other parameters are trained now */
    struct checkpoint_saving *saving; /* NULL: none is under way */
    struct checkpoint_kept kept;
};

/* s->checkpoints, made when it is first needed. */
int ref_checkpoints(struct fsdp_sharded *s);
/* What this rank holds, by name or as flat shards. */
struct checkpoint_source ref_checkpoint_source(struct fsdp_sharded *s,
                                               bool local);

#endif
