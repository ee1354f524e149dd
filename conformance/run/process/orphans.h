/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orphans.h - ends processes that were left behind, in the process that adopts
 * them.
 */
#ifndef FSDP_CTS_ORPHANS_H
#define FSDP_CTS_ORPHANS_H

#include <stdbool.h>
#include <sys/types.h>

/* From now on the caller becomes the parent of what its descendants leave
 * behind. */
void orphans_adopt(void);

/* Whether the caller has a child, dead or alive; true too if it no longer
 * adopts orphans, and so cannot know. */
bool orphans_are_there(void);

/* Ends every child of the caller, and what these leave behind, until nothing
 * is found. The caller has no child that it still wants. */
void orphans_end(void);

/* Ends all processes of a group, including those that its leader left behind,
 * which the caller has adopted: none of them runs when this returns. */
void orphans_end_group(pid_t group);

#endif
