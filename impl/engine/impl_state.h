/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_state.h - the data of the optimized engine.
 *
 * Read in this order: impl_options.c (what is refused), impl_dtypes.c (the
 * dtypes of values), impl_layout.c (where parameters lie), impl_windows.c and
 * impl_schedule.c (what happens when), impl_place.c and impl_slots.c (where
 * values are stored), impl_trace.c and impl_arena.c (the same if nothing runs
 * ahead), impl_unshard.c, impl_gradient.c, impl_pack.c, impl_reduce.c (the
 * cycle of a unit), impl_offload.c (what of a unit is on the host),
 * impl_controls.c (its knobs), impl_thaw.c (what trains), impl_buffers.c,
 * impl_optimizer.c, impl_early.c (step in backward), impl_assign.c,
 * impl_points.c and impl_between.c (the functions of the contract),
 * impl_save.c, impl_gather_full.c and impl_load.c (checkpoints), impl_shard.c
 * and impl_vtable.c.
 *
 * Streams. Compute is the model's; gathers, reductions within the shard
 * dimension and those over replicas have one each, and so have copies from the
 * host and those to it. Each crossing is a wait with a name:
 *
 *   optimizer->all-gather       shards are updated before they are sent
 *   dead->reuse                 what lay there before was read to the end
 *   all-gather->compute         a unit is complete before it is used
 *   compute->reduce-scatter     a gradient is complete before it is sent
 *   compute->all-reduce         the same where there is one shard
 *   reduce-scatter->all-reduce  replicas meet after shards
 *   all-reduce->reuse           a contribution was added before the next one
 *   reduce->reuse               a gradient was sent before its end
 *   reduce->optimizer           gradient shards are complete before they are
 *                               used, or dropped
 *   step->compute               units that were stepped in a pass are used
 *   dead->free                  an allocation of its own was used to the end
 *   stream->communicator        a communicator without streams reads at once
 *   optimizer->copy             the same as to all-gathers, of shards that rest
 *                               on the host
 *   host->device                it is there before it is cast, sent, used; what
 *                               was copied may be written again
 *   cast->reuse                 a copy of a shard was cast before the next one
 *   reduce->copy                a result is complete before it is copied
 *   device->host                and is there before the host goes on, or
 *                               something else lies where it was
 *   compute->copy               a shard was read before it is copied over
 *
 * The host works on no stream: what it does is done when the next call is made.
 */
#ifndef FSDP_CTS_IMPL_STATE_H
#define FSDP_CTS_IMPL_STATE_H

#include "impl_arena.h"
#include "impl_schedule.h"

/* The dtypes of a unit's values outside its shard, each F32, BF16 or F16. */
struct impl_dtypes {
    uint32_t param, grad, accumulate, reduce, sum;
};

enum {
    IMPL_MIXED_SYNC = 2
};

/* The knobs of a unit. */
struct impl_knobs {
    bool sync;             /* its gradient is reduced, */
    bool all_reduce;       /* across replicas, too */
    bool reshard_forward;  /* it is resharded when its forward window ends, */
    bool reshard_backward; /* when its backward window ends */
    float divide, predivide;
};

/* Lengths are in elements. Pointers are NULL while nothing is live there. */
struct impl_unit {
    uint64_t numel;  /* of its parameters */
    uint64_t chunk;  /* of a shard, with its padding */
    uint64_t padded; /* chunk * S: on the wire */
    uint64_t whole;  /* of an unsharded copy: padded, or numel if packed */
    float prescale;  /* in this pass, before the fold: 1 / predivide */
    float scale;     /* after the fold: predivide / divide */
    bool frozen;     /* all of its parameters are: it has no gradient */
    bool has_holes;  /* its gradient has places for frozen parameters: flat */
    bool shares;     /* one of its parameters has several names */
    bool trains;     /* has a gradient, in some sequence */
    bool repacks;    /* a copy of its gradient is sent: packed, or cast */
    struct impl_dtypes dtype;
    struct impl_knobs knob, next_knob; /* of this pass; of the next one */
    /* The same of its gradient; per parameter, of trainable parameters
     * alone. */
    uint64_t grad_numel, grad_chunk, grad_padded, grad_whole;
    /* Whether its shard rests on the host; whether its states and reduced
     * gradient do. */
    bool shard_on_host, step_on_host;
    uint64_t n_state; /* elements of a state: grad_chunk; with frozen
                       * parameters in a flat unit, the trainable ones of
                       * this rank, without padding */

