/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exact16.h - data of the workload linear that never round in 16 bits where an
 * engine may choose an order, and do round where there is one right result.
 *
 * Sums over ranks, in any order and divided in any form, never round: neither
 * in bf16 nor in float16 nor in float32. So every correct engine has the same
 * bits, whatever its arithmetic. These round, as each has one right result:
 *
 *   a weight of 9 bits, half of them ties of bf16, when it is gathered;
 *   a gradient of 9 bits, each a tie, when it is lent or sent: all ranks but
 *   one have 0 in its place, so that no sum rounds;
 *   a pending sum of 3 + 1536 - 1536 (or -3), which is 0 in bf16 and 3 in
 *   float32: 256 + 1 - 256 in multiples that K = 3 divides.
 *
 * A row has one input a layer. The first row of each batch has the ties in one
 * column and the sums in another, and both move on with each step; all other
 * coefficients are -3, 0 or 3, on all ranks, so that a rank that is left out of
 * a sum, or counted twice, shows as well.
 *
 * One reduction must not have the 3 together with only one of the two 1536: if
 * the second of three microbatches is reduced with the first, the third is,
 * too.
 */
#ifndef FSDP_CTS_EXACT16_H
#define FSDP_CTS_EXACT16_H

#include "layers.h"

/* Elements [first, first + n) of the initial weights of parameter p. */
void exact16_weights(uint64_t seed, uint32_t p, uint64_t first, uint64_t n,
                     float *out);
/* The inputs of layer u for `n` samples of a step from `first` on: [n, in]. */
void exact16_inputs(const struct layers_model *m, uint32_t u, uint32_t step,
                    uint64_t first, uint64_t n, float *out);
/* Coefficients of the loss for these samples: [n, out]. */
void exact16_coefficients(const struct layers_model *m, uint32_t step,
                          uint64_t first, uint64_t n, float *out);

#endif
