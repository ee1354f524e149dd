/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_schedule.h - what an engine does at each point of a call sequence, and
 * how long each unsharded value lives. This is worked out when a model is
 * sharded, from the description alone, the same on every rank.
 */
#ifndef FSDP_CTS_IMPL_SCHEDULE_H
#define FSDP_CTS_IMPL_SCHEDULE_H

#include "impl_place.h"

#include <fsdp/engine.h>

enum impl_do {
    IMPL_GATHER,   /* issue the all-gather or, with one shard, the cast; life:
                    * of its parameters, or of what arrives if that is unpacked
                    * later */
    IMPL_OPEN,     /* a window begins: compute waits for the all-gather */
    IMPL_GRADIENT, /* a backward window begins; life: of its gradient */
    IMPL_RESHARD,  /* a window ends, and the unit is not kept */
    IMPL_REDUCE,   /* a backward window ends; life: of a later contribution */
    IMPL_RETIRE,   /* the gradient that was sent longest ago is dead; life: if
                    * packed */
    IMPL_UNPACK,   /* unpack what has arrived; life: of the parameters */
    IMPL_PACK,     /* pack the gradient; life: of what is sent */
};

struct impl_action {
    uint32_t what, unit, life;
};

struct impl_plan {
    const struct fsdp_sequence *sequence;
    struct impl_action *action; /* the actions of point i: [first[i],
                                 * first[i+1]) */
    uint32_t *first;
    uint32_t n_actions;
    bool has_backward;
    bool accumulates;   /* a module has several backwards in one pass */
    bool reduces_again; /* a unit has several backward windows */

    /* The lives of unsharded copies, of gradients, and of what is on the wire:
     * arrived or packed. Their moments are actions. */
    struct impl_life *full, *grad, *wire;
    uint32_t n_full, n_grad, n_wire;
    /* Lives of a module's fresh gradients that meet older ones, and of
     * contributions to a gradient shard; moments: twice the points. */
    struct impl_life *fresh, *sum; /* fresh has room for sum behind it */
    uint32_t n_fresh, n_sum;
    uint32_t *fresh_module;   /* [n_fresh] */
    uint32_t *fresh_of_point; /* [n], for PRE_BACKWARD */
};

/* A unit's sizes, in words of 4 bytes, and what the plan must know besides. */
struct impl_extent {
    uint64_t full, arrived; /* its parameters; these, not unpacked yet */
    uint64_t grad, packed;  /* its gradient; this, as it is sent */
    uint64_t sum;           /* a contribution to its gradient shard */
    bool kept;              /* not resharded after forward */
    bool unshards;          /* it is computed with from a copy, not its shard */
    bool repacks;           /* what is sent is a copy of the gradient */
    bool frozen;            /* it has no gradient */
};

struct impl_schedule {
    const struct fsdp_model *model;
    const struct fsdp_units *units;
    const struct fsdp_options *options;
    const struct impl_extent *extent; /* [n_units] */
    bool gathers;                     /* S > 1 */
    bool packs;                       /* parameters lie elsewhere than they
                                       * arrive */
};

/* INVALID: the sequence has an unknown point or module, or a window that does
 * not begin with a PRE point or never ends; *what says which. NOMEM. The plan
 * is released in any case. */
int impl_plan_make(const struct impl_schedule *x,
                   const struct fsdp_sequence *sequence, struct impl_plan *out,
                   const char **what);
void impl_plan_release(struct impl_plan *plan); /* any state */

#endif
