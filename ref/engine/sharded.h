/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sharded.h - the data of the reference engine. One table lists the parts that
 * a rank owns, whatever the layout.
 *
 * Read in this order: layout.c (shard), window.c (when), unit.c (unshard,
 * reshard, accumulate), reduce.c, controls.c (a unit's knobs), thaw.c (what is
 * trained), optimizer.c (step), early.c (step in backward), buffers.c,
 * assign.c, summon.c, shard.c and engine.c (the functions of the contract).
 * unsharded.c is the unsharded run.
 */
#ifndef FSDP_CTS_SHARDED_H
#define FSDP_CTS_SHARDED_H

#include "ref.h"

/* The knobs of a unit, which `set` turns. */
struct ref_knobs {
    bool sync;             /* its gradient is reduced, */
    bool all_reduce;       /* across replicas, too */
    bool reshard_forward;  /* it is resharded when its forward window ends, */
    bool reshard_backward; /* its backward window */
    struct ref_divisors divisors; /* of its gradient */
};

/* Where a value is: on env->device, or on env->host if it is offloaded. */
enum ref_where {
    REF_DEVICE = 0,
    REF_HOST = 1,
};

/* A unit and its live values. Lengths are in elements. A void pointer is to
 * elements of one of the unit's dtypes; values at rest are float32. */
struct ref_unit {
    struct ref_dtypes dtype;
    struct ref_knobs knob, next_knob; /* of this pass; of the next one */
    struct ref_factors factor;        /* of this pass */
    uint32_t shard_at;                /* enum ref_where: its shard; */
    uint32_t step_at; /* its states and its reduced gradient, so its step */
    uint64_t numel;   /* m_u: of its parameters */
    uint64_t chunk;   /* of a shard, with its padding */
    uint64_t whole;   /* of an unsharded copy: chunk * S, or numel (packs) */
    bool freezes;     /* one of its parameters is frozen */
    bool trains;      /* not all of them are frozen; else what follows is 0, and
                       * it has no gradient */
    bool has_holes;   /* its gradient has places for frozen parameters: flat */
    /* The same of its gradient; per parameter, of trainable parameters
     * alone. */
    uint64_t grad_numel, grad_chunk, grad_whole;
    uint64_t n_states;   /* elements of a state: grad_chunk; with holes, the
                          * trainable ones of this rank's shard */
    float *shard;        /* [chunk], always */
    bool *lacks;         /* [chunk]: no value was given; NULL: all have one */
    float *state[2];     /* [n_states], as the optimizer needs */
    void *full;          /* [whole] while unsharded, if S > 1 or it is cast */
    uint32_t full_dtype; /* param, or F32 between unshard_all, reshard_all */
    void *grad_full;     /* [grad_whole] of accumulate, from backward to
                          * reduce */
    float *grad_shard;   /* [grad_chunk] from the first reduce to zero_grad */
    void *wire;     /* [chunk * S], or of a gradient, during a collective that
                     * packs or casts */
    void *reduced;  /* [grad_chunk] of reduce, until it is in grad_shard */
    void *partial;  /* the same: the sum over shards that replicas have not
                     * summed yet */
    void *landed;   /* the same, copied to the host */
    float *brought; /* [chunk]: the shard, copied to where it does not rest */
    bool open;      /* unsharded */
    bool windowed;  /* one of its windows has begun, and has not ended */
};

/* Elements [first, first + n) of a parameter, at `local` in this rank's shard
 * of its unit. No part has padding. A trainable part is at `grad` in the
 * gradient's shard, and at `state` in each state. */
struct ref_part {
    uint32_t parameter;
    uint64_t first, n, local;
    bool frozen;
    uint64_t grad, state;
};

/* A parameter. A tied one lies where its original does, and has no part of its
 * own. */