    float *shard;        /* [chunk], always */
    uint64_t *lacks;     /* a bit an element: 1 if it has no value yet; NULL:
                          * all have one */
    float *state[2];     /* [n_state], always; in the block of what rests or,
                          * once a parameter was thawed or frozen, in
                          * own_states */
    float *own_states;   /* their own allocation, or NULL */
    uint32_t first_span; /* its spans end where the next unit's begin; n_units
                          * has an entry, too */
    uint64_t steps;      /* how many steps of the optimizer it took part in */
    float *grad_shard;   /* [grad_chunk], from the first reduce to zero_grad */
    void *partial;       /* [grad_chunk]: sums over shards that replicas have
                          * not summed yet */
    void *full;          /* [whole], from the all-gather on, if S > 1, or
                          * cast from the shard */
    uint32_t full_dtype; /* dtype.param, or F32 after unshard_all */
    void *grad;          /* [grad_whole], from backward until it was sent */
    void *arrived;       /* [padded], gathered and not unpacked yet */
    void *packed;        /* [grad_padded], while it is sent in place of grad */
    void *brought;       /* [chunk], its shard, copied, until it is cast */
    float *borrowed;     /* [chunk], a copy of its shard where it is stepped,
                          * while it is, if it rests elsewhere */
    void *landed;        /* [grad_chunk], on the host: the copy of a result that
                          * is still to be added or cast */
    struct impl_life *arrived_life, *packed_life; /* or NULL */
    uint64_t own_grad;                            /* places in blocks */
    uint64_t own_grad_shard; /* in the device's block, or in the host's */
    uint64_t own_full;

    uint64_t gathered;           /* ticket of its all-gather */
    bool open;                   /* unsharded, and compute waits for it */
    bool windowed;               /* in a window, or kept since a forward one */
    bool by_hand;                /* gathered by `unshard`, and not open yet */
    bool in_flight;              /* grad, or packed, is being sent */
    struct fsdp_stream *sent_by; /* the stream that sends it, done at this
                                  * ticket */
    uint64_t sent;
    uint64_t brought_at; /* ticket of the last copy of its shard, or 0 */
    bool landing;        /* a result is being copied, */
    uint64_t landed_at;  /* which is done at this ticket; */
    bool steps_landed;   /* then the unit is stepped */
    bool steps_reduced;  /* it is stepped as soon as its reduction has ended, */
    bool grad_is_sum;    /* its gradient lies in the place of a sum */
};

/* The numbers of a parameter: those of its group, or the options'. */
struct impl_numbers {
    uint32_t group;
    float momentum, beta1, beta2, eps;
};

/* A parameter. A tied one has the places of its original, and is in no
 * index. */
struct impl_parameter {
    uint32_t unit;
    struct impl_numbers numbers; /* read once: the arrays are the caller's */
    uint32_t original;           /* its own number, or that of the parameter it
                                  * is tied to */
    bool shared;                 /* has more than one name */
    uint64_t numel;
    uint64_t offset;          /* in the unit's unsharded copy */
    uint64_t block, block_at; /* per parameter: elements of the rows of a
                               * shard, and where in it they begin */
    bool frozen;
    uint64_t begun;       /* steps of its unit in which it took no part */
    uint64_t grad_offset; /* the same as offset, in gradients */
    uint64_t grad_block_at;
    uint64_t module_at;        /* words, among the gradients of its module */
    uint64_t first, n, local;  /* this rank owns [first, first + n), at `local`
                                * in its shard; n = 0: nothing */
    uint64_t grad_local;       /* where these are in its gradient's shard, */
    uint64_t state_local;      /* and in states; a frozen parameter is in
                                * neither */
    struct fsdp_tensor tensor; /* its shape */
    bool accumulated;          /* grad holds a gradient of its original */
    bool fresh;                /* storage for a gradient was lent */
    void *staging;             /* that storage, if grad was taken, or may be */
};

/* Elements of a unit's shard that share their hyperparameters: at `local` in
 * the shard, at `grad` in the gradient's, at `state` in states. */
struct impl_span {
    uint32_t unit, group;
    bool decays;
    uint64_t local, grad, state, n;
    float momentum, beta1, beta2, eps; /* those of its group */
    float power[2]; /* running products of the betas, over its unit's steps */
    uint64_t steps; /* how many steps these were when spans were made */
};

/* Numbers of parameters; those of key k are [first[k], first[k + 1]). */
struct impl_index {
    uint32_t *first, *parameter;
};

/* The step of the next pass, as set_step gives it, with its own arrays. */
struct impl_early {
    bool set;     /* it is for the next pass; */
    bool on;      /* it is made in this pass */
    bool counted; /* a unit was stepped, so that the step counts */
    struct fsdp_step how;
    float *numbers; /* rates, then decays: [n_groups] each */
};

