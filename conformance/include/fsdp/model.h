/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - what an engine is told about a model: its tree of modules, their
 * parameters and buffers, and its call sequences. And what a wrap policy
 * makes of it: units.
 *
 * Everything is in parallel arrays, so that a later version appends an array
 * at the end and no element ever changes its stride. `size` is sizeof(the)
 * struct that the writer was compiled with; a reader uses no field beyond it.
 *
 * Ownership: the writer's; an engine borrows all of it from `shard` until
 * `destroy`. Nothing here is written after `shard` was called.
 */
#ifndef FSDP_MODEL_H
#define FSDP_MODEL_H

#include <fsdp/status.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    FSDP_MAX_DIMS = 4
};

enum fsdp_dtype {
    FSDP_DTYPE_NONE = 0, /* "as the option says", "unchanged" */
    FSDP_DTYPE_F32 = 1,
    FSDP_DTYPE_BF16 = 2,
    FSDP_DTYPE_F16 = 3,
    FSDP_DTYPE_I32 = 4,
    FSDP_DTYPE_I64 = 5,
    FSDP_DTYPE_U8 = 6,
};

/* Bytes of one element; 0 for a number that is no dtype. */
static inline uint64_t fsdp_dtype_bytes(uint32_t dtype)
{
    switch (dtype) {
    case FSDP_DTYPE_F32:
    case FSDP_DTYPE_I32:
        return 4;
    case FSDP_DTYPE_BF16:
    case FSDP_DTYPE_F16:
        return 2;
    case FSDP_DTYPE_I64:
        return 8;
    case FSDP_DTYPE_U8:
        return 1;
    default:
        return 0;
    }
}

/*
 * Points: where a model stands. The model passes them in the order of one of
 * its call sequences and tells the engine at each (`fsdp_engine.at`).
 *
 * A phase is a maximal run of points of one direction between BEGIN and END:
 * forward (PRE_FORWARD, POST_FORWARD) or backward (all others: a recomputed
 * forward belongs to the backward that needs it). In each phase a unit has at
 * most one window: from the first PRE point of one of its modules to the last
 * POST point of one of them.
 */
enum fsdp_point {
    FSDP_BEGIN = 0, /* index: the sequence that starts */
    FSDP_PRE_FORWARD = 1,
    FSDP_POST_FORWARD = 2,
    FSDP_PRE_BACKWARD = 3,
    FSDP_POST_BACKWARD = 4,
    FSDP_PRE_RECOMPUTE = 5, /* inside the module's or its parent's backward */
    FSDP_POST_RECOMPUTE = 6,
    FSDP_END = 7,    /* index: the sequence that ends */
    FSDP_CANCEL = 8, /* the pass ends here, half way; index: ignored */
};

/*
 * One pass of the model over one microbatch: `n` points in order, BEGIN and
 * END not included. module[i] is the module that point[i] is about.
 */
struct fsdp_sequence {
    uint32_t size;
    uint32_t n;
    const char *name; /* "train", "eval" */
    const uint32_t *point;
    const uint32_t *module;
};

enum {
    FSDP_SEQUENCE_TRAIN = 0,
    FSDP_SEQUENCE_EVAL = 1
};

/* parameter_flags, buffer_flags */
enum {
    FSDP_FROZEN = 1u,       /* no gradient, no state, never stepped, decayed or
                             * counted in a norm */
    FSDP_NO_DECAY = 2u,     /* weight decay does not apply */
    FSDP_NOT_PERSISTED = 4u /* a buffer that is no part of a checkpoint */
};

struct fsdp_model {
    uint32_t size;
    uint32_t n_modules;    /* >= 1; module 0 is the root */
    uint32_t n_parameters; /* in registration order: that of a flat parameter */
    uint32_t n_buffers;
    uint32_t n_sequences; /* [0] trains, [1] evaluates, others as named */

    const char *const *module_name;  /* unique, dotted: "layers.3.mlp" */
    const char *const *module_class; /* "Linear", "Block" */
    const int32_t *module_parent;    /* -1: the root; parents come first */

    const char *const *parameter_name; /* unique, dotted */
    const uint32_t *parameter_module;
    const uint64_t (*parameter_shape)[FSDP_MAX_DIMS]; /* see n_dims; C order */
    const uint32_t *parameter_n_dims;                 /* 0: a scalar */
    const uint32_t *parameter_dtype; /* of the stored, full precision value */
    const uint32_t *parameter_flags;
    /* The index of the original that a parameter is tied to, or -1. The
     * original comes before it, is tied to nothing itself, has the same shape,
     * dtype and flags, and is of the same unit. A tied parameter is another
     * name and no more: it takes no place; its original alone rests, travels,
     * counts in a norm, is stepped and saved; and `initial` is not asked for
     * it. `param` of both is the same memory. `grad` of each lends storage of
     * its own; they add up in the order of the POST_BACKWARD points. */
    const int32_t *parameter_alias;

