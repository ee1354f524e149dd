/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_shrink.h - a smaller script that still shows a fault: delta debugging
 * over the mask of a drawn one.
 */
#ifndef FSDP_CTS_SCRIPT_SHRINK_H
#define FSDP_CTS_SCRIPT_SHRINK_H

#include "script/script_mask.h"

/*
 * The next mask that keeps less than m. *at counts through these masks, from 0;
 * false: there are no more, or there is no memory. Large pieces are tried
 * first: halves of the actions, quarters, and so on to single ones; then
 * actions that say less, then plain choices. Each mask is as script_masked
 * leaves it. A search that finds one that still fails goes on from that one; it
 * may try several masks at once, and then goes on from the first that fails.
 */
bool script_smaller(const struct script *drawn, const struct script_mask *m,
                    uint32_t *at, struct script_mask *out);

struct script_shrink {
    /* Whether s shows the fault. */
    bool (*fails)(void *context, const struct script *s);
    void *context;
    uint32_t most;  /* how many scripts may be tried */
    uint32_t tried; /* out: how many were tried */
};
/*
 * Starts from *mask, whose script fails, and makes it smaller as long as a
 * smaller one fails, too. What is left in *mask still fails. If `most` was
 * enough, none of the masks that script_smaller makes of it fails: no single
 * action can go. OK or NOMEM.
 */
int script_shrink(const struct script *drawn, struct script_shrink *how,
                  struct script_mask *mask, struct fsdp_error *error);

#endif
