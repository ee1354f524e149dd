/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.c - checks the arguments and hands them to one kind of world.
 */
#include "world_kinds.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *const world_names[N_WORLDS] = {"local", "threads", "mpi"};

int world_fail(struct fsdp_error *error, int32_t status, uint32_t rank,
               int32_t native, const char *where, const char *format, ...)
{
    if (!error || error->status != FSDP_OK) {
        return status;
    }
    va_list arguments;
    error->status = status;
    error->rank = (int32_t)rank;
    error->native = native;
    snprintf(error->where, sizeof(error->where), "%s", where);
    va_start(arguments, format);
    vsnprintf(error->message, sizeof(error->message), format, arguments);
    va_end(arguments);
    return status;
}

/* The number of ranks; 0, with `error` filled, if the mesh is no world. */
static uint32_t world_mesh_ranks(const struct fsdp_mesh *mesh,
                                 struct fsdp_error *error)
{
    if (!mesh || mesh->size < sizeof(*mesh) || mesh->n_dims == 0 ||
        mesh->n_dims > WORLD_MAX_DIMS || !mesh->extent) {
        (void)world_fail(error, FSDP_ERR_INVALID, 0, 0, "world",
                         "a mesh has 1 to %d dimensions", (int)WORLD_MAX_DIMS);
        return 0;
    }
    uint32_t ranks = 1;
    for (uint32_t d = 0; d < mesh->n_dims; d++) {
        uint32_t extent = mesh->extent[d];
        if (extent == 0 || extent > WORLD_MAX_RANKS / ranks) {
            (void)world_fail(error, FSDP_ERR_INVALID, 0, 0, "world",
                             "extent %u of dimension %u: a world has 1 to %d "
                             "ranks",
                             extent, d, (int)WORLD_MAX_RANKS);
            return 0;
        }
        ranks *= extent;
    }
    return ranks;
}

void world_progress_read(struct world_progress *progress,
                         struct world_result *result)
{
    result->n_collectives =
        atomic_load_explicit(&progress->n_collectives, memory_order_relaxed);
    result->in_collective =
        atomic_load_explicit(&progress->in_collective, memory_order_relaxed);
    result->last_kind =
        atomic_load_explicit(&progress->last_kind, memory_order_relaxed);
    result->last_unit =
        atomic_load_explicit(&progress->last_unit, memory_order_relaxed);
}

static int start(uint32_t kind, const struct world_job *job)
{
    switch (kind) {
    case WORLD_LOCAL:
        return world_run_local(job);
    case WORLD_CARRIED:
        return world_run_carried_local(job);
    case WORLD_THREADS:
        return world_run_threads(job);
    case WORLD_MPI:
        return world_run_mpi(job);
    default:
        return world_fail(job->error, FSDP_ERR_INVALID, 0, 0, "world",
                          "no such kind of world: %u", kind);
    }
}

static int run_kind(uint32_t kind, const struct fsdp_mesh *mesh,
                    uint32_t timeout_ms,
                    int (*body)(void *context, struct world_rank *rank),
                    void *context, struct world_result *result,
                    struct record_carried *carried, struct fsdp_error *error)
{
    struct world_job job = {
        .mesh = mesh,
        .timeout_ms = timeout_ms,
        .body = body,
        .context = context,
        .result = result,
        .error = error,
        .carried = carried,
    };

    job.n_ranks = world_mesh_ranks(mesh, error);
    if (job.n_ranks == 0) {
        return FSDP_ERR_INVALID;
    }
    if (!body || !result || timeout_ms == 0) {
        return world_fail(error, FSDP_ERR_INVALID, 0, 0, "world",
                          "no body, no result or no time");
    }
    memset(result, 0, job.n_ranks * sizeof(*result));
    return start(kind, &job);
}

int world_run(uint32_t kind, const struct fsdp_mesh *mesh, uint32_t timeout_ms,
              int (*body)(void *context, struct world_rank *rank),
              void *context, struct world_result *result,
              struct fsdp_error *error)
{
    return run_kind(kind, mesh, timeout_ms, body, context, result, NULL, error);
}

int world_run_carried(const struct fsdp_mesh *mesh, uint32_t timeout_ms,
                      int (*body)(void *context, struct world_rank *rank),
                      void *context, struct world_result *result,
                      struct record_carried *carried, struct fsdp_error *error)
{
    return run_kind(WORLD_CARRIED, mesh, timeout_ms, body, context, result,
                    carried, error);
}
