/* SPDX-License-Identifier: Apache-2.0 */
/* worker_ends.c - see worker_ends.h. */
#include "run/worker/worker_ends.h"

#include <stdio.h>

void worker_ends_tell_unsaved(uint32_t n, const struct world_result *ends)
{
    for (uint32_t k = 0; k < n; k++) {
        if (ends[k].end == WORLD_RETURNED && ends[k].status != FSDP_OK &&
            ends[k].status != FSDP_ERR_ABORTED) {
            fprintf(
                stderr, "fsdp-cts: rank %u of the world that saves: %s: %s\n",
                k, ends[k].error.where[0] ? ends[k].error.where : "nowhere",
                ends[k].error.message[0] ? ends[k].error.message
                                         : fsdp_status_text(ends[k].status));
            return;
        }
    }
}

void worker_ends_take(const struct world_result *end, int32_t *status,
                      char *why, size_t room)
{
    *status = end->end == WORLD_RETURNED ? end->status : FSDP_ERR_INTERNAL;
    if (why && *status != FSDP_OK) {
        (void)snprintf(why, room, "%s%s%s",
                       end->end == WORLD_SIGNALLED ? "a signal"
                       : end->error.where[0]       ? end->error.where
                                                   : "",
                       end->error.message[0] ? ": " : "", end->error.message);
        for (char *p = why; *p; p++) {
            *p = *p >= ' ' && *p < 127 ? *p : '?';
        }
    }
}

bool worker_ends_died(const struct world_result *ends, uint32_t ranks)
{
    uint32_t k = 0;

    while (k < ranks && ends[k].end == WORLD_RETURNED) {
        k++;
    }
    return k < ranks;
}
