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
    EXPECT_HOLDS = 4u, /* closes, but may stay open for a backward window */
    EXPECT_BACKWARD = 8u,
};

/* A point, and a unit whose window it may open or close: its module's, or one
 * that owns a parameter of that. Of a module that has none, FSDP_NO_UNIT. */
struct expect_stop {
    uint32_t point; /* which of the sequence */
    uint32_t unit;
    uint8_t flags;
};

/* The stops of a sequence, in its order, those of a point by unit; each point
 * has one at least. *out is malloc'ed, the caller's, also where it fails.
 * INVALID: a point or a module that is none, a window that never closes.
 * NOMEM. */
int expect_windows(const struct expect *e, const struct fsdp_sequence *s,
                   struct expect_stop **out, uint32_t *n);

/* Whether the oracle has rules for them at all. */
bool expect_is_known(const struct run_case *c, const struct fsdp_model *model,
                     const struct fsdp_units *units);

/* Which parameters and units a training pass uses. */
void expect_find_uses(struct expect *e, const uint8_t *idle);

/* Of these, what gets a gradient and is stepped. */
void expect_find_trained(struct expect *e, const uint8_t *idle);
/* *out = `from`, but that a parameter (SCRIPT_ALL: each) is frozen or not; it
 * is base's. NOMEM. */
int expect_trains_others(struct expect *base, const struct expect *from,
                         uint32_t parameter, bool frozen,
                         const struct expect **out);

/* expect.c: other parameters are frozen than before. */
void expect_lay_out_again(struct expect *e);
void expect_release_sets(struct expect *e);

/* Fills step, end, rest and all peaks of an expect whose layout is known.
 * `watch` (NULL: nobody) looks on. */
int expect_walk(struct expect *e, const struct expect_watch *watch);

#endif
