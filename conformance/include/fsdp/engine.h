/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h - what an FSDP engine is: a struct of functions, obtained from one
 * exported function, that a model drives and hooks, as PyTorch's fully_shard.
 *
 * A step, as the driver of a model calls it on every rank:
 *     for each microbatch
 *         set_gradient_sync(is this one reduced?)
 *         at(BEGIN, sequence)
 *         for each point of the sequence
 *             at(point, module)
 *             after a PRE point the module computes: param(), grad()
 *         at(END, sequence)
 *     clip_grad_norm()                      (optional)
 *     step(), zero_grad()
 *
 * What the engine must do (rules of the cycle, docs/specification.md):
 *  1. Keep 1/S of every flat parameter (S = the extent of mesh dimension
 *     "shard"). A unit's flat parameter is its parameters, flattened, in the
 *     model's order, right-padded to a multiple of S; rank s of the shard
 *     dimension owns the s-th of S equal parts. (Ott et al., FairScale FSDP;
 *     Zhao et al., "PyTorch FSDP", arXiv 2304.11277, section 3.2.1.)
 *     Or, in the per-parameter layout, of every parameter (PyTorch's
 *     fully_shard): rank s owns rows [s r, (s + 1) r) of dimension 0, r =
 *     ceil(d_0 / S), as far as there are any. What it sends is a block of r
 *     rows of each of a unit's parameters, in the model's order.
 *  2. Unshard a unit for its window (model.h) and reshard it at the end:
 *     2U all-gathers a step, 2U - 1 with the root kept. A unit that is not
 *     resharded after forward stays unsharded until its next backward window
 *     closes or, if its sequence has none, until the forward window does.
 *     With S = 1 there is nothing to gather: no copy, no collective.
 *  3. When a unit's backward window closes and gradient sync is on, fold the
 *     unsharded gradient over "shard" by a reduce-scatter, then over
 *     "replicate" by an all-reduce (each only where the extent exceeds 1),
 *     multiply once by 1 / divide factor, and add to the gradient shard.
 *     With sync off the unsharded gradient stays and the next one adds to it.
 *  4. Padding holds +0 on the wire and never reaches a result.
 *  5. The optimizer touches shards only.
 *
 * Strategies are two values, the mesh and reshard_after_forward:
 *     FULL_SHARD 1 x K yes; SHARD_GRAD_OP 1 x K no; NO_SHARD K x 1;
 *     HYBRID_SHARD R x S yes; HYBRID_SHARD_ZERO2 R x S no.
 *
 * Errors: functions return enum fsdp_status; the detail goes to env->error, if
 * its status is still OK: status, rank, where and message, all four. Where a
 * call to the device or the communicator fails, its status is handed on. A
 * failure of work on a stream is returned by the next call that waits for it,
 * at the latest by pieces or step. After a failure the driver calls
 * comm->abort, then destroy and close only.
 *
 * Threads: one thread per rank calls an engine, always the same one. An engine
 * has no mutable state at file scope: ranks may be threads.
 *
 * "Collective" below: every rank calls it, in the same order. A function that
 * an engine does not have is NULL, and its claim is not made. Only shard,
 * pieces and destroy can never be missing: with them alone an engine that is
 * being written is judged up to the level "layout" (run --level layout), and
 * with at, param, grad, set_gradient_sync, step and zero_grad it trains.
 *
 * Sizes: `size` of a struct is the size that its writer was compiled with. A
 * reader takes no field beyond it (such a field is as 0), does not look at what
 * lies behind its own struct, and refuses no call for a size.
 *
 * The ABI is version 0 until a third party has built against it.
 */
#ifndef FSDP_ENGINE_H
#define FSDP_ENGINE_H

#include <fsdp/comm.h>
#include <fsdp/op.h>
#include <fsdp/options.h>
#include <fsdp/values.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FSDP_ABI_VERSION 0u

/*
 * What a rank is given. The driver owns it, from before `open` until after
 * `close`; nothing in it changes between `shard` and `destroy`, but for
 * `rank` under the claim "serial" (below) and what `error` points to.
 */