struct ref_parameter {
    uint32_t original; /* itself, or what it is tied to */
    bool shared;       /* it is tied, or another one is tied to it */
    uint32_t unit;     /* FSDP_NO_UNIT: it is ignored, and in none */
    struct ref_numbers numbers;
    uint64_t steps;         /* how many steps the optimizer made of it */
    uint64_t numel, offset; /* offset in the unit's unsharded copy */
    uint64_t block, local;  /* per parameter: elements of a shard's rows,
                             * and where in a shard they begin */
    bool frozen;
    uint64_t grad_offset, grad_local; /* the same in gradients */
    bool accumulated;                 /* of an original: grad_full holds its
                                       * gradient */
    bool fresh;    /* the model was lent storage for a gradient */
    void *staging; /* that storage, of grad, if grad_full was taken,
                    * or may be, or is of another dtype */
};

/* A buffer, as it rests. */
struct ref_buffer {
    uint32_t dtype;
    uint64_t numel;
    void *data;
};

/* What to do with a unit at a point of a sequence. */
enum {
    REF_UNSHARD = 1,  /* a window begins */
    REF_RESHARD = 2,  /* a window ends */
    REF_BACKWARD = 4, /* it is a backward window: gradients, reduce */
    REF_HOLDABLE = 8, /* or it stays unsharded until a backward window ends */
};

struct fsdp_sharded {
    const struct fsdp_env *env;
    const struct fsdp_device *host; /* NULL: there is none */
    const struct fsdp_model *model; /* `known` */
    struct fsdp_model known;        /* the caller's, with `flags` for its own */
    uint32_t *flags;                /* [n_parameters]: as trained now */
    const struct fsdp_units *units;
    struct fsdp_options options; /* without arrays: those are the caller's */
    uint32_t shards, replicas;   /* S, R */
    uint32_t coordinate;         /* of this rank in "shard" */
    bool packs;                  /* a unit's unsharded copy is laid out
                                  * otherwise than on the wire */

    struct ref_unit *unit;           /* [n_units] */
    struct ref_parameter *parameter; /* [n_parameters] */
    struct ref_part *part;           /* [n_parts], parameters ascending */
    struct ref_buffer *buffer;       /* [n_buffers] */
    uint32_t n_parts;
    uint32_t n_states; /* of the optimizer: 0, 1, 2 */
    bool *uses;        /* [n_modules][n_units]: its points are the unit's */
    uint8_t **action;  /* [n_sequences][n][n_units]: REF_UNSHARD, ... */
    bool *in_backward; /* [n_modules] */

    const struct fsdp_sequence *sequence; /* NULL: at rest */
    uint32_t sequence_index;
    uint32_t next;          /* point of the sequence */
    bool all_unsharded;     /* between unshard_all and reshard_all */
    float power[2];         /* products of the options' betas over all steps in
                             * which a parameter changed */
    uint64_t steps;         /* how many these are */
    bool loaded;            /* or assigned, or sent by rank 0: this rank cannot
                             * make the values again */
    bool rank0;             /* no other rank has initial values */
    bool deferred;          /* some rank may lack values */
    bool torn;              /* a load failed half way: only another one helps */
    struct ref_early early; /* a step that is made in a pass */
    struct ref_checkpoints *checkpoints; /* from the first save or load on */
};

/* One line each around the device, or the host (enum ref_where): storage of n
 * elements with a kind, and back. `out` and `p` point to a pointer to elements.
 */
int ref_take(struct fsdp_sharded *s, uint32_t where, uint32_t kind,
             uint32_t unit, uint64_t n, uint32_t dtype, void *out);
void ref_drop(struct fsdp_sharded *s, uint32_t where, void *p);
/* Copies between the device and the host. */
int ref_cross(struct fsdp_sharded *s, uint32_t to_where, uint64_t bytes,
              const void *from, void *to);
/* The address of element i in an array of a dtype. */
void *ref_at(void *p, uint32_t dtype, uint64_t i);
/* Runs op, with `size` filled in, on the model's stream. */
int ref_run(struct fsdp_sharded *s, uint32_t where, struct fsdp_op op);
int ref_fill_zero(struct fsdp_sharded *s, uint32_t where, uint32_t unit,
                  uint32_t dtype, void *p, uint64_t n);
/* Converts n elements: rounds or widens them; copies them if dtypes are
 * equal. */
int ref_convert(struct fsdp_sharded *s, uint32_t where, uint32_t unit,
                uint64_t n, uint32_t from, const void *x, uint32_t to, void *y);
