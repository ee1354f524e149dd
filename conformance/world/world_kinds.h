/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_kinds.h - the kinds of world behind world_run.
 */
#ifndef FSDP_CTS_WORLD_KINDS_H
#define FSDP_CTS_WORLD_KINDS_H

#include "record/record_traffic.h"
#include "world_comm.h"

/* The arguments of world_run, checked; result[] is zeroed. */
struct world_job {
    const struct fsdp_mesh *mesh;
    uint32_t n_ranks;
    uint32_t timeout_ms;
    int (*body)(void *context, struct world_rank *rank);
    void *context;
    struct world_result *result;
    struct fsdp_error *error;
    /* [n_ranks], for WORLD_CARRIED; NULL: not wanted. */
    struct record_carried *carried;
};

int world_run_local(const struct world_job *job);
int world_run_carried_local(const struct world_job *job);
int world_run_threads(const struct world_job *job);
int world_run_mpi(const struct world_job *job);

#endif