struct fsdp_env {
    uint32_t size;
    uint32_t rank;  /* in [0, world) */
    uint32_t world; /* product of the mesh's extents */
    const struct fsdp_mesh *mesh;
    const struct fsdp_comm *comm;
    const struct fsdp_device *device;
    /* The model's stream; the engine orders its own work to it. `open` may set
     * it; else the driver opens one, named "compute", on the device. NULL only
     * if the device has no streams: then work has finished on return. */
    struct fsdp_stream *compute;
    struct fsdp_error *error; /* not NULL */
    /* Out of band: gathers `bytes` (<= 4096, the same on all ranks) of host
     * memory of every rank into all[world * bytes]. Collective. */
    int (*exchange)(void *exchange_self, const void *mine, uint64_t bytes,
                    void *all);
    void *exchange_self;
    void *engine; /* what `open` keeps; the driver leaves it alone */
    /* A second device, of place HOST, for what is offloaded; `open` may set it,
     * and has to where it sets `device`. NULL: there is none, and offload is
     * UNSUPPORTED. Its storage is what `device` copies from and to, on a stream
     * of its own, under the edges "host->device" and "device->host"; what its
     * operators are given without a stream has finished on return. */
    const struct fsdp_device *host;
};

/* NULL where a driver is older than that. */
static inline const struct fsdp_device *fsdp_host_of(const struct fsdp_env *env)
{
    return env->size >= offsetof(struct fsdp_env, host) + sizeof(void *)
               ? env->host
               : NULL;
}

/* A tensor that an engine lends. */
struct fsdp_tensor {
    void *data;
    uint32_t dtype;
    uint32_t place;
    uint32_t n_dims;
    uint64_t shape[FSDP_MAX_DIMS];
    int64_t stride[FSDP_MAX_DIMS]; /* in elements */
};

/*
 * A part of one parameter that this rank owns, without padding: elements
 * [first, first + n). Device pointers, or the host's of what is offloaded,
 * valid until the next call but for another `pieces`. grad is NULL while there
 * is none; a state the optimizer lacks is NULL. All are float32, in any layout.
 */
struct fsdp_piece {
    uint32_t size;
    uint32_t parameter;
    uint64_t first, n;
    const void *value;
    const void *grad;
    const void *state[2]; /* momentum: v; AdamW: m, v */
};

struct fsdp_clip {
    uint32_t size;
    float max_norm; /* > 0; infinity measures only */
    float p;        /* 1, 2 or infinity */
    uint32_t error_if_nonfinite;
    /* If not 0, with the claim loss-scale: gradients are multiplied by it,
     * once, before they are measured, and the step behind is given 1. If the
     * norm is not finite then, nothing is clipped. */
    float inverse_scale;
};

struct fsdp_step {
    uint32_t size;
    uint32_t n_groups;         /* as in the options; 0 counts as 1 */
    const float *lr;           /* [n_groups] */
    const float *weight_decay; /* [n_groups], or NULL: 0 */
    float inverse_scale;       /* of the loss, positive and finite: gradients
                                  are multiplied by it, once; 0: there is
                                  none */
    uint32_t found_inf;        /* out; with the claim loss-scale and an
                                  inverse_scale, of 1 too: any rank's gradient
                                  was not finite, and no rank's step changed
                                  anything. Otherwise 0, and such a gradient is
                                  stepped with as it is */
};

/* What `set` changes of a unit. */
enum fsdp_knob {
    /* 1, the state after shard: the unit is reduced when its backward window
     * closes. 0: its unsharded gradient stays, and the next one adds to it. */
    FSDP_KNOB_GRADIENT_SYNC = 0,
    /* 1, the state after shard: a reduction goes over "shard", then over
     * "replicate". 0, with more than one replica: it ends with the fold over
     * "shard". That is a partial sum: it is kept in the dtype of the wire,
     * neither scaled nor shown, the first as it is, later ones added, with one
     * rounding each. The next reduction with 1 adds its own, too; the sum goes
     * over "replicate" and is scaled once. */
    FSDP_KNOB_ALL_REDUCE = 1,
    /* 1: the unit is resharded when its forward window ends. 0: it stays
     * unsharded, if a backward window of it follows in the sequence. The state
     * after shard is what options, units and keep_root say, until it is set. */
    FSDP_KNOB_RESHARD_AFTER_FORWARD = 2,
    /* 1, the state after shard: the unit is resharded when its backward window
     * ends. 0: it stays unsharded, and the next window has nothing to gather.
     * Such a copy ends with the next window behind which the unit is resharded,
     * with `reshard`, unshard_all, a step, a load or a CANCEL: none is used
     * that was there before its shard has changed. */
    FSDP_KNOB_RESHARD_AFTER_BACKWARD = 3,
    /* The unit's factors (struct fsdp_options), positive and finite, in place
     * of its own and of the options', under the claim factor-controls. A
     * reduction is predivided by the factor of its own pass, whenever what it
     * sends was summed; and it is scaled behind the fold by those of the pass
     * in which replicas meet, a partial sum, too. Earlier reductions stay. */
    FSDP_KNOB_DIVIDE_FACTOR = 4,
    FSDP_KNOB_PREDIVIDE_FACTOR = 5,
};

