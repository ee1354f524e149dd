/* SPDX-License-Identifier: Apache-2.0 */
/*
 * near.h - "did you mean": finds the name that is nearest to one that does not
 * exist.
 */
#ifndef FSDP_CTS_NEAR_H
#define FSDP_CTS_NEAR_H

#include <stddef.h>

struct near {
    const char *wanted; /* what was typed */
    const char *best;   /* the candidate's own text; NULL: nothing is near */
    size_t distance;    /* edits from one to the other */
};

/* Looks at one candidate, which outlives n. */
void near_try(struct near *n, const char *candidate);
/* "; did you mean 'X'?", or "" if nothing is near. The text is cut at the end
 * of out. */
const char *near_say(const struct near *n, char out[256]);

#endif