/* sum[n] = sum + x, each in its own dtype, rounded once. */
int ref_add_to(struct fsdp_sharded *s, uint32_t where, uint32_t unit,
               uint64_t n, uint32_t dtype, void *sum, uint32_t x_dtype,
               const void *x);

/* layout.c: lays parameters out, anew if other ones are trained now. */
void ref_layout(struct fsdp_sharded *s);
/* INVALID if parameter p is ignored. */
int ref_check_owned(const struct fsdp_sharded *s, uint32_t p,
                    const char *where);
/* Whether p is stored in unit u, and is not another name of an original. */
bool ref_is_in(const struct fsdp_sharded *s, uint32_t p, uint32_t u);
/* The part of parameter p that shard `shard` owns, if any. */
bool ref_part(const struct fsdp_sharded *s, uint32_t p, uint32_t shard,
              struct ref_part *out);
/* From a unit's gradient to its shards on the wire, one behind the other; and
 * from those on the wire, of a dtype, to the unsharded copy. */
int ref_pack(struct fsdp_sharded *s, uint32_t u);
int ref_unpack(struct fsdp_sharded *s, uint32_t u, uint32_t dtype);
int ref_initialise(struct fsdp_sharded *s);
/* Sets the steps of all units: none, or those of a checkpoint. */
void ref_set_steps(struct fsdp_sharded *s, uint64_t steps,
                   const float power[2]);
/* Sets the steps of one parameter. */
void ref_set_own_steps(struct fsdp_sharded *s, uint32_t p, uint64_t steps);
/* Writes initial values and zero states into the storage that is there. */
int ref_fill_initial(struct fsdp_sharded *s);
/* window.c */
void ref_find_uses(const struct fsdp_model *model,
                   const struct fsdp_units *units, bool *uses);
void ref_plan(const struct fsdp_sharded *s, const struct fsdp_sequence *q,
              uint8_t *action);
bool ref_reshards_after_forward(const struct fsdp_units *units,
                                const struct fsdp_options *options, uint32_t u);

/* unit.c */
int ref_unshard(struct fsdp_sharded *s, uint32_t u, uint32_t dtype);
void ref_reshard(struct fsdp_sharded *s, uint32_t u);
void ref_reshard_each(struct fsdp_sharded *s);
int ref_open_gradient(struct fsdp_sharded *s, uint32_t u);
int ref_take_gradients(struct fsdp_sharded *s, uint32_t module);
void ref_drop_gradients(struct fsdp_sharded *s);

/* unit.c: a collective over the unit's chunks, in a dtype; sum_dtype is that of
 * a reduction, or NONE. */
int ref_collective(struct fsdp_sharded *s, struct fsdp_collective c);

/* reduce.c */
int ref_reduce(struct fsdp_sharded *s, uint32_t u);

/* controls.c */
int ref_set_gradient_sync(struct fsdp_sharded *s, uint32_t on);
int ref_set(struct fsdp_sharded *s, uint32_t unit, uint32_t knob, float value);
int ref_unshard_unit(struct fsdp_sharded *s, uint32_t unit);
int ref_reshard_unit(struct fsdp_sharded *s, uint32_t unit);
/* Sets all knobs as they are after shard. */
void ref_set_knobs(struct fsdp_sharded *s, const struct fsdp_units *units);
/* At the beginning of a pass: the knobs that were set hold from here on. */
void ref_turn_knobs(struct fsdp_sharded *s);
/* INVALID if a unit has a gradient that is not complete. */
int ref_check_reduced(const struct fsdp_sharded *s, const char *where);

/* buffers.c: makes buffers with their initial values; and frees them. */
int ref_make_buffers(struct fsdp_sharded *s, const struct fsdp_units *units);
void ref_drop_buffers(struct fsdp_sharded *s);
int ref_buffer(struct fsdp_sharded *s, uint32_t b, struct fsdp_tensor *out);
/* Converts a buffer from host memory, in its stored dtype, to the dtype in
 * which it rests; NULL: no memory. The others write what rests, and read it as
 * it is stored. */
void *ref_rest_buffer(struct fsdp_sharded *s, uint32_t b, void *stored);
int ref_write_buffer(struct fsdp_sharded *s, uint32_t b, const void *resting);
int ref_read_buffer(struct fsdp_sharded *s, uint32_t b, void *stored);

