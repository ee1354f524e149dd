/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_mask_testing.h - what tests of masks have in common. Each fails the
 * test that calls it.
 */
#ifndef FSDP_CTS_SCRIPT_MASK_TESTING_H
#define FSDP_CTS_SCRIPT_MASK_TESTING_H

#include "script/script_mask.h"

/* What this seed draws; to be released. */
void mask_test_draw(uint64_t seed, struct script *s);
/* A script is legal at every length of a pass, and its case can be. */
void mask_test_legal(const struct script *s, uint64_t seed);
/* Both are the same text. */
void mask_test_same(const struct script *a, const struct script *b);
/* What a mask leaves is legal, leaves itself, and is what its id says. */
void mask_test_holds(uint64_t seed, const struct script *s,
                     const struct script_mask *mask);

#endif
