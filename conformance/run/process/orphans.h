/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orphans.h - processes that were left behind: the process that adopts them
 * ends them.
 */
#ifndef FSDP_CTS_ORPHANS_H
#define FSDP_CTS_ORPHANS_H

#include <stdbool.h>
#include <sys/types.h>

/* From now on what descendants leave behind becomes the caller's. */
void orphans_adopt(void);

/* Whether the caller has a child, dead or alive; or adopts none any more, so
 * that it cannot know. */
bool orphans_are_there(void);

/* Ends every child of the caller, and what these leave behind, until nothing
 * is found. The caller has no child that it still wants. */
void orphans_end(void);

/* Ends all of a process group, also what its leader left behind, which has
 * become the caller's: nothing of it runs on when this returns. */
void orphans_end_group(pid_t group);

#endif