struct fsdp_sharded; /* a model that an engine has sharded; the engine's own */

struct fsdp_engine {
    uint32_t size;
    uint32_t abi; /* FSDP_ABI_VERSION */
    const char *name, *version;

    /*
     * Capabilities, NULL-ended: what is claimed is tested, what is not is
     * reported as not claimed, never as passed. A string that is none of
     * these is tested nowhere; reports name it. What is not tested without
     * each, `fsdp-cts list claims` says. The strings:
     *   flat, per-parameter            layouts
     *   full-shard, shard-grad-op, no-shard, hybrid-shard,
     *   hybrid-shard-zero2             strategies
     *   keep-root, no-sync, eval, cancel, unshard-all
     *   sgd, momentum, adamw, groups   optimizers
     *   fold-rank, fold-ring, fold-tree
     *   f32-fma                        device of that profile, or takes one
     *   strict-memory                  0, 0, 0 of the options is exact
     *   strict-storage                 and allocates no more than is live then
     *   prefetch, clip
     *   scripts                        whatever the contract allows of what is
     *                                  claimed, in any order: drawn ones
     *   bf16, fp16                     dtypes of mixed precision (options);
     *                                  without them they are refused
     *   sum-f32                        a sum_dtype F32 where the wire has 16
     *                                  bits
     *   unit-factors                   predivide factors, and divide factors of
     *                                  a unit
     *   loss-scale                     inverse_scale of steps and clips
     *   recompute                      RECOMPUTE points (model.h)
     *   frozen                         parameters with FSDP_FROZEN (model.h);
     *                                  without it they are refused
     *   thaw                           set_requires_grad; with frozen
     *   groups-betas                   groups with betas, eps and momentum of
     *                                  their own
     *   unit-controls                  `set`, `unshard`, `reshard`
     *   partial-replicas               and its FSDP_KNOB_ALL_REDUCE
     *   factor-controls                and its FSDP_KNOB_DIVIDE_FACTOR and
     *                                  FSDP_KNOB_PREDIVIDE_FACTOR; with
     *                                  unit-factors
     *   shared                         tied parameters (model.h); without it
     *                                  they are refused
     *   parameter-units                unit_of_parameter (model.h); without it
     *                                  that is refused
     *   ignored                        FSDP_NO_UNIT in it; likewise
     *   buffers                        a model's buffers (model.h): `buffer`,
     *                                  and saves; without it models that have
     *                                  any are refused
     *   step-in-backward               `set_step`
     *   assign                         `assign`
     *   deferred                       models without initial values (model.h);
     *                                  with assign; without it they are refused
     *   rank0-initial                  initial values on rank 0 alone
     *                                  (model.h); with deferred
     *   summon                         `summon`; with unshard-all
     *   send-values                    `send_values`; with assign
     *   offload                        shards, gradients and states on
     *                                  env->host; without it that is refused
     *   save-full, save-sharded, save-local, load
     *   lenient-load                   `load_from`; with load
     *   save-parts                     `what` of struct fsdp_save; with
     *                                  lenient-load
     *   save-dtype                     its `dtype`; with save-full and
     *                                  lenient-load
     *   serial                         plays all ranks in one process: the
     *                                  driver sets env->rank between passes
     *   devices                        needs some: it is not isolated
     */
    const char *const *claims;

    /* Brings a device or a communicator of the engine's own: replaces
     * env->device, env->comm. NULL: the engine takes what it is given.
     * Collective. `close` undoes it, after the last destroy; any state. */
    int (*open)(struct fsdp_env *env);
    void (*close)(struct fsdp_env *env);

