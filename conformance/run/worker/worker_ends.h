/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_ends.h - how the ranks of a world ended that leaves no record of its
 * own: one that saves for the case's, or one that is weighed.
 */
#ifndef FSDP_CTS_WORKER_ENDS_H
#define FSDP_CTS_WORKER_ENDS_H

#include "world/world.h"

/* Of n ranks that were to save: the case then fails where it loads, and why is
 * known here alone. Said on standard error, of the first that failed. */
void worker_ends_tell_unsaved(uint32_t n, const struct world_result *ends);

/* The status of one; and in `why`, unless it is NULL, its words, printable. */
void worker_ends_take(const struct world_result *end, int32_t *status,
                      char *why, size_t room);

/* Whether one of these did not return. */
bool worker_ends_died(const struct world_result *ends, uint32_t ranks);

#endif
