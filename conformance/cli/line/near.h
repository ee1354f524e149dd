/* SPDX-License-Identifier: Apache-2.0 */
/*
 * near.h - "did you mean": of the names that there are the one that is nearest
 * to one that there is not.
 */
#ifndef FSDP_CTS_NEAR_H
#define FSDP_CTS_NEAR_H

#include <stddef.h>

struct near {
    const char *wanted; /* what was typed */
    const char *best;   /* NULL: nothing is near; the candidate's own text */
    size_t distance;    /* edits from one to the other */
};

/* Looks at one candidate, which outlives n. */
void near_try(struct near *n, const char *candidate);
/* "; did you mean 'X'?", or "" if nothing is near. The text is cut at the end
 * of out. */
const char *near_say(const struct near *n, char out[256]);

#endif
