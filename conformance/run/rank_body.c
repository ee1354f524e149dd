/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_body.c - the first lines of a rank.
 */
#include "run/rank_body.h"
#include "run/engine_load.h"
#include "run/process_state.h"
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

static int say_why(struct world_rank *rank, const char *what, const char *why)
{
    *rank->error = (struct fsdp_error){.status = FSDP_ERR_IO,
                                       .rank = (int32_t)rank->rank,
                                       .where = RECORD_WRITE_WHERE};
    (void)snprintf(rank->error->message, sizeof(rank->error->message),
                   "rank %u could not %s: %.150s", rank->rank, what, why);
    rank->comm.abort(rank->comm.self, FSDP_ERR_IO);
    return FSDP_ERR_IO;
}

/* Constructors run there, of the engine and of all that it brings. What they
 * change is said in `loading`. */
static int load(const struct rank_body *b, struct drive *d,
                char loading[PROCESS_STATE_TEXT], struct world_rank *rank)
{
    struct fsdp_error error = {0};
    struct process_state state;

    process_state_note(&state, true);
    if (engine_load(b->o->engine, &d->engine, &error) != FSDP_OK) {
        return say_why(rank, "load the engine", error.message);
    }
    if (process_state_changed(&state, true, true, loading)) {
        d->loading = loading;
    }
    return FSDP_OK;
}

int rank_body_run(void *context, struct world_rank *rank)
{
    const struct rank_body *b = context;
    const char *why = NULL;
    char loading[PROCESS_STATE_TEXT];
    struct drive d = *b->d;

    take_outputs(b->o, rank->rank);
    if (b->notary) {
        world_reads_nobody(rank);
        if (!limits_enter(b->notary, rank->rank, b->folder, &why)) {
            return say_why(rank, "be isolated", why);
        }
    }
    if (b->loads) {
        FSDP_TRY(load(b, &d, loading, rank));
    }
    return b->drive(&d, rank);
}
