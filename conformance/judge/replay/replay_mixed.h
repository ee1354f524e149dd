/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_mixed.h - a reduced gradient, or a step, of mixed precision that was
 * rounded otherwise than the unit's dtypes say: at which moment.
 */
#ifndef FSDP_CTS_REPLAY_MIXED_H
#define FSDP_CTS_REPLAY_MIXED_H

#include "judge/replay/replay.h"

/* Moments at which a reduction rounds (docs/specification.md). */
enum replay_moment {
    REPLAY_ACCUMULATES = 0, /* gradients of microbatches add up */
    REPLAY_SENDS = 1,       /* what they add up to goes over the wire */
    REPLAY_SUMS = 2,        /* ranks meet */
    REPLAY_SCALES = 3,      /* the fold is scaled */
    REPLAY_KEEPS = 4,       /* it goes into the gradient shard */
};

/* What is wrong at this moment, and nowhere else, if that gives exactly the n
 * values that were got, which are not all right; NULL: it does not. */
const char *replay_misrounded(const struct replay_reduction *reduction,
                              uint32_t moment, const float *got, uint64_t n);

/* Makes one of these mistakes in the n right values; false: none of them would
 * show. */
bool replay_misround(const struct replay_reduction *reduction, uint32_t moment,
                     float *values, uint64_t n);

/* Weights after a step look as if they had been rounded to a dtype of 16 bits:
 * in words, whether before the step or after it. NULL: neither gives exactly
 * the n values that were got. */
const char *replay_rounded_master(const struct replay_optimizer *o,
                                  const struct replay_values *v, uint32_t dtype,
                                  uint64_t n);

#endif