    /* Shards a model. *out is set even on failure (NULL only if nothing was
     * made); the caller destroys it. `options` is read during the call only;
     * env, model and units are borrowed until destroy. Collective.
     * INVALID: options that do not fit, named in env->error.
     * UNSUPPORTED: what the engine does not claim. */
    int (*shard)(const struct fsdp_env *env, const struct fsdp_model *model,
                 const struct fsdp_units *units,
                 const struct fsdp_options *options, struct fsdp_sharded **out);

    /* The model stands at a point (model.h). Collective. A point that is not
     * the next one of the sequence: INVALID, and nothing has changed. CANCEL
     * is allowed anywhere between BEGIN and END: the engine is back at rest,
     * and all gradients since the last zero_grad are dropped. */
    int (*at)(struct fsdp_sharded *sharded, uint32_t point, uint32_t index);

    /* Parameter p in full, for compute on env->compute. Valid from its
     * module's PRE point to that module's POST point; INVALID while its unit
     * is sharded. Local. */
    int (*param)(struct fsdp_sharded *sharded, uint32_t p,
                 struct fsdp_tensor *out);
    /* Storage for a fresh gradient of p, contents undefined: the model
     * overwrites all of it by its module's POST_BACKWARD, where the engine
     * takes it: the first of a step is kept, later ones are added to the sum
     * (one rounding). A parameter without a gradient contributes +0. INVALID
     * outside its module's backward, and for a frozen parameter, which the
     * message then names. Local. */
    int (*grad)(struct fsdp_sharded *sharded, uint32_t p,
                struct fsdp_tensor *out);

    /* From the next BEGIN on: reduce at the end of a unit's backward (the
     * state after shard), or keep unsharded gradients; of all units, whatever
     * `set` has said of one. Allowed at any time, also in a pass; CANCEL and
     * load leave it as it is. Local. UNSUPPORTED for off without the claim
     * no-sync. */
    int (*set_gradient_sync)(struct fsdp_sharded *sharded, uint32_t on);
    /* Freezes (on: 0) or thaws (1) a parameter, and what is tied to it, from
     * the next BEGIN on, whatever its flags are. A parameter that is thawed
     * begins as after shard: its states are there from the call on, +0, and it
     * has taken no step. The states of one that is frozen are gone with the
     * call. No effect where it is so already. Local; every rank the same.
     * INVALID, and nothing has changed: another value than 0 or 1; where a load
     * is INVALID; while there are gradients, pending or reduced, or partial
     * sums; a number that is no parameter's, which the message has. */
    int (*set_requires_grad)(struct fsdp_sharded *sharded, uint32_t p,
                             uint32_t on);
    /* The norm over all parameters' gradients, before clipping: for p = 1 and 2
     * the correctly rounded value of the exact sum's root, so that it does not
     * depend on world, layout or order. If norm > max_norm, gradients are
     * multiplied once by max_norm / (norm + 1e-6f), else they stay as they are;
     * without gradients it is 0. Replicas count once. What ranks tell each
     * other for it goes through `exchange`; that is no collective. INVALID, and
     * nothing has changed: a max_norm that is not over 0, or another p; between
     * BEGIN and END; gradients that sync has not reduced, or partial sums; a
     * norm that is not finite, with error_if_nonfinite. Collective. */
    int (*clip_grad_norm)(struct fsdp_sharded *sharded,
                          const struct fsdp_clip *clip, float *out_norm);
    /* One step of the optimizer for the parameters that have a gradient: one
     * that has none stays as it is, and counts no step. Gradients stay as well,
     * until zero_grad: another step takes them again. INVALID between BEGIN and
     * END, and while gradients that sync has not reduced, or partial sums, are
     * pending: the message names the unit. Collective only if claims has
     * loss-scale; otherwise local. */
    int (*step)(struct fsdp_sharded *sharded, struct fsdp_step *step);
    /* Drops all gradients and partial sums. Local; not in a pass. */
    int (*zero_grad)(struct fsdp_sharded *sharded);

    /* Visits what this rank owns, parameters ascending, then first ascending.
     * What it shows has been synchronised: every stream's work on it is done.
     * Local; not between BEGIN and END. Gradients that sync has not reduced may
     * be pending; they are not shown, nor are partial sums. */
    int (*pieces)(struct fsdp_sharded *sharded,
                  void (*visit)(void *context, const struct fsdp_piece *piece),
                  void *context);
    /* Unshards everything for reading through param, until reshard_all.
     * Collective; not between BEGIN and END. In between everything but param,
     * set_gradient_sync, save_wait, loaded_extra, reshard_all and destroy is
     * INVALID; and so is reshard_all where unshard_all does not come first. */
    int (*unshard_all)(struct fsdp_sharded *sharded);
    int (*reshard_all)(struct fsdp_sharded *sharded);

