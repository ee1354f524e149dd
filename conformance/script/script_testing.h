/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_testing.h - what tests of scripts as text have in common.
 */
#ifndef FSDP_CTS_SCRIPT_TESTING_H
#define FSDP_CTS_SCRIPT_TESTING_H

#include "script/script.h"

/* What stands before the actions of a script without settings. */
#define HEAD "script 1\n--\n"

/* Reads a text, and fails the test if it is wrong. The caller releases the
 * script. */
void script_test_parse(const char *text, struct script *s);
/* Draws a script, which the caller releases. */
void script_test_draw(uint32_t generator, uint64_t seed, struct script *s);

#endif
