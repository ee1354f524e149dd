/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - what a model is sharded with: its layout, dtypes, factors and
 * optimizer, and what of it rests on the host. `shard` takes one struct of this
 * (engine.h).
 */
#ifndef FSDP_OPTIONS_H
#define FSDP_OPTIONS_H

#include <stdint.h>

enum fsdp_layout {
    FSDP_LAYOUT_FLAT = 0,          /* one flat parameter a unit (FSDP1) */
    FSDP_LAYOUT_PER_PARAMETER = 1, /* dimension 0 of each (FSDP2) */
};

enum fsdp_optimizer {
    FSDP_OPTIMIZER_SGD = 0,
    FSDP_OPTIMIZER_MOMENTUM = 1,
    FSDP_OPTIMIZER_ADAMW = 2,
};

/*
 * Which values of a unit rest on env->host instead of the device: bits, added
 * up. All numbers are the same as without offload.
 *
 * A step is made where states are. A shard that rests elsewhere is copied
 * there, whole, and back. A window copies a shard that rests on the host to the
 * device, once: into staging if it is cast, else to where it is needed, which
 * is an unsharded copy if S is 1. A reduction ends on the device, in the dtype
 * of the wire. Its result is copied to the host, once, and added there to the
 * gradient shard (partial sums stay on the device). Buffers are never
 * offloaded.
 */
enum fsdp_offload {
    FSDP_OFFLOAD_ALL = 1,       /* both that follow */
    FSDP_OFFLOAD_OPTIMIZER = 2, /* reduced gradients and states */
    FSDP_OFFLOAD_PARAMS = 4,    /* shards */
    /* For a unit's entry alone (model.h): the bits beside this one, or none,
     * hold in place of the option's. */
    FSDP_OFFLOAD_OWN = 8,
};

/* Zeroed fields mean what the comment calls the default. */
struct fsdp_options {
    uint32_t size;
    uint32_t layout;                /* default: flat */
    uint32_t fold;                  /* of every reduction; default: RANK */
    uint32_t reshard_after_forward; /* default 0: no */
    uint32_t keep_root; /* 1: the root unit is not resharded after forward */

    uint32_t optimizer;
    float momentum, beta1, beta2, eps;
    uint32_t n_groups; /* parameter groups; 0: one group */
    const uint32_t *group_of_parameter;

    float divide_factor;   /* default 0: the world */
    uint32_t param_dtype;  /* of unsharded copies; default: F32 */
    uint32_t reduce_dtype; /* of gradients on the wire; default: F32 */
    uint32_t output_dtype;
    uint32_t buffer_dtype; /* of buffers of floating point, F32, BF16 or F16,
                              as the claims say; default: their own */
    uint32_t offload; /* bits of enum fsdp_offload; default: none. Another bit
                         is INVALID under the claim offload */

    /* How much an engine may run ahead. 0, 0, 0 is the strict profile: a unit
     * is gathered at its window's first point and nothing is in flight across a
     * point. Results do not depend on these three.
     *
     * Ahead: at a point, the next `prefetch` units of the same phase of the
     * sequence that are not unsharded yet may be gathered; no prefetch crosses
     * from forward to backward or from one pass to the next. Reduces may be in
     * flight at most until the next BEGIN, step or pieces. Each is at most the
     * number of units: more is INVALID under the claim prefetch. */
    uint32_t prefetch_forward;  /* units gathered ahead */
    uint32_t prefetch_backward; /* units gathered ahead */
    uint32_t reduces_in_flight; /* reduce inputs still alive */

    /* Mixed precision. These three, and param_dtype and reduce_dtype above, are
     * each F32, BF16 or F16; a unit's own (model.h) come before them. Stored
     * values are float32 whatever they are: shards, states, reduced gradients
     * and pieces. An engine that claims neither bf16 nor fp16 refuses dtypes
     * other than F32. */
    uint32_t grad_dtype;       /* of a lent gradient; default: param_dtype */
    uint32_t accumulate_dtype; /* of sums over microbatches; default: that of
                                  reduce_dtype */
    uint32_t sum_dtype; /* of the sums of a reduction (comm.h): reduce_dtype,
                           the default, or F32; another is INVALID */

    /* A part of divide_factor, > 0 and finite, that gradients are scaled by
     * before they are reduced: by 1 / predivide_factor, in the accumulate
     * dtype; then behind the fold by predivide_factor / divide_factor. Each is
     * rounded to float32 once. Default 0: 1. */
    float predivide_factor;
    /* A group's own, in place of the scalars above; NULL: those. Refused
     * without the claim groups-betas. */
    const float *beta1_of_group, *beta2_of_group; /* [n_groups] */
    const float *eps_of_group, *momentum_of_group;
};

#endif
