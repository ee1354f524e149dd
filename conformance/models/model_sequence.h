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
 * INVALID unless every POST closes the PRE before it that is open, of the
 * same module and direction, and nothing stays open. `detail` says what is
 * wrong.
 */
int model_sequence_check(const struct fsdp_sequence *sequence,
                         uint32_t n_modules, char *detail, size_t bytes);

#endif
