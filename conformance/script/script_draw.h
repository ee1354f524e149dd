/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_draw.h - scripts that are drawn from a seed: legal ones, whose case
 * and numbers are drawn, too. The same seed gives the same script on every
 * machine.
 */
#ifndef FSDP_CTS_SCRIPT_DRAW_H
#define FSDP_CTS_SCRIPT_DRAW_H

#include "script/script.h"

enum {
    /* The newest generator, which ids name. It is raised with any change to
     * what a seed draws; an older generator still draws what it always drew. */
    SCRIPT_GENERATOR = 7,
    SCRIPT_OLDEST_GENERATOR = 2,
    SCRIPT_LEAST_DRAWN = 5, /* actions, as they are written */
    SCRIPT_MOST_DRAWN = 60,
    /* Every engine claims these kinds of action: passes, steps, zero and look.
     * A script has at least five actions of them. */
    SCRIPT_LEAST_CORE = 5,
};

/* Draws a script from a seed, with this generator or an earlier one. *out is to
 * be released whatever is returned: OK or NOMEM. */
int script_draw(uint64_t seed, struct script *out, struct fsdp_error *error);
int script_draw_by(uint32_t generator, uint64_t seed, struct script *out,
                   struct fsdp_error *error);

#endif
