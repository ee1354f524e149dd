/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_plain.h - plain choices in place of those that a script's header
 * draws; for script_mask.c.
 */
#ifndef FSDP_CTS_SCRIPT_PLAIN_H
#define FSDP_CTS_SCRIPT_PLAIN_H

#include "script/script_mask.h"

/* Makes the choices `plain` (bits of enum script_plain) of s plain, and returns
 * the bits that changed anything. */
uint32_t script_make_plain(struct script *s, uint32_t plain);

#endif