    /* What the model keeps besides its parameters: counters, running means.
     * Whole on every rank, in one dimension, from shard until destroy; ranks
     * may come to have different values. A buffer of floating point is in the
     * buffer dtype of its module's unit, or of the options; one of integers, or
     * where no buffer dtype is given, is in its own. */
    const char *const *buffer_name; /* unique, dotted, no parameter's */
    const uint32_t *buffer_module;
    const uint64_t *buffer_numel;
    const uint32_t *buffer_dtype; /* of the stored value, as it is saved */
    const uint32_t *buffer_flags; /* FSDP_NOT_PERSISTED, or 0 */

    const struct fsdp_sequence *const *sequence;

    /*
     * Writes elements [first, first + n) of parameter p's initial value, in the
     * parameter's dtype, to host memory. A function of (p, element) and the
     * model's seed alone: the same on every rank, and never more than a slice
     * has to be resident. Local; any rank's engine thread.
     *
     * NULL on every rank, under the claim deferred: parameters begin without
     * values, and until each element was assigned or loaded BEGIN, pieces,
     * save_begin, unshard_all, summon and unshard are INVALID. The message
     * names the first parameter that lacks some, on any rank, or, for pieces,
     * which is local, on this one. On rank 0 it may be given and on all others
     * NULL, under the claim rank0-initial: shard sends each element once, by
     * broadcasts of float32 over the world, and no rank has more of it staged
     * than the largest unit is, padded. Given on any other ranks alone it is a
     * MISMATCH, on every rank, and the message says `initial`.
     */
    int (*initial)(void *context, uint32_t p, uint64_t first, uint64_t n,
                   void *out);
    void *context;
    /* The same of elements [first, first + n) of buffer b, in its own dtype.
     * NULL only if there are no buffers. */
    int (*initial_buffer)(void *context, uint32_t b, uint64_t first, uint64_t n,
                          void *out);
};

/* Elements of parameter p; 1 for a scalar, 0 if a dimension is 0. */
static inline uint64_t fsdp_numel(const struct fsdp_model *model, uint32_t p)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < model->parameter_n_dims[p]; d++) {
        n *= model->parameter_shape[p][d];
    }
    return n;
}

/* The parameter that p is another name of; p itself, if it is tied to none. */
static inline uint32_t fsdp_original(const struct fsdp_model *model, uint32_t p)
{
    const int32_t *alias = model->parameter_alias;

    return alias && alias[p] >= 0 ? (uint32_t)alias[p] : p;
}

/* A module that owns no parameter may belong to no unit. */
#define FSDP_NO_UNIT UINT32_MAX

/*
 * What a wrap policy returns and all else takes: module -> unit. A unit's
 * parameters are those of its modules, in the model's order. Units count from 0
 * in the order in which their first module stands in the model; no unit is
 * without a module, unless unit_of_parameter makes one. The root unit is that
 * of module 0, if any.
 *
 * The arrays below unit_of_module are per unit, except for the last, and may be
 * NULL: then the option of the same name holds for all. An entry 0 means the
 * same for that unit.
 */
struct fsdp_units {
    uint32_t size;
    uint32_t n_units;
    const uint32_t *unit_of_module; /* [n_modules] or FSDP_NO_UNIT */
    const uint32_t *param_dtype;    /* of the unsharded copy */
    const uint32_t *reduce_dtype;   /* of the gradient on the wire */
    const uint32_t *output_dtype;
    const uint32_t *buffer_dtype;
    const float *divide_factor;
    /* 1: all that can be offloaded is; 2: nothing is; FSDP_OFFLOAD_OWN and
     * other bits of enum fsdp_offload (options.h): what these bits say. Another
     * value is INVALID under the claim offload. */
    const uint32_t *offload;
    const uint32_t *reshard_after_forward; /* 1: yes, 2: no; of the
                                            * root keep_root says it first */
    const uint32_t *grad_dtype;            /* of a lent gradient */
    const uint32_t *accumulate_dtype;      /* of sums over microbatches */
    const uint32_t *sum_dtype;             /* of the sums of a reduction */
    const float *predivide_factor;
    /* [n_parameters]: the unit that owns a parameter, in place of its module's;
     * then a unit may have parameters and no module. A tied parameter is in its
     * original's unit. NULL: each is in its module's. A module's points are
     * those of the units that own one of its parameters, and of its own unit as
     * well: at a PRE point windows begin, and at a POST point they end, in
     * ascending order of the units.
     *
     * FSDP_NO_UNIT: the parameter is ignored, and so is what is tied to it. The
     * model holds it, and no engine touches it: `initial` is not asked for it,
     * param, grad and set_requires_grad refuse it as INVALID, its name in the
     * message, and it is in no piece, norm, step or checkpoint. Refused without
     * the claims parameter-units, ignored. */
    const uint32_t *unit_of_parameter;
};

/* The unit that owns parameter p, or FSDP_NO_UNIT. */
static inline uint32_t fsdp_unit_of(const struct fsdp_model *model,
                                    const struct fsdp_units *units, uint32_t p)
{
    const size_t end = offsetof(struct fsdp_units, unit_of_parameter) +
                       sizeof(units->unit_of_parameter);

    return units->size >= end && units->unit_of_parameter
               ? units->unit_of_parameter[p]
               : units->unit_of_module[model->parameter_module[p]];
}

#ifdef __cplusplus
}
#endif
#endif
