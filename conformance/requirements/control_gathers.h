/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control_gathers.h - how often a unit must be gathered in an action of a
 * script, and why, worked out from the script's words alone, unit by unit.
 */
#ifndef FSDP_CTS_CONTROL_GATHERS_H
#define FSDP_CTS_CONTROL_GATHERS_H

#include "judge/oracle/expect.h"

/* The reason for how often a unit is gathered in an action. */
enum control_why {
    CONTROL_BY_USUAL = 0, /* the script says nothing of the unit */
    CONTROL_BY_FORWARD,   /* by what the script says of its forward */
    CONTROL_BY_BACKWARD,  /* a copy is kept behind its backward */
    CONTROL_BY_STEP,      /* a copy was kept, until a step */
    CONTROL_BY_BY_HAND,   /* it is unsharded by hand, or resharded */
    CONTROL_BY_TURNED,    /* there is a copy, which is no longer kept behind
                           * this pass */
    CONTROL_BY_UNKNOWN,   /* it is unsharded inside the pass: only the oracle's
                           * walk can tell */
};

/* Why unit u is gathered in action i as often as it is; *n: how often. */
enum control_why control_gathers(const struct expect *e, uint32_t i, uint32_t u,
                                 uint32_t *n);
/* Whether the case's script says anything about copies. */
bool control_tells_of_copies(const struct expect *e);

#endif
