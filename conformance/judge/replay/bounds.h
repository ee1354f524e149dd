/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bounds.h - how far arithmetic of another kind may be from the suite's, where
 * rounding is inherent. The numbers are derived (docs/interpreting.md, Bounds)
 * from the model alone, and nobody can adjust them.
 *
 * A value on the longest path of a model is rounded at most N times: once for
 * each term of each sum that it passes. In float32, of unit roundoff u, two
 * orders of such a path differ by at most 2 N u kappa times the norm of the
 * result, to first order, kappa being what the terms cancel by. Rounding
 * errors are independent enough that sqrt(N) takes the place of N with a
 * probability near 1 (Higham, Mary 2019), and terms of random sign cancel by
 * no more than sqrt(N). So the bound is N eps norm, eps = 2 u, and it grows by
 * as much with every step that weights have gone apart for.
 */
#ifndef FSDP_CTS_BOUNDS_H
#define FSDP_CTS_BOUNDS_H

#include "judge/compare/compare.h"

/* N: all extents of all parameters, the samples of a step, and the ranks and
 * microbatches that are added up. */
double bounds_roundings(const struct expect *e);

/* Of mixed precision: eps of 16 bits, 2^-8 or 2^-11, for each rounding to them
 * that both runs make, at the same places, of values that differ by less: a
 * parameter before the forward and before the backward, a gradient that is
 * made, each microbatch that is added up, what is sent, each rank that is added
 * up, what is scaled. 0: nothing has 16 bits. */
double bounds_narrow(const struct expect *e);

/* (N eps + bounds_narrow) (1 + steps): of a norm, that many optimizer steps
 * after the start. */
double bounds_relative(const struct expect *e, uint32_t steps);
/* The greatest norm that a part's local gradient has in the baseline, of all
 * ranks and microbatches of the step; 0: none is recorded. */
double bounds_norm_of_step(const struct expect *e,
                           const struct compare_part *part);
/* Further apart than that, in the 2-norm of a part's weights: by AdamW
 * (bounds_adamw.c). 0 under another optimizer. */
double bounds_adamw(const struct expect *e, const struct compare_part *part,
                    uint32_t steps);

/* Whether n values are within the bound of `want`, in the 2-norm, `steps`
 * optimizer steps after the same start. f->ratio is the greatest error over
 * its bound so far; a finding has the place `at`. */
bool bounds_hold(const struct expect *e, const float *got, const float *want,
                 uint64_t n, uint32_t steps, struct finding at,
                 struct finding *f);

/* The same of the parts of a stage: `got`, `want` NULL as compare_equal. The
 * norm of a local gradient is the greatest that the parameter's has in the
 * baseline, of all ranks and microbatches of the step. */
bool bounds_part(const struct expect *e, const struct compare_part *part,
                 uint32_t stage, const float *got, const float *want,
                 uint32_t steps, struct finding *f);

/* Whether every rank's weights before this step are the baseline's within the
 * bound: from there on the two runs can be compared. */
bool bounds_start_alike(const struct expect *e, const struct record *r,
                        uint32_t step);

/* One value against an absolute bound. */
bool bounds_value(double got, double want, double bound, struct finding at,
                  struct finding *f);

/* Moves one value of a tensor of a stage by far more than any bound. */
bool bounds_spoil(struct record *r, uint32_t stage, uint32_t step);
/* The same of this one; false: it is NULL. */
bool bounds_spoil_tensor(struct record_tensor *t);

#endif
