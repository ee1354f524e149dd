/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_sequence.h - call sequences: the one that follows from a tree of
 * modules, its mirror image, and whether one is well-formed.
 */
#ifndef FSDP_CTS_MODEL_SEQUENCE_H
#define FSDP_CTS_MODEL_SEQUENCE_H

#include <fsdp/model.h>
#include <stddef.h>

/* Writes the 2 * n points of a forward pass, depth first; children in the
 * order of their numbers. Parents have smaller numbers than children. */
void model_sequence_forward(uint32_t n, const int32_t *parent, uint32_t *point,
                            uint32_t *module);

/* Behind the n forward points writes the n points of their backward: the
 * same in reverse, where a POST_FORWARD becomes a PRE_BACKWARD. */
void model_sequence_mirror(uint32_t n, uint32_t *point, uint32_t *module);

/*
 * Writes the training pass of a tree in which checkpoints are recomputed, and
 * returns how many points it has: at most 6 * n. checkpoint[m] is the
 * checkpoint of module m; 0: its own activations are kept. The forward points
 * of a checkpoint's modules come again, as those of a recompute, before the
 * first backward point of any of them. So modules b.x and b.y, in one
 * checkpoint without the module b above them, are recomputed inside b's
 * backward; and with b, before it:
 *
 *     PRE_BACKWARD b, recompute x, recompute y, backward y, backward x, ...
 *     PRE_RECOMPUTE b, recompute x, recompute y, POST_RECOMPUTE b,
 *         PRE_BACKWARD b, backward y, backward x, ...
 */
uint32_t model_sequence_recompute(uint32_t n, const int32_t *parent,
                                  const uint32_t *checkpoint, uint32_t *point,
                                  uint32_t *module);

/*
 * INVALID unless every POST closes the PRE before it that is open, of the
 * same module and direction, and nothing stays open. `detail` says what is
 * wrong.
 */
int model_sequence_check(const struct fsdp_sequence *sequence,
                         uint32_t n_modules, char *detail, size_t bytes);

#endif
