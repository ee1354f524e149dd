/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unsharded.h - what the files of this folder share: the baseline.
 */
#ifndef FSDP_CTS_UNSHARDED_H
#define FSDP_CTS_UNSHARDED_H

#include "ref/engine/ref.h"

/* The sums over microbatches, of each unit by itself. */
struct contribution {
    float *sum;      /* [total]; NULL: there is none */
    bool *completes; /* [n_units]: replicas meet for it, and all before it */
    struct ref_factors *factor; /* [n_units]: factors of the pass that closed
                                 * it */
};

/* One logical rank: its gradients since the last fold. */
struct rank_gradients {
    struct contribution *of; /* [room] */
    uint32_t room;
    bool *has;   /* [n_parameters], of originals: has a gradient in the open
                  * contribution */
    uint32_t *n; /* [n_units]: how many contributions a pass with sync has
                  * closed; the unit's part of the next one is open */
    bool *open;  /* [n_units]: that part has begun */
    bool *sync;  /* [n_units]: as the rank's next BEGIN will find it */
};

struct fsdp_sharded {
    const struct fsdp_env *env;
    const struct fsdp_model *model; /* `known` */
    struct fsdp_model known;        /* the caller's, with `flags` for its own */
    uint32_t *flags;                /* [n_parameters]: as trained now */
    const struct fsdp_units *units;
    struct fsdp_options options;
    uint32_t replicas, shards, ranks;
    uint64_t total;
    uint64_t *start;  /* of a parameter, in everything that is [total]; what is
                       * tied has a place of its own, in `fresh` alone */
    uint64_t *offset; /* of a parameter: flat, in its unit's flat parameter;
                       * per parameter, in each shard of its unit */
    uint64_t *block;  /* per parameter: its elements in a shard; flat: 0 */
    uint64_t *chunk;  /* of a unit: the ring's owner depends on it */
    struct ref_numbers *numbers; /* [n_parameters] */
    struct ref_dtypes *dtype;    /* [n_units]; sums and wires are float32 that
                                  * hold rounded values */
    /* [n_units]: as set last; as they are in the pass that is under way */
    struct ref_divisors *divisors;
    struct ref_factors *factor;
    bool *touched; /* [n_units]: had a backward since zero_grad */
    float *value, *reduced, *state[2];
    /* As lent, of the unit's dtype: parameter p lies start[p] float32 behind
     * the beginning, whatever it is made of. */
    float *lent, *fresh;
    bool *asked; /* [n_parameters]: `fresh` holds its gradient */
    bool *in_backward;
    bool has_reduced; /* `reduced` holds folded gradients, */
    bool *folded;     /* [n_units]: of this unit, too, and not only +0 */
    bool *shown;      /* [n_units]: unsharded by hand: param lends at rest what
                       * it lends in a pass */
    bool *trains;     /* [n_units]: one of its parameters is not frozen */
    struct rank_gradients *rank;
    const struct fsdp_sequence *sequence;
    uint32_t sequence_index, next;
    /* [n_units], of the pass that is under way: whether the unit is reduced;
     * whether across replicas, too; whether it has had a backward. */
    bool *sync, *all_reduce, *backwards;
    bool *next_all_reduce;  /* [n_units] */
    struct kept *saving;    /* not waited for yet */
    struct ref_early early; /* the step of the next pass, for all ranks */
    char *buffers; /* [ranks][buffer_room]: buffers, one behind the other */
    uint64_t buffer_room;
    uint32_t *buffer_dtype; /* [n_buffers]: as they rest */
};

/* unsharded_shard.c: a life begins, and ends. */
int unsharded_shard(const struct fsdp_env *env, const struct fsdp_model *model,
                    const struct fsdp_units *units,
                    const struct fsdp_options *options,
                    struct fsdp_sharded **out);
void unsharded_destroy(struct fsdp_sharded *s);
/* Where the parameters that are trained now would lie in shards. */
void unsharded_lay_out(struct fsdp_sharded *s);
/* Storage of [total] elements for a value of `kind`; and back. */
int unsharded_take(struct fsdp_sharded *s, uint32_t kind, float **out);
void unsharded_drop(struct fsdp_sharded *s, float **p);
/* The unit of a parameter, or FSDP_NO_UNIT. */
uint32_t unsharded_unit(const struct fsdp_sharded *s, uint32_t p);
/* Whether a backward of the module is one of unit u: the unit is the module's,
 * or that of one of its parameters. */
