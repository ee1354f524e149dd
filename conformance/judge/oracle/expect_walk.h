/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect_walk.h - the part of the oracle that walks call sequences. Internal
 * to expect*.c.
 */
#ifndef FSDP_CTS_EXPECT_WALK_H
#define FSDP_CTS_EXPECT_WALK_H

#include "judge/oracle/expect.h"

/* What a point does to a unit. */
enum {
    EXPECT_OPENS = 1u,
    EXPECT_CLOSES = 2u,
    EXPECT_HOLDS = 4u, /* closes, unless it stays open for a backward window */
    EXPECT_BACKWARD = 8u,
};

/* A point, and a unit whose window it may open or close: the unit of the
 * point's module, or one that owns a parameter of the module. FSDP_NO_UNIT: the
 * module has no unit. */
struct expect_stop {
    uint32_t point; /* its index in the sequence */
    uint32_t unit;
    uint8_t flags;
};

/* The stops of a sequence, in its order; each point has at least one, and those
 * of one point are sorted by unit. *out is malloc'ed and the caller's, even
 * after an error. INVALID: the sequence has a point or a module that does not
 * exist, or a window that never closes. NOMEM. */
int expect_windows(const struct expect *e, const struct fsdp_sequence *s,
                   struct expect_stop **out, uint32_t *n);

/* Whether the oracle has rules for this case, model and units. */
bool expect_is_known(const struct run_case *c, const struct fsdp_model *model,
                     const struct fsdp_units *units);

/* Finds which parameters and units a training pass uses. */
void expect_find_uses(struct expect *e, const uint8_t *idle);

/* Finds which of these get a gradient and are stepped. */
void expect_find_trained(struct expect *e, const uint8_t *idle);
/* Makes *out, which base owns: `from`, but with `parameter` (SCRIPT_ALL: all
 * parameters) frozen or trained. NOMEM. */
int expect_trains_others(struct expect *base, const struct expect *from,
                         uint32_t parameter, bool frozen,
                         const struct expect **out);

/* expect.c: makes the layouts anew, when other parameters are frozen. */
void expect_lay_out_again(struct expect *e);
void expect_release_sets(struct expect *e);

/* Fills step, end, rest and all peaks of an expect that has its layout. `watch`
 * (NULL: none) observes it. */
int expect_walk(struct expect *e, const struct expect_watch *watch);

#endif
