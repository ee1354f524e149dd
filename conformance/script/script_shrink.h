/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_shrink.h - a smaller script that still shows a fault: delta debugging
 * over the mask of a drawn one.
 */
#ifndef FSDP_CTS_SCRIPT_SHRINK_H
#define FSDP_CTS_SCRIPT_SHRINK_H

#include "script/script_mask.h"

/*
 * The next mask that keeps less than m, for a search that goes on from what it
 * finds: *at counts through them, from 0; false: there are no more (or there is
 * no memory). Large pieces come first: halves of the actions, quarters, and so
 * on to single ones; then what actions say less, then plain choices. Each is as
 * script_masked leaves it. A round of several may be tried at once: the first
 * that fails is gone on from.
 */
bool script_smaller(const struct script *drawn, const struct script_mask *m,
                    uint32_t *at, struct script_mask *out);

struct script_shrink {
    /* Whether s shows the fault. */
    bool (*fails)(void *context, const struct script *s);
    void *context;
    uint32_t most;  /* trials */
    uint32_t tried; /* out */
};
/*
 * Goes on from *mask, which fails, as long as something smaller does. What is
 * left in *mask fails, and, if `most` was enough, no mask fails that
 * script_smaller makes of it: without any one of its actions it does not. OK
 * or NOMEM.
 */
int script_shrink(const struct script *drawn, struct script_shrink *how,
                  struct script_mask *mask, struct fsdp_error *error);

#endif
