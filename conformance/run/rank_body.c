/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_body.c - the first lines of a rank.
 */
#include "run/rank_body.h"
#include "run/rank_limits.h"

#include <stdio.h>
#include <unistd.h>

/* A rank that is a process prints by a descriptor of its own, and has no
 * other's. */
static void take_outputs(const struct worker_options *o, uint32_t rank)
{
    if (o->world != WORLD_LOCAL) {
        return;
    }
    if (rank < o->outputs) {
        (void)fflush(NULL);
        (void)dup2(WORKER_OUTPUTS_FD + (int)rank, STDOUT_FILENO);
        (void)dup2(WORKER_OUTPUTS_FD + (int)rank, STDERR_FILENO);
    }
    for (uint32_t i = 0; i < o->outputs; i++) {
        close(WORKER_OUTPUTS_FD + (int)i);
    }
}

int rank_body_run(void *context, struct world_rank *rank)
{
    const struct rank_body *b = context;
    const char *why = NULL;

    take_outputs(b->o, rank->rank);
    if (b->notary) {
        world_reads_nobody(rank);
        if (!limits_enter(b->notary, rank->rank, b->folder, &why)) {
            *rank->error = (struct fsdp_error){.status = FSDP_ERR_IO,
                                               .rank = (int32_t)rank->rank,
                                               .where = RECORD_WRITE_WHERE};
            (void)snprintf(rank->error->message, sizeof(rank->error->message),
                           "rank %u could not be isolated: %s", rank->rank,
                           why);
            rank->comm.abort(rank->comm.self, FSDP_ERR_IO);
            return FSDP_ERR_IO;
        }
    }
    return b->drive((void *)b->d, rank);
}
