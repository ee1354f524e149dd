/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_mixed.h - finds the moment at which a reduced gradient, or a step, of
 * mixed precision was rounded otherwise than the unit's dtypes say.
 */
#ifndef FSDP_CTS_REPLAY_MIXED_H
#define FSDP_CTS_REPLAY_MIXED_H

#include "judge/replay/replay.h"

/* Moments at which a reduction rounds (docs/specification.md). */
enum replay_moment {
    REPLAY_ACCUMULATES = 0, /* gradients of microbatches add up */
    REPLAY_SENDS = 1,       /* their sum goes over the wire */
    REPLAY_SUMS = 2,        /* ranks' gradients are added up */
    REPLAY_SCALES = 3,      /* the fold is scaled */
    REPLAY_KEEPS = 4,       /* the result goes into the gradient shard */
};

/* The mistake in rounding at this moment that gives exactly the n values `got`,
 * of which some are wrong, if nothing else is wrong; NULL: there is none. */
const char *replay_misrounded(const struct replay_reduction *reduction,
                              uint32_t moment, const float *got, uint64_t n);

/* Makes such a mistake in the n right values; false: none of them would change
 * anything. */
bool replay_misround(const struct replay_reduction *reduction, uint32_t moment,
                     float *values, uint64_t n);

/* Says in words that weights look as if they had been rounded to a dtype of 16
 * bits, either before the step or after it. NULL: neither gives exactly the n
 * recorded values. */
const char *replay_rounded_master(const struct replay_optimizer *o,
                                  const struct replay_values *v, uint32_t dtype,
                                  uint64_t n);

#endif
