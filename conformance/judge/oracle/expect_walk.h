/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect_walk.h - the part of the oracle that walks call sequences. Internal
 * to expect*.c.
 */
#ifndef FSDP_CTS_EXPECT_WALK_H
#define FSDP_CTS_EXPECT_WALK_H

#include "judge/oracle/expect.h"

/* What a point does to its module's unit. */
enum {
    EXPECT_OPENS = 1u,
    EXPECT_CLOSES = 2u,
    EXPECT_HOLDS = 4u, /* closes, but may stay open for a backward window */
    EXPECT_BACKWARD = 8u,
};

/* Writes these bits for each of the sequence's n points. INVALID: a point or a
 * module that is none, a window that never closes. */
int expect_windows(const struct expect *e, const struct fsdp_sequence *s,
                   uint8_t *flags);

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
