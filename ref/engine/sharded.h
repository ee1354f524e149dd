/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sharded.h - the data of the reference engine. What a rank owns is in one
 * table of parts, whatever the layout.
 *
 * Read in this order: layout.c (shard), window.c (when), unit.c (unshard,
 * reshard, reduce), optimizer.c (step), shard.c and engine.c (the functions
 * of the contract). unsharded.c is the run that nobody shards.
 */
#ifndef FSDP_CTS_SHARDED_H
#define FSDP_CTS_SHARDED_H

#include "ref.h"

/* A unit and what is live of it. Lengths are in elements. */
struct ref_unit {
    uint64_t numel;    /* m_u: of its parameters */
    uint64_t chunk;    /* of a shard, with its padding */
    uint64_t whole;    /* of an unsharded copy: chunk * S, or numel (packs) */
    float *shard;      /* [chunk], always */
    float *state[2];   /* [chunk], as the optimizer needs */
    float *full;       /* [whole] while unsharded, if S > 1 */
    float *grad_full;  /* [whole] from backward to reduce */
    float *grad_shard; /* [chunk] from the first reduce to zero_grad */
    float *wire;       /* [chunk * S] in a collective, where it packs */
    bool open;         /* in a window, or kept */
    float power[2];    /* running products of beta1, beta2, over the steps that
                        * it took */
};

/* Elements [first, first + n) of a parameter, at `local` in this rank's shard
 * of its unit. Padding is in no part. */
struct ref_part {
    uint32_t parameter;
    uint64_t first, n, local;
};

struct ref_parameter {
    uint32_t unit;
    uint64_t numel, offset; /* offset in the unit's unsharded copy */
    uint64_t block, local;  /* per parameter: elements of a shard's rows,
                             * and where in a shard they begin */
    bool accumulated;       /* grad_full holds a gradient of it */
    bool fresh;             /* the model was lent storage for a gradient */
    float *staging;         /* that storage, if grad_full was taken */
};

/* What to do at a point of a sequence. */
enum {
    REF_UNSHARD = 1,  /* a window begins */
    REF_RESHARD = 2,  /* a window ends */
    REF_BACKWARD = 4, /* it is a backward window: gradients, reduce */
};

struct fsdp_sharded {
    const struct fsdp_env *env;
    const struct fsdp_model *model;
    const struct fsdp_units *units;
    struct fsdp_options options;
    uint32_t shards, replicas; /* S, R */
    uint32_t coordinate;       /* of this rank in "shard" */
    bool packs;                /* what is unsharded is not what is sent */
    float divide;              /* 1 / divide factor */

    struct ref_unit *unit;           /* [n_units] */
    struct ref_parameter *parameter; /* [n_parameters] */
    struct ref_part *part;           /* [n_parts], parameters ascending */
    uint32_t n_parts;
    uint32_t *group;   /* [n_parameters], or NULL: one group */
    uint32_t n_states; /* of the optimizer: 0, 1, 2 */
    uint8_t **action;  /* [n_sequences][n]: REF_UNSHARD, ... */
    bool *in_backward; /* [n_modules] */

    const struct fsdp_sequence *sequence; /* NULL: at rest */
    uint32_t sequence_index;
    uint32_t next;      /* point of the sequence */
    bool all_unsharded; /* between unshard_all and reshard_all */
    bool sync;          /* of this pass */
    bool next_sync;
    float power[2]; /* those products over all steps that changed anything */
    uint64_t steps; /* how many these are */
    bool loaded;    /* the values are those of a checkpoint */
    bool torn;      /* a load failed half way: only another one helps */
    struct ref_checkpoints *checkpoints; /* from the first save or load on */
};

/* One line each around the device: storage with a kind, and back. */
int ref_take(struct fsdp_sharded *s, uint32_t kind, uint32_t unit, uint64_t n,
             float **out);
void ref_drop(struct fsdp_sharded *s, float **p);
/* op with `size` filled in, on the model's stream. */
int ref_run(struct fsdp_sharded *s, struct fsdp_op op);
int ref_fill_zero(struct fsdp_sharded *s, uint32_t unit, float *p, uint64_t n);

/* layout.c */
void ref_layout(struct fsdp_sharded *s);
/* The part of parameter p that shard `shard` owns, if any. */
bool ref_part(const struct fsdp_sharded *s, uint32_t p, uint32_t shard,
              struct ref_part *out);
/* Between a unit's unsharded copy and its shards, one behind the other. */
int ref_pack(struct fsdp_sharded *s, uint32_t u, float *whole);
int ref_unpack(struct fsdp_sharded *s, uint32_t u, float *whole);
int ref_initialise(struct fsdp_sharded *s);
/* After so many steps of every unit: none, or those of a checkpoint. */
void ref_set_steps(struct fsdp_sharded *s, uint64_t steps,
                   const float power[2]);
/* Initial values and zero states, in what is there. */
int ref_fill_initial(struct fsdp_sharded *s);
/* window.c */
int ref_plan(const struct fsdp_sequence *q, const struct fsdp_units *units,
             const struct fsdp_options *options, uint8_t *action);

/* unit.c */
int ref_unshard(struct fsdp_sharded *s, uint32_t u);
void ref_reshard(struct fsdp_sharded *s, uint32_t u);
int ref_open_gradient(struct fsdp_sharded *s, uint32_t u);
int ref_take_gradients(struct fsdp_sharded *s, uint32_t module);
int ref_reduce(struct fsdp_sharded *s, uint32_t u);
void ref_drop_gradients(struct fsdp_sharded *s);

/* optimizer.c */
int ref_step(struct fsdp_sharded *s, struct fsdp_step *step);

/* clip.c */
int ref_clip_grad_norm(struct fsdp_sharded *s, const struct fsdp_clip *clip,
                       float *out_norm);

/* save.c, load.c */
int ref_save_begin(struct fsdp_sharded *s, const struct fsdp_save *save);
int ref_save_wait(struct fsdp_sharded *s);
int ref_load(struct fsdp_sharded *s, const char *directory);
int ref_loaded_extra(struct fsdp_sharded *s, const char *name,
                     const void **data, uint64_t *bytes);
void ref_checkpoints_release(struct fsdp_sharded *s);
int ref_at_rest(const struct fsdp_sharded *s, const char *where);

/* shard.c */
int ref_shard(const struct fsdp_env *env, const struct fsdp_model *model,
              const struct fsdp_units *units,
              const struct fsdp_options *options, struct fsdp_sharded **out);
void ref_destroy(struct fsdp_sharded *s);

#endif