    /* Checkpoints: a snapshot of the state at save_begin, complete on disk
     * after save_wait; training may go on in between. load takes the newest
     * complete checkpoint of a directory, saved by any number of ranks; it
     * replaces all state, and drops all gradients, or changes nothing.
     * INVALID: save_begin and load not at rest, or while a save has not been
     * waited for; save_begin while there are gradients (zero_grad drops them);
     * save_wait for no save. Collective. */
    int (*save_begin)(struct fsdp_sharded *sharded,
                      const struct fsdp_save *save);
    int (*save_wait)(struct fsdp_sharded *sharded);
    int (*load)(struct fsdp_sharded *sharded, const char *directory);

    /* Gives everything back, whatever state it is in; NULL is allowed. A save
     * that has not been waited for is given up. Local: no collective, as other
     * ranks may be gone. */
    void (*destroy)(struct fsdp_sharded *sharded);

    /* What the caller saved of its own (fsdp_save.extra_...) under this name,
     * in the checkpoint that was loaded last: this rank's if as many ranks
     * saved it, else rank 0's. Valid until the next load, or destroy.
     * "checkpoint.path" and "checkpoint.reason": which one it was, and why, as
     * text. INVALID: it has none of this name. Local. Part of claim load. */
    int (*loaded_extra)(struct fsdp_sharded *sharded, const char *name,
                        const void **data, uint64_t *bytes);

    /* Turns a unit's knob (enum fsdp_knob), or with FSDP_NO_UNIT that of every
     * unit, to a value, from the next BEGIN on, until it is turned again: no
     * step, CANCEL or load changes it. Local; every rank the same. INVALID, and
     * nothing has changed: between BEGIN and END, or unshard_all and
     * reshard_all; a number that is no unit's or knob's; a value that the knob
     * does not take; a factor that would multiply gradients by what is not
     * finite. The message says which. */
    int (*set)(struct fsdp_sharded *sharded, uint32_t unit, uint32_t knob,
               float value);
    /* Unshards one unit ahead, at rest or in a pass: its next window has
     * nothing to gather, and at rest param lends its parameters as a window
     * would. It may return before the unit is gathered; param waits. The copy
     * ends as one that FSDP_KNOB_RESHARD_AFTER_BACKWARD keeps. No effect on a
     * unit that is unsharded. Collective. INVALID, and nothing has changed:
     * between unshard_all and reshard_all; a wrong number, in the message. */
    int (*unshard)(struct fsdp_sharded *sharded, uint32_t unit);
    /* Reshards one unit that is unsharded outside its windows; no effect on any
     * other. Local. INVALID, and nothing has changed: in a window of the unit,
     * also while it stays unsharded from its forward to its backward; and where
     * unshard is INVALID. */
    int (*reshard)(struct fsdp_sharded *sharded, uint32_t unit);

    /* Buffer b, whole, in one dimension: the same memory from shard until
     * destroy. Its content is the model's, which may write it between BEGIN and
     * END, on env->compute. No collective ever moves it, and the engine changes
     * it in a load alone. A checkpoint has, of each buffer without
     * FSDP_NOT_PERSISTED, what rank 0 had at save_begin, in its own dtype:
     * widened, or rounded once. A load gives that to every rank, rounded once
     * to the buffer dtype, and leaves those with the flag as they are. Local,
     * any time. INVALID: a number that is no buffer's; the message has it. */
    int (*buffer)(struct fsdp_sharded *sharded, uint32_t b,
                  struct fsdp_tensor *out);

