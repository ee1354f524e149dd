/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_action.h - where in a script something was found, for the families of
 * requirements about scripts.
 */
#ifndef FSDP_CTS_SCRIPT_ACTION_H
#define FSDP_CTS_SCRIPT_ACTION_H

#include "judge/requirement.h"

/* Action i of those that are played. */
const struct script_action *script_at(const struct expect *e, uint32_t i);
/* Whether one of a script's actions has that verb. */
bool script_does(const struct expect *e, uint32_t verb);

/* Adds to a finding's words the action i of those that are played, from 0, by
 * its number, from 1, and its text. False, so that a check may return it. */
bool script_action_tell(const struct expect *e, uint32_t i, struct finding *f);

/* Whether rank k was shown, in action i, what the unsharded run has of the
 * unit, or of all (FSDP_NO_UNIT), and is not ignored. */
bool script_action_shows(const struct expect *e, const struct record *r,
                         uint32_t i, uint32_t k, uint32_t unit,
                         struct finding *f);

/* Of action i, a load: the save of its slot that was the last; NULL: there is
 * none in this script. */
const struct script_action *script_action_saved(const struct expect *e,
                                                uint32_t i);

/* The call that must be refused of this name; SCRIPT_N_CALLS: none. */
uint32_t script_action_call(const char *name);

/* Whether a script makes any call that must be refused; what is asked for when
 * all is resharded is one. */
bool script_action_refuses(const struct expect *e);

/* Whether rank k has values for all that it owns when the script asks, for the
 * nth time (from 0), that pieces be refused for want of some
 * (SCRIPT_CALL_DEFERRED_PIECES): then they are shown. */
bool script_action_has_pieces(const struct expect *e, uint32_t nth, uint32_t k);

#endif
