/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unsharded.h - what unsharded.c, unsharded_fold.c, unsharded_clip.c and
 * unsharded_kept.c share:
 * the baseline.
 */
#ifndef FSDP_CTS_UNSHARDED_H
#define FSDP_CTS_UNSHARDED_H

#include "ref/engine/ref.h"

/* One logical rank: its gradients, each [total], since they were folded. */
struct rank_gradients {
    float **sum;      /* [room]; NULL from n + 1 on */
    bool *has;        /* [n_parameters]: of sum[n], which is added to */
    uint32_t n, room; /* contributions that sync has closed */
    bool sync;        /* as the rank's next BEGIN will find it */
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
    struct ref_numbers *numbers; /* [n_parameters] */
    struct ref_dtypes *dtype;    /* [n_units]; sums and wires are float32 that
                                  * hold rounded values */
    struct ref_factors *factor;  /* [n_units] */
    bool *touched;               /* [n_units]: had a backward since zero_grad */
    float *value, *reduced, *state[2];
    /* As lent, of the unit's dtype: parameter p lies start[p] float32 behind
     * the beginning, whatever it is made of. */
    float *lent, *fresh;
    bool *asked; /* [n_parameters]: fresh holds a gradient of it */
    bool *in_backward;
    bool has_reduced; /* `reduced` holds the fold of what was closed */
    struct rank_gradients *rank;
    const struct fsdp_sequence *sequence;
    uint32_t sequence_index, next;
    bool sync;           /* of the pass that is under way */
    bool backwards;      /* it has come to a backward */
    struct kept *saving; /* not waited for yet */
};

/* unsharded.c: storage of [total] elements for a value of `kind`; and back. */
int unsharded_take(struct fsdp_sharded *s, uint32_t kind, float **out);
void unsharded_drop(struct fsdp_sharded *s, float **p);
void unsharded_drop_gradients(struct fsdp_sharded *s);
/* The unit of a parameter. */
uint32_t unsharded_unit(const struct fsdp_sharded *s, uint32_t p);
bool unsharded_is_frozen(const struct fsdp_sharded *s, uint32_t p);
/* A rank has gradients that no pass under sync has closed. */
bool unsharded_is_pending(const struct fsdp_sharded *s);

/* unsharded_fold.c: folds what sync has closed, in order, adds it to what was
 * folded before, and forgets it. */
int unsharded_reduce(struct fsdp_sharded *s);

/* unsharded_clip.c: what becomes of all gradients between the fold and the
 * optimizer. Whoever uses them needs all of them: INVALID if some are pending.
 */
int unsharded_reduce_all(struct fsdp_sharded *s, const char *where);
int unsharded_clip_grad_norm(struct fsdp_sharded *s,
                             const struct fsdp_clip *clip, float *out_norm);
/* As the step says; sets its found_inf. */
int unsharded_unscale(struct fsdp_sharded *s, struct fsdp_step *how);

/* unsharded_kept.c: an engine that keeps checkpoints, in memory, from open to
 * close, whichever lives come and go between. */
int unsharded_open(struct fsdp_env *env);
void unsharded_close(struct fsdp_env *env);
int unsharded_save_begin(struct fsdp_sharded *s, const struct fsdp_save *save);
int unsharded_save_wait(struct fsdp_sharded *s);
int unsharded_load(struct fsdp_sharded *s, const char *directory);
void unsharded_give_up(struct fsdp_sharded *s); /* a save not waited for */

#endif