    /* The step of the next pass, from its BEGIN to its END or CANCEL, whatever
     * its sequence is. When the pass has reduced a unit, and replicas have met,
     * the unit is stepped as by `step`, with all that earlier passes left of
     * its gradient, and its gradient is dead. So the gradient shards of all
     * units are never there at once. All numbers are as with a step behind the
     * pass, and it counts as one step. What the pass does not reduce keeps its
     * gradient, for `step`. A unit's window, and any unsharded copy of it, ends
     * before it is stepped, whatever its knobs are. CANCEL does not undo the
     * steps of units whose backward windows have closed; they are the same
     * units on every rank. `step` and its arrays ([n_groups], as for `step`)
     * are read during the call only, found_inf is neither read nor written, and
     * a later call before BEGIN takes the place of this one. Local; every rank
     * the same. INVALID, and nothing has changed: between BEGIN and END, or
     * unshard_all and reshard_all; another number of groups; an inverse_scale
     * that is not 0, as whether all gradients are finite is not known in time;
     * a unit with two backward windows in one sequence, which would compute
     * with weights from before and behind the step; the message has its number.
     * From this call until BEGIN `step` and `clip_grad_norm`, which needs all
     * gradients at once, are INVALID. */
    int (*set_step)(struct fsdp_sharded *sharded, const struct fsdp_step *step);

    /* Gives parameter p n values, from element `first` on, from host memory,
     * which is read during the call only, in the parameter's stored dtype. The
     * elements that a rank owns get these bits, and all else stays as it is,
     * gradients and states too. Unsharded copies that were there before are not
     * used any more. Nothing is communicated: every rank calls it, and gives
     * the same values, at least of what it owns. Each name of a tied parameter
     * stands for the same values. INVALID, and nothing has changed: between
     * BEGIN and END, or unshard_all and reshard_all; a range that does not lie
     * in the parameter; a number that is no parameter's, which the message has;
     * a parameter that is ignored, whose name it has. Local. */
    int (*assign)(struct fsdp_sharded *sharded, uint32_t p, uint64_t first,
                  uint64_t n, const void *host);

    /* As unshard_all, until reshard_all, but for one unit alone, or on rank 0
     * alone: param of anything else is INVALID. On every rank a unit is
     * gathered as for a window, but always in float32. Where rank 0 alone is
     * shown it, each other rank of the first replica sends what it owns, once,
     * by broadcasts of float32 over "shard" in that replica, of which it is the
     * root. No rank but 0 then has more than its shards and the largest tensor
     * at once. With S = 1 nothing is sent. Collective; every rank gives the
     * same. INVALID, and nothing has changed: where unshard_all is INVALID; a
     * number that is no unit's, which the message has. */
    int (*summon)(struct fsdp_sharded *sharded, const struct fsdp_summon *how);

    /* As load. With how->lenient the checkpoint may lack tensors of the model,
     * or have others: a tensor that is missing keeps its value, and one that
     * the model lacks is left. A parameter of which states are missing keeps
     * its count of steps, too; others have the checkpoint's. loaded_extra then
     * has the names of the tensors that were missing, and of those that were
     * left, under "checkpoint.missing" and "checkpoint.unexpected": ascending
     * by bytes, a line feed behind each, the same on every rank. There are no
     * names behind a load that is not lenient, or that lacks nothing. They are
     * names of parameters, states and buffers, as docs/checkpoints.md has them.
     * A tensor that has the name and another shape, or dtype, is refused as by
     * load, except for parameters that a save rounded, which are widened. So is
     * all that load refuses in the local form, which has no such names.
     * Collective. */
    int (*load_from)(struct fsdp_sharded *sharded, const struct fsdp_load *how);

    /* Assigns on every rank the values that rank 0 has of each parameter: a
     * state dict in its memory, which is read during the call only, and not
     * written. Each element that rank 0 has is sent once, by broadcasts of
     * float32 over the world, and nothing else is sent. No rank has more staged
     * than the largest unit, padded; one rank sends nothing. INVALID, and
     * nothing has changed, on every rank: where assign is INVALID; `value` is
     * NULL on rank 0; a parameter of a unit lacks values, and `lenient` is 0:
     * the message has its name. If `lenient` is 1 the parameter stays as it is.
     * MISMATCH, and nothing has changed: ranks differ in `lenient`, or another
     * rank has `value`; the message has that word. NOMEM, and nothing has
     * changed, on every rank: one of them lacks the memory that the call needs.
     * Collective. */
    int (*send_values)(struct fsdp_sharded *sharded,
                       const struct fsdp_values *from);
};

/* The one symbol of a plug-in. Static storage; never fails. */
const struct fsdp_engine *fsdp_engine_v1(void);

#ifdef __cplusplus
}
#endif
#endif
