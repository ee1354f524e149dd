/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_mpi_none.c - stands in for world_mpi.c in a build without MPI.
 */
#include "world_kinds.h"

static int unsupported(struct fsdp_error *error)
{
    return world_fail(error, FSDP_ERR_UNSUPPORTED, 0, 0, "world",
                      "this program was built without MPI");
}

int world_mpi_open(uint32_t *out_rank, uint32_t *out_world,
                   struct fsdp_error *error)
{
    *out_rank = 0;
    *out_world = 0;
    return unsupported(error);
}

int world_mpi_exchange(const void *mine, uint32_t bytes, void *all,
                       struct fsdp_error *error)
{
    (void)mine;
    (void)bytes;
    (void)all;
    return unsupported(error);
}

void world_mpi_close(void)
{
}

int world_run_mpi(const struct world_job *job)
{
    return unsupported(job->error);
}
