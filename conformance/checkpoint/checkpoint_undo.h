/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_undo.h - what a rank held before a load, in a file without a name.
 *
 * Until all ranks have read all of their parts, both the old and the new values
 * are needed, whichever of them it will be. The new ones are in files that may
 * turn out to be unreadable, and memory for both is more than a load may use
 * (one unit above what rests). So the old ones go to a disk. The file is
 * private and is never flushed: where memory is plenty it stays in the system's
 * cache, and no disk turns.
 */
#ifndef FSDP_CTS_CHECKPOINT_UNDO_H
#define FSDP_CTS_CHECKPOINT_UNDO_H

#include "checkpoint.h"

struct checkpoint_undo {
    int fd;
    uint64_t bytes;
};

/* In `directory`, where room for a checkpoint is likely, or in $TMPDIR or /tmp.
 * False: nowhere; *u is closed then. */
bool checkpoint_undo_open(struct checkpoint_undo *u, int directory);
void checkpoint_undo_close(struct checkpoint_undo *u);
/* All slices of the target, one behind the other. DEVICE: one is not given. */
int checkpoint_undo_keep(struct checkpoint_undo *u,
                         const struct checkpoint_target *target, float *buffer,
                         char *why);
/* The same slices are again what they were. */
int checkpoint_undo_restore(const struct checkpoint_undo *u,
                            const struct checkpoint_target *target,
                            float *buffer, char *why);

#endif
