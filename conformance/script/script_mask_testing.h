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
/* Checks that a script is legal whatever the lengths of its passes, and that a
 * case may play it. */
void mask_test_legal(const struct script *s, uint64_t seed);
/* Checks that both have the same text. */
void mask_test_same(const struct script *a, const struct script *b);
/* Checks that what a mask keeps is legal, that the mask it leaves keeps the
 * same, and that its id reads back as the same. */
void mask_test_holds(uint64_t seed, const struct script *s,
                     const struct script_mask *mask);

#endif