/* One allocation, made when first needed. */
struct impl_block {
    float *p;      /* NULL: not made */
    uint64_t room; /* words */
    bool on_host;
};

/* A buffer of the model, at rest. */
struct impl_buffer {
    uint32_t dtype;
    void *p;
};

/* What staging has room for, as bits. */
enum {
    IMPL_STAGE_FRESH = 1, /* gradients that meet older ones */
    IMPL_STAGE_SUM = 2,   /* contributions to gradient shards */
};

struct fsdp_sharded {
    const struct fsdp_env *env;
    const struct fsdp_model *model; /* `known` */
    struct fsdp_model known;        /* the caller's, with `flags` for its own */
    uint32_t *flags;                /* [n_parameters]: as trained now */
    struct fsdp_units units;
    struct fsdp_options options;
    uint32_t shards, replicas; /* S, R */
    uint32_t coordinate;       /* of this rank in "shard" */
    uint32_t n_states;         /* of the optimizer: 0, 1, 2 */
    bool packs;                /* per parameter, S > 1 */
    bool copies;               /* a unit is unsharded to a copy though S = 1 */
    bool brings, lands;        /* some shard rests on the host; some states
                                * do */

    struct impl_unit *unit;           /* [n_units], and one more, empty */
    struct impl_parameter *parameter; /* [n_parameters] */
    struct impl_index of_unit, of_module;
    struct impl_span *span;
    uint32_t n_spans;
    struct impl_buffer *buffer; /* [n_buffers] */
    struct impl_extent *extent; /* [n_units], for plans */
    uint64_t *module_words;     /* [n_modules], of gradients */
    struct impl_plan *plan;     /* [n_sequences] */

    bool strict;             /* nothing runs ahead, and values that */
    struct impl_arena arena; /* are not at rest lie here */

    /* Else they lie in slots, but for values that are taken outside a pass. */
    struct impl_block rest, grad_shards, full, grads, staging, wire;
    uint64_t full_room, grad_room, wire_room;    /* as planned */
    uint64_t grad_sum, grad_shard_sum, full_sum; /* all units at once */
    /* On the host every value has a place of its own, even in the strict
     * profile. */
    struct impl_block host_rest, host_grads, host_staging;
    struct impl_block brought; /* shards that are cast, that are stepped */
    uint64_t brought_room[2];  /* of either, words */
    uint64_t host_grad_sum;    /* all units at once */
    uint64_t landed_room;      /* of one result */
    uint64_t borrowed_room;    /* of a shard that is stepped on the host */
    uint32_t next_landed;      /* result, of those in flight */
    uint64_t brought_done;     /* ticket of the last cast on this stream */
    struct fsdp_stream *brought_by;
    bool resident;        /* each unit's gradient has its own place */
    uint32_t stages;      /* bits IMPL_STAGE_... that staging has room for */
    uint64_t sum_at[2];   /* in staging, if in flight */
    uint64_t sum_done[2]; /* tickets of these streams */
    struct fsdp_stream *sum_by[2];
    uint32_t n_sums, next_sum;

    struct fsdp_stream *gathering, *reducing, *replicating; /* or NULL */
    struct fsdp_stream *bringing, *landing; /* from the host, to it; or NULL */
    struct fsdp_stream *last; /* the one of these on which reductions end */
    uint64_t begun;           /* ticket of compute, at BEGIN */
    bool stepped;             /* shards changed since the last all-gather */
    float power[2];           /* products of the options' betas over all steps
                               * below, as in spans */

    const struct fsdp_sequence *sequence; /* NULL: at rest */
    uint32_t index, next;                 /* of the sequence, of its points */
    bool all_unsharded;      /* between unshard_all and reshard_all */
    bool turned;             /* a knob was, since the last pass began */
    bool planned;            /* the plans fit the extents of the units */
    uint32_t said;           /* the last sync that was set for all units; MIXED:
                              * for one since */
    bool any_sync, all_sync; /* in this pass: of any unit, of all units */
    uint32_t knobs;          /* a number for all knobs and which parameters
                              * train */
    bool keeps;              /* a unit may be unsharded outside its windows */
    uint32_t *in_backward;   /* [n_modules]: 1 + its point, or 0 */

    struct impl_early early;
    uint64_t steps;    /* of the optimizer, in which a parameter changed */
    bool loaded;       /* or assigned, or sent: cannot be made again here */
    bool rank0;        /* no other rank has the initial values */
    bool deferred;     /* some rank may lack values */
    uint32_t *lacking; /* [world], if deferred: the first parameter that each
                        * rank lacks */
    bool torn;         /* a load failed half way: only another one helps */
    struct impl_checkpoints *checkpoints; /* from the first save or load on */
};

#endif
