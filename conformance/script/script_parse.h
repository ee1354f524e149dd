/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_parse.h - the parts of a script's text, for script_parse.c.
 */
#ifndef FSDP_CTS_SCRIPT_PARSE_H
#define FSDP_CTS_SCRIPT_PARSE_H

#include "script/script_reader.h"

/* script_parse_pass.c: a factor 2^E with E from -160 to 127. */
int parse_power(struct reader *r, int32_t *out);

/* script_reader.c: the header's lines, up to "--". */
int parse_settings(struct reader *r);
/* The letter of a checkpoint. */
int parse_slot(struct reader *r, uint32_t *slot);
/* The word or words behind `anew`: none, or the world of the life that
 * begins. */
int parse_world(struct reader *r, struct script_world *out);

/* script_parse_pass.c: the words behind `pass` and `eval`. */
int parse_pass(struct reader *r, struct script_action *a);
/* The name of a call that must be refused. */
int parse_call(struct reader *r, uint32_t *out);
int parse_sync(struct reader *r, uint32_t *out);
/* The number of a unit. */
int parse_unit(struct reader *r, uint32_t *out);

#endif
