/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_undo.h - keeps what a rank held before a load, in a file without a
 * name.
 *
 * Until all ranks have read all of their parts, both the old and the new values
 * may still be needed. The new ones are in files that may turn out to be
 * unreadable, and memory for both is more than a load may use (one unit more
 * than at rest). So the old values go to a disk. The file is private and is
 * never flushed: where memory is plenty it stays in the system's cache, and
 * nothing is written.
 */
#ifndef FSDP_CTS_CHECKPOINT_UNDO_H
#define FSDP_CTS_CHECKPOINT_UNDO_H

#include "checkpoint.h"

struct checkpoint_undo {
    int fd;
    uint64_t bytes;
};

/* Opens the file in `directory`, where room for a checkpoint is likely, or in
 * $TMPDIR or /tmp. False: none of them would do; *u is closed then. */
bool checkpoint_undo_open(struct checkpoint_undo *u, int directory);
void checkpoint_undo_close(struct checkpoint_undo *u);
/* Keeps all slices of the target, one behind the other. DEVICE: a slice could
 * not be read. */
int checkpoint_undo_keep(struct checkpoint_undo *u,
                         const struct checkpoint_target *target, float *buffer,
                         char *why);
/* Gives the same slices their old values again. */
int checkpoint_undo_restore(const struct checkpoint_undo *u,
                            const struct checkpoint_target *target,
                            float *buffer, char *why);

#endif
