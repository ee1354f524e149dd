/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bounds.h - how far the results of another arithmetic may be from the suite's,
 * because both round. The numbers are derived (docs/interpreting.md, Bounds)
 * from the model alone, and nobody can adjust them.
 *
 * A value on the longest path of a model is rounded at most N times: once for
 * each term of each sum that it passes. In float32, of unit roundoff u, two
 * orders of such a path differ by at most 2 N u kappa times the norm of the
 * result, to first order, where kappa says by how much the terms cancel.
 * Rounding errors are independent enough that sqrt(N) takes the place of N with
 * a probability near 1 (Higham, Mary 2019), and terms of random sign cancel by
 * no more than sqrt(N). So the bound is N eps norm, eps = 2 u, and it grows by
 * as much with every step that weights have gone apart for.
 */
#ifndef FSDP_CTS_BOUNDS_H
#define FSDP_CTS_BOUNDS_H

#include "judge/compare/compare.h"

/* N: the sum of all extents of all parameters, of 256 samples (no step has
 * more), and of ranks times microbatches, whose gradients are added up. */
double bounds_roundings(const struct expect *e);

/* The part of the bound that comes from mixed precision: eps of the dtype of 16
 * bits, 2^-8 or 2^-11, for each rounding to it. Both runs round at the same
 * places, values that differ by less: a parameter before the forward and before
 * the backward, a new gradient, each microbatch that is added, what is sent,
 * each rank that is added, what is scaled. 0: nothing has 16 bits. */
double bounds_narrow(const struct expect *e);

/* The bound over the norm, that many optimizer steps after the start: (N eps +
 * bounds_narrow) (1 + steps). */
double bounds_relative(const struct expect *e, uint32_t steps);
/* The greatest norm that a part's local gradient has in the baseline over the
 * ranks and microbatches of the step; 0: none is recorded. */
double bounds_norm_of_step(const struct expect *e,
                           const struct compare_part *part);
/* How much further apart than that AdamW may carry the part's weights, in the
 * 2-norm (bounds_adamw.c). 0 for other optimizers. */
double bounds_adamw(const struct expect *e, const struct compare_part *part,
                    uint32_t steps);

/* Whether n values are within the bound of `want` in the 2-norm, `steps`
 * optimizer steps after the same start. f->ratio becomes the greatest error
 * over its bound so far. A finding is at the place `at`. */
bool bounds_hold(const struct expect *e, const float *got, const float *want,
                 uint64_t n, uint32_t steps, struct finding at,
                 struct finding *f);

/* The same for a part at a stage; `got` and `want` may be NULL as in
 * compare_equal. For a local gradient the norm is bounds_norm_of_step. */
bool bounds_part(const struct expect *e, const struct compare_part *part,
                 uint32_t stage, const float *got, const float *want,
                 uint32_t steps, struct finding *f);

/* Whether every rank's weights before this step are within the bound of the
 * baseline's, so that from there on the two runs can be compared. */
bool bounds_start_alike(const struct expect *e, const struct record *r,
                        uint32_t step);

/* Compares one value, with an absolute bound. */
bool bounds_value(double got, double want, double bound, struct finding at,
                  struct finding *f);

/* Changes one value, in a tensor of this stage, by far more than any bound. */
bool bounds_spoil(struct record *r, uint32_t stage, uint32_t step);
/* The same in this tensor. False: t is NULL. */
bool bounds_spoil_tensor(struct record_tensor *t);

#endif
