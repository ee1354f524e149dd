/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_draw.h - scripts that a seed draws: legal ones, over a case and with
 * numbers that are drawn, too. The same seed gives the same script on every
 * machine.
 */
#ifndef FSDP_CTS_SCRIPT_DRAW_H
#define FSDP_CTS_SCRIPT_DRAW_H

#include "script/script.h"

enum {
    /* Raised with any change to what a seed draws: ids name it. What earlier
     * ones drew, from the oldest on, is drawn as ever. */
    SCRIPT_GENERATOR = 7,
    SCRIPT_OLDEST_GENERATOR = 2,
    SCRIPT_LEAST_DRAWN = 5, /* actions, as they are written */
    SCRIPT_MOST_DRAWN = 60,
    /* Of these kinds, which every engine claims, are five at least: passes,
     * steps, zero and look. */
    SCRIPT_LEAST_CORE = 5,
};

/* The script that a seed draws; by an earlier generator, too. *out is to be
 * released whatever is returned: OK or NOMEM. */
int script_draw(uint64_t seed, struct script *out, struct fsdp_error *error);
int script_draw_by(uint32_t generator, uint64_t seed, struct script *out,
                   struct fsdp_error *error);

#endif
