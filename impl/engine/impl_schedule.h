/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_schedule.h - what an engine does at each point of a call sequence,
 * and how long what it unshards lives: worked out when a model is sharded,
 * from the description alone, the same on every rank.
 */
#ifndef FSDP_CTS_IMPL_SCHEDULE_H
#define FSDP_CTS_IMPL_SCHEDULE_H

#include "impl_place.h"

#include <fsdp/engine.h>

enum impl_do {
    IMPL_GATHER,   /* issue the all-gather, or cast, with one shard; life: of
                    * its parameters, or of what arrives, if that is to be
                    * unpacked */
    IMPL_OPEN,     /* a window begins: compute waits for the all-gather */
    IMPL_GRADIENT, /* a backward window begins; life: of its gradient */
    IMPL_RESHARD,  /* a window ends, the unit is not kept */
    IMPL_REDUCE,   /* a backward window ends; life: of a later contribution */
    IMPL_RETIRE,   /* what was sent longest ago is dead; life: if packed */
    IMPL_UNPACK,   /* what arrived becomes parameters; life: of these */
    IMPL_PACK,     /* the gradient becomes what is sent; life: of that */
};

struct impl_action {
    uint32_t what, unit, life;
};

struct impl_plan {
    const struct fsdp_sequence *sequence;
    struct impl_action *action; /* those of point i: [first[i], first[i+1]) */
    uint32_t *first;
    uint32_t n_actions;
    bool has_backward;
    bool accumulates;   /* a module has several backwards in one pass */
    bool reduces_again; /* a unit has several backward windows */

    /* Moments: actions. On the wire is what arrived and what was packed. */
    struct impl_life *full, *grad, *wire;
    uint32_t n_full, n_grad, n_wire;
    /* Fresh gradients of a module that meet older ones, and contributions to
     * a gradient shard; moments: twice the points. */
    struct impl_life *fresh, *sum; /* fresh has room for sum behind it */
    uint32_t n_fresh, n_sum;
    uint32_t *fresh_module;   /* [n_fresh] */
    uint32_t *fresh_of_point; /* [n], for PRE_BACKWARD */
};

/* A unit's sizes, in words of 4 bytes, and where it goes: what the plan depends
 * on. */
struct impl_extent {
    uint64_t full, arrived; /* its parameters; the same not unpacked yet */
    uint64_t grad, packed;  /* its gradient; the same as it is sent */
    uint64_t sum;           /* a contribution to its gradient shard */
    bool kept;              /* not resharded after forward */
    bool unshards;          /* is no shard while it is computed with */
    bool repacks;           /* what is sent is a copy of the gradient */
    bool frozen;            /* it has no gradient */
};

struct impl_schedule {
    const struct fsdp_model *model;
    const struct fsdp_units *units;
    const struct fsdp_options *options;
    const struct impl_extent *extent; /* [n_units] */
    bool gathers;                     /* S > 1 */
    bool packs;                       /* and not where parameters lie */
};

/* INVALID: the sequence has points or modules that are none, or a window that
 * does not begin with a PRE point or never ends; *what says which. NOMEM. The
 * plan is released in any case. */
int impl_plan_make(const struct impl_schedule *x,
                   const struct fsdp_sequence *sequence, struct impl_plan *out,
                   const char **what);
void impl_plan_release(struct impl_plan *plan); /* any state */

#endif
