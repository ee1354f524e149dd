/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control_gathers.h - how often a unit is gathered in an action of a script, as
 * its own words say, unit by unit; and why.
 */
#ifndef FSDP_CTS_CONTROL_GATHERS_H
#define FSDP_CTS_CONTROL_GATHERS_H

#include "judge/oracle/expect.h"

/* Why a unit is gathered so often in an action as it is. */
enum control_why {
    CONTROL_BY_USUAL = 0, /* nothing is said of it */
    CONTROL_BY_FORWARD,   /* what is said of its forward */
    CONTROL_BY_BACKWARD,  /* a copy is kept behind its backward */
    CONTROL_BY_STEP,      /* or was, until a step */
    CONTROL_BY_BY_HAND,   /* it is unsharded by hand, or resharded */
    CONTROL_BY_TURNED,    /* a copy is there that is kept no longer behind this
                             pass */
    CONTROL_BY_UNKNOWN,   /* it is unsharded inside the pass: the walk knows */
};

/* Of unit u in action i; *n: how often. */
enum control_why control_gathers(const struct expect *e, uint32_t i, uint32_t u,
                                 uint32_t *n);
/* Whether a script says anything of copies. */
bool control_tells_of_copies(const struct expect *e);

#endif
