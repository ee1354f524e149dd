/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoints.h - what the reference engine keeps of saves and loads. The
 * format and its durability are in checkpoint/checkpoint.h; this part knows
 * which rank owns which slice.
 */
#ifndef FSDP_CTS_CHECKPOINTS_H
#define FSDP_CTS_CHECKPOINTS_H

#include "ref/engine/sharded.h"

#include "checkpoint/checkpoint.h"

struct ref_checkpoints {
    struct checkpoint_table table;  /* parameters and states, by name */
    struct checkpoint_table local;  /* this layout's own flat parameters */
    struct checkpoint_slice *slice; /* the slices of `table` that this rank
                                     * owns */
    struct checkpoint_slice *local_slice; /* the slices of `local`: whole
                                           * shards */
    float **at, **local_at;               /* where each of them lies */
    uint32_t n, n_local;
    bool changed; /* all of these: other parameters are trained now */
    struct checkpoint_saving *saving; /* NULL: none is under way */
    struct checkpoint_kept kept;
};

/* Fills s->checkpoints, when it is first needed. */
int ref_checkpoints(struct fsdp_sharded *s);
/* Where this rank's values are read: by name, or as flat shards. */
struct checkpoint_source ref_checkpoint_source(struct fsdp_sharded *s,
                                               bool local);

#endif
