/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_calls.h - what is said of each call that an engine must refuse: its
 * name, when it must be refused, and with which status.
 */
#ifndef FSDP_CTS_SCRIPT_CALLS_H
#define FSDP_CTS_SCRIPT_CALLS_H

#include <stdint.h>

/* When a call must be refused. Of several bits, any one. */
enum script_when {
    SCRIPT_AT_REST = 1,       /* no pass is under way */
    SCRIPT_UNTRAINED = 2,     /* between lives: an offer to shard */
    SCRIPT_PENDING = 4,       /* at rest; gradients that sync has not reduced */
    SCRIPT_GRADIENTS = 8,     /* at rest; any gradients */
    SCRIPT_SAVING = 16,       /* at rest; a save has not been waited for */
    SCRIPT_IDLE = 32,         /* at rest; none is under way */
    SCRIPT_IN_PASS = 64,      /* anywhere in a pass */
    SCRIPT_AT_START = 128,    /* in a pass of which no point has been passed */
    SCRIPT_IN_FORWARD = 256,  /* in a pass; one point has been passed */
    SCRIPT_AT_LAST = 512,     /* in a training pass; all points have been */
    SCRIPT_EARLY = 1024,      /* in a pass; points are left */
    SCRIPT_SAVED = 2048,      /* at rest; there is a whole checkpoint */
    SCRIPT_OPEN_ALL = 4096,   /* between unshard_all and reshard_all */
    SCRIPT_PARTIAL = 16384,   /* at rest; sums that replicas have not met for */
    SCRIPT_STATELESS = 32768, /* at rest; in the whole checkpoint a a parameter
                                 has no states that is trained now */
    SCRIPT_FREE = 65536,      /* at rest; no gradients, and no save is under
                                 way: nothing else would be refused */
    SCRIPT_STEP_SET = 262144, /* at rest; the next pass has been given a step */
    SCRIPT_NOT_FINITE = 8192, /* at rest; an edit has made reduced gradients
                                 that are not finite for certain */
    SCRIPT_EMPTY = 524288,    /* at rest; parameters have no values for certain
                               */
    SCRIPT_RENAMED = 1048576, /* at rest; the whole checkpoint a has other names
                               */
    SCRIPT_PARTS = 2097152,   /* at rest; the whole checkpoint a has no
                                 parameters */
    SCRIPT_ROUNDED = 4194304, /* at rest; it has them rounded */
    SCRIPT_SCALED_UP = 16777216, /* at rest; reduced gradients of a loss that
                                    is scaled by 2^16 or more, as passes have
                                    left them */
    SCRIPT_PREDIVIDED = 8388608, /* at rest; a unit's predivide factor was set
                                    to 256 or more */
    SCRIPT_HOLDS = 131072, /* half way through a training pass in which all
                              units stay from their forward to their
                              backward */
};
/* Statuses with which a call may be refused. */
enum script_refusal {
    SCRIPT_IS_INVALID = 0, /* INVALID alone */
    SCRIPT_IS_UNSUPPORTED, /* that, or UNSUPPORTED: a matter of claims */
    SCRIPT_IS_OF_FILES,    /* IO or FORMAT */
    SCRIPT_IS_A_MISMATCH,  /* MISMATCH alone */
};
struct script_call_row {
    const char *name;
    uint32_t when;          /* enum script_when */
    uint32_t refusal;       /* enum script_refusal */
    const char *allowed_by; /* the claim that makes it right; NULL: none */
};
/* By enum script_call (script.h). */
extern const struct script_call_row script_calls[];
/* In a sentence: when one of the bits holds. */
const char *script_when_text(uint32_t when);

#endif
