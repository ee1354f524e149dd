/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_action.h - looks up and names actions of a script, for the families of
 * requirements about scripts.
 */
#ifndef FSDP_CTS_SCRIPT_ACTION_H
#define FSDP_CTS_SCRIPT_ACTION_H

#include "judge/requirement.h"

/* Action i of those that are played: a repeated action counts each time. */
const struct script_action *script_at(const struct expect *e, uint32_t i);
/* Whether the case plays a script with an action of this verb. */
bool script_does(const struct expect *e, uint32_t verb);

/* Adds to a finding's words the action i of those that are played, from 0, by
 * its number, from 1, and its text. False, so that a check may return it. */
bool script_action_tell(const struct expect *e, uint32_t i, struct finding *f);

/* Whether action i has shown to rank k all parameters of the unit, or of all
 * units (FSDP_NO_UNIT), with the values of the unsharded run. Ignored
 * parameters do not count. */
bool script_action_shows(const struct expect *e, const struct record *r,
                         uint32_t i, uint32_t k, uint32_t unit,
                         struct finding *f);

/* Action i is a load: the last save before it to the same slot; NULL: the
 * script has none. */
const struct script_action *script_action_saved(const struct expect *e,
                                                uint32_t i);

/* The call that must be refused (enum in script.h) of this name;
 * SCRIPT_N_CALLS: there is none. */
uint32_t script_action_call(const char *name);

/* Whether the case's script makes any call that must be refused. Asking for a
 * parameter after all was resharded is such a call. */
bool script_action_refuses(const struct expect *e);

/* Whether rank k has values for all that it owns when the script makes the call
 * SCRIPT_CALL_DEFERRED_PIECES for the nth time (from 0). The call expects that
 * pieces are refused for want of values; a rank that lacks none is shown its
 * pieces. */
bool script_action_has_pieces(const struct expect *e, uint32_t nth, uint32_t k);

#endif
