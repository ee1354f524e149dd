/* SPDX-License-Identifier: Apache-2.0 */
/* unsharded.h - what unsharded.c and unsharded_fold.c share: the baseline. */
#ifndef FSDP_CTS_UNSHARDED_H
#define FSDP_CTS_UNSHARDED_H

#include "ref/engine/ref.h"

enum {
    MAX_CONTRIBUTIONS = 16 /* reductions of one step */
};

/* One logical rank's gradients, each [total]. */
struct rank_gradients {
    float *sum[MAX_CONTRIBUTIONS]; /* [n] is still being added to */
    bool *has;                     /* [n_parameters]: of sum[n] */
    uint32_t n;                    /* contributions that were reduced */
};

struct fsdp_sharded {
    const struct fsdp_env *env;
    const struct fsdp_model *model;
    const struct fsdp_units *units;
    struct fsdp_options options;
    uint32_t replicas, shards, ranks;
    uint64_t total;
    uint64_t *start;  /* of a parameter, in everything that is [total] */
    uint64_t *offset; /* of a parameter: flat, in its unit's flat parameter;
                       * per parameter, in each shard of its unit */
    uint64_t *block;  /* per parameter: its elements in a shard; flat: 0 */
    uint64_t *chunk;  /* of a unit: the ring's owner depends on it */
    uint32_t *group;
    bool *touched; /* [n_units]: had a backward since zero_grad */
    float *value, *reduced, *fresh, *state[2];
    bool *asked; /* [n_parameters]: fresh holds a gradient of it */
    bool *in_backward;
    bool has_reduced;
    struct rank_gradients *rank;
    const struct fsdp_sequence *sequence;
    uint32_t sequence_index, next;
    bool sync, next_sync;
    float (*power)[2]; /* [n_units]: products of the betas over its steps */
};

/* Folds all contributions of this step, in order, unless it has been done.
 * INVALID: a rank has gradients that were not reduced. */
int unsharded_reduce(struct fsdp_sharded *s);

#endif
