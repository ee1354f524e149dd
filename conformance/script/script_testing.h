/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_testing.h - what tests of scripts as text have in common.
 */
#ifndef FSDP_CTS_SCRIPT_TESTING_H
#define FSDP_CTS_SCRIPT_TESTING_H

#include "script/script.h"

/* In front of actions, where there are no settings. */
#define HEAD "script 1\n--\n"

/* Reads a text that is right, else the test fails; to be released. */
void script_test_parse(const char *text, struct script *s);
/* Draws one, to be released. */
void script_test_draw(uint32_t generator, uint64_t seed, struct script *s);

#endif
