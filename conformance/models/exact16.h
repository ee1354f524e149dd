/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exact16.h - data of linear that 16 bits hold exactly wherever an engine may
 * choose an order, and not where it may not.
 *
 * Sums over ranks, in any order and divided in any form, never round: neither
 * in bf16 nor in float16 nor in float32. So every correct engine, of whatever
 * arithmetic, has the same bits. What rounds is what has one right answer:
 *
 *   a weight of 9 bits, half of them ties of bf16, when it is gathered;
 *   a gradient of 9 bits, each a tie, when it is lent or sent: it is not 0 on
 *   one rank alone, so that no sum has it;
 *   a pending sum of 3 + 1536 - 1536 (or -3), which is 0 in bf16 and 3 in
 *   float32: 256 + 1 - 256 in multiples that K = 3 divides.
 *
 * A row has one input a layer. The first row of each batch has these, in two
 * columns that move on with each step, one for ties and one for sums; all other
 * coefficients are -3, 0 or 3, on all ranks, so that a rank that is missing, or
 * there twice, shows as well.
 *
 * Sums that lie in one reduction must not have the 3 beside one of the 1536
 * alone: of three microbatches the second is not reduced with the first unless
 * the third is, too.
 */
#ifndef FSDP_CTS_EXACT16_H
#define FSDP_CTS_EXACT16_H

#include "layers.h"

/* Elements [first, first + n) of the initial weights of parameter p. */
void exact16_weights(uint64_t seed, uint32_t p, uint64_t first, uint64_t n,
                     float *out);
/* Of layer u, for `n` samples of a step from `first` on: [n, in]. */
void exact16_inputs(const struct layers_model *m, uint32_t u, uint32_t step,
                    uint64_t first, uint64_t n, float *out);
/* Coefficients of the loss for the same: [n, out]. */
void exact16_coefficients(const struct layers_model *m, uint32_t step,
                          uint64_t first, uint64_t n, float *out);

#endif