bool unsharded_is_of(const struct fsdp_sharded *s, uint32_t module, uint32_t u);
bool unsharded_is_frozen(const struct fsdp_sharded *s, uint32_t p);
/* Whether the parameter is ignored, and stays with the model. */
static inline bool unsharded_is_ignored(const struct fsdp_sharded *s,
                                        uint32_t p)
{
    return unsharded_unit(s, p) == FSDP_NO_UNIT;
}
/* Whether a step changes it: it is an original, not frozen, and not ignored. */
static inline bool unsharded_is_stepped(const struct fsdp_sharded *s,
                                        uint32_t p)
{
    return fsdp_original(s->model, p) == p && !unsharded_is_frozen(s, p) &&
           !unsharded_is_ignored(s, p);
}

/* unsharded_gradients.c: the gradients of each rank, as its passes leave
 * them. */
int unsharded_make_gradients(struct fsdp_sharded *s);
/* Finds which units have a parameter to train. */
void unsharded_find_trained(struct fsdp_sharded *s);
void unsharded_free_gradients(struct fsdp_sharded *s);
void unsharded_drop_gradients(struct fsdp_sharded *s);
/* Adds up the gradients that the model left in `fresh`. */
int unsharded_take_gradients(struct fsdp_sharded *s, uint32_t module);
/* A pass begins; and ends: what is reduced is complete. */
void unsharded_begin_pass(struct fsdp_sharded *s);
void unsharded_end_pass(struct fsdp_sharded *s);
/* Removes the first `n` contributions of a unit, once they are folded: later
 * ones move up. */
void unsharded_forget(struct fsdp_sharded *s, struct rank_gradients *x,
                      uint32_t unit, uint32_t n);
/* How many of a unit's contributions are complete across replicas. */
uint32_t unsharded_n_complete(const struct fsdp_sharded *s,
                              const struct rank_gradients *x, uint32_t unit);
/* Whether a rank has gradients that no pass with sync has closed, or sums that
 * were not taken across replicas. */
bool unsharded_is_pending(const struct fsdp_sharded *s);
bool unsharded_has_gradients(const struct fsdp_sharded *s);
int unsharded_set_gradient_sync(struct fsdp_sharded *s, uint32_t on);
int unsharded_set(struct fsdp_sharded *s, uint32_t unit, uint32_t knob,
                  float value);
int unsharded_unshard(struct fsdp_sharded *s, uint32_t unit);
int unsharded_reshard(struct fsdp_sharded *s, uint32_t unit);

/* unsharded_buffers.c: of each rank; and what is kept of them, in the dtypes
 * that they are stored in: that of the first rank, which all then have. */
int unsharded_make_buffers(struct fsdp_sharded *s,
                           const struct fsdp_units *units);
void unsharded_free_buffers(struct fsdp_sharded *s);
int unsharded_buffer(struct fsdp_sharded *s, uint32_t b,
                     struct fsdp_tensor *out);
uint64_t unsharded_kept_bytes(const struct fsdp_sharded *s);
int unsharded_keep_buffers(struct fsdp_sharded *s, char *to);
int unsharded_take_buffers(struct fsdp_sharded *s, const char *from);

/* unsharded_shard.c: folds the contributions that sync has closed, in order,
 * adds them to what was folded before, and forgets them. INVALID if some
 * gradients are pending, since a caller that uses gradients needs all of
 * them. */
int unsharded_reduce(struct fsdp_sharded *s);
int unsharded_reduce_all(struct fsdp_sharded *s, const char *where);

/* unsharded_clip.c: what is done with all gradients between the fold and the
 * optimizer. */
int unsharded_clip_grad_norm(struct fsdp_sharded *s,
                             const struct fsdp_clip *clip, float *out_norm);
/* Undoes the scale that the step has; sets its found_inf. */
int unsharded_unscale(struct fsdp_sharded *s, struct fsdp_step *how);

/* unsharded_kept.c: an engine that keeps checkpoints, in memory, from open to
 * close, whichever lives come and go between. */
int unsharded_open(struct fsdp_env *env);
void unsharded_close(struct fsdp_env *env);
int unsharded_save_begin(struct fsdp_sharded *s, const struct fsdp_save *save);
int unsharded_save_wait(struct fsdp_sharded *s);
int unsharded_load(struct fsdp_sharded *s, const char *directory);
int unsharded_load_from(struct fsdp_sharded *s, const struct fsdp_load *how);
void unsharded_give_up(struct fsdp_sharded *s); /* a save not waited for */

#endif