/* thaw.c */
int ref_set_requires_grad(struct fsdp_sharded *s, uint32_t p, uint32_t on);

/* optimizer.c: steps all units, or one; `first`: it is the first of a step. */
int ref_step(struct fsdp_sharded *s, const struct fsdp_step *step);
int ref_step_unit(struct fsdp_sharded *s, uint32_t u,
                  const struct fsdp_step *step, bool first);
/* INVALID, from `where`, unless the step has as many groups as the options. */
int ref_check_groups(const struct fsdp_sharded *s, const struct fsdp_step *step,
                     const char *where);

/* early.c */
int ref_set_step(struct fsdp_sharded *s, const struct fsdp_step *step);
/* In a pass with a step: whether the unit's backward window closes in this
 * pass, so that it will be stepped. */
bool ref_steps_early(const struct fsdp_sharded *s, uint32_t u);
/* Steps a unit that has been reduced, and drops its gradient. */
int ref_step_early(struct fsdp_sharded *s, uint32_t u);

/* deferred.c: without initial values all is lacking; values have been given.
 * INVALID, from `where`: a parameter lacks some, on this rank, or on any, which
 * is collective; not to be asked of a model that had values from the beginning.
 */
int ref_defer(struct fsdp_sharded *s);
void ref_has_values(struct fsdp_sharded *s, uint32_t u, uint64_t first,
                    uint64_t n);
int ref_find_lacking(struct fsdp_sharded *s, const char *where, bool any_rank);
static inline int ref_check_filled(struct fsdp_sharded *s, const char *where,
                                   bool any_rank)
{
    return s->deferred ? ref_find_lacking(s, where, any_rank) : FSDP_OK;
}

/* layout.c: copies elements [first, first + n) of parameter p to the device. */
int ref_read_initial(struct fsdp_sharded *s, uint32_t p, uint64_t first,
                     uint64_t n, float *to);
/* rank0.c: rank 0's initial values, or others, to all ranks. Collective. */
int ref_send_initial(struct fsdp_sharded *s);
int ref_send_values(struct fsdp_sharded *s, const struct fsdp_values *from);

/* assign.c */
int ref_assign(struct fsdp_sharded *s, uint32_t p, uint64_t first, uint64_t n,
               const void *host);

/* summon.c */
int ref_summon(struct fsdp_sharded *s, const struct fsdp_summon *how);

/* clip.c */
int ref_clip_grad_norm(struct fsdp_sharded *s, const struct fsdp_clip *clip,
                       float *out_norm);
/* Whether any rank's reduced gradient is not finite. Collective. */
int ref_find_inf(struct fsdp_sharded *s, uint32_t *found);
/* Scales all of this rank's reduced gradients, in place. */
int ref_scale_gradients(struct fsdp_sharded *s, float factor);

/* save.c: whether there are gradients, reduced or not. */
bool ref_has_gradients(const struct fsdp_sharded *s);
/* save.c: whether a save has begun that was not waited for. */
bool ref_is_saving(const struct fsdp_sharded *s);
/* Other slices are this rank's now: its table of them is out of date. */
void ref_checkpoints_changed(struct fsdp_sharded *s);

/* save.c, load.c */
int ref_save_begin(struct fsdp_sharded *s, const struct fsdp_save *save);
int ref_save_wait(struct fsdp_sharded *s);
int ref_load(struct fsdp_sharded *s, const char *directory);
int ref_load_from(struct fsdp_sharded *s, const struct fsdp_load *how);
int ref_loaded_extra(struct fsdp_sharded *s, const char *name,
                     const void **data, uint64_t *bytes);
void ref_checkpoints_release(struct fsdp_sharded *s);
int ref_at_rest(const struct fsdp_sharded *s, const char *where);
/* INVALID, from `where`, if a step is set for the next pass. */
int ref_check_unset(const struct fsdp_sharded *s, const char *where);

/* shard.c */
int ref_shard(const struct fsdp_env *env, const struct fsdp_model *model,
              const struct fsdp_units *units,
              const struct fsdp_options *options, struct fsdp_sharded **out);
void ref_destroy(struct fsdp_sharded *s);

#endif
