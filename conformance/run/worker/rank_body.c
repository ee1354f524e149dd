/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_body.c - the first lines of a rank.
 */
#include "run/worker/rank_body.h"
#include "run/process/process_state.h"
#include "run/witness/crossing.h"
#include "run/worker/debug.h"
#include "run/worker/engine_load.h"
#include "run/worker/rank_limits.h"
#include "run/worker/told.h"

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

/* The machine's failure, and none of the engine's, of which nothing has run. */
static int is_not_isolated(struct world_rank *rank, const char *why)
{
    *rank->error = (struct fsdp_error){.status = FSDP_ERR_IO,
                                       .rank = (int32_t)rank->rank,
                                       .where = RECORD_WRITE_WHERE};
    (void)snprintf(rank->error->message, sizeof(rank->error->message),
                   "rank %u could not be isolated: %.150s", rank->rank, why);
    rank->comm.abort(rank->comm.self, FSDP_ERR_IO);
    return FSDP_ERR_IO;
}

/* Constructors run there, of the engine and of all that it brings. What they
 * change is said in `loading`. It could be loaded before, under the same
 * limits: where it cannot be now, that is its own doing. */
static int load(const struct rank_body *b, struct drive *d,
                char loading[PROCESS_STATE_TEXT], struct fsdp_error *error)
{
    struct process_state state;

    process_state_note(&state, true);
    FSDP_TRY(engine_load(b->o->engine, &d->engine, error));
    if (process_state_changed(&state, PROCESS_WHOLE, true, loading) !=
        PROCESS_SAME) {
        d->loading = loading;
    }
    return FSDP_OK;
}

/* The engine is loaded, so that it has names for breakpoints. A rank that no
 * debugger comes to goes on without. */
static void await_debugger(const struct rank_body *b, uint32_t rank)
{
    char file[WORKER_DEBUG_BYTES];

    if (b->o->debug == rank + 1) {
        (void)debug_wait(worker_debug_file(b->o->records, file));
    }
}

/* For whoever asks why it ended (run/worker/told.h). */
static void say_where(const struct rank_body *b, struct world_rank *rank)
{
    char file[TOLD_PATH_BYTES];

    if (b->o->world == WORLD_LOCAL) {
        told_stack_file(b->folders[0], rank->rank, file);
        world_stack_to(rank, file);
    }
}

int rank_body_run(void *context, struct world_rank *rank)
{
    const struct rank_body *b = context;
    struct fsdp_error error = {0};
    const char *why = NULL;
    char loading[PROCESS_STATE_TEXT];
    struct drive d = *b->d;
    struct crossing crossing = {.pipe = -1};

    take_outputs(b->o, rank->rank);
    say_where(b, rank);
    if (b->notary) {
        if (!limits_enter(b->notary, rank->rank, b->folders, &why)) {
            return is_not_isolated(rank, why);
        }
        d.limited = true;
        d.line = b->notary->line;
        crossing.line = b->notary->line;
        crossing.pipe = b->notary->pipe;
        crossing.most = crossing_room(crossing.pipe);
        d.crossing = b->crosses ? &crossing : NULL;
    }
    if (b->loads && load(b, &d, loading, &error) != FSDP_OK) {
        return drive_unloaded(&d, rank, &error);
    }
    await_debugger(b, rank->rank);
    return b->drive(&d, rank);
}
