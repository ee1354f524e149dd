/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_probe.h - shared by the files of the MPI probe. Each MPI function that
 * they define logs its call and then makes it, under the name that MPI reserves
 * for this (PMPI_).
 */
#ifndef FSDP_CTS_MPI_PROBE_H
#define FSDP_CTS_MPI_PROBE_H

#include "tools/probes/preload/call_log.h"

#include <mpi.h>

struct mpi_probe_call {
    struct probe_call call;
    bool on; /* the call is logged */
    int size, me;
};

/* Begins a call on a communicator; `on` is set only if there is a log and MPI
 * does not make the call on its own behalf. */
struct mpi_probe_call mpi_probe_begin(const char *name, uint32_t mode,
                                      MPI_Comm comm);
/* The following describe the arguments of a call. Here `count` is that of each
 * part. */
void mpi_probe_even(struct mpi_probe_call *c, uint32_t kind, int count,
                    MPI_Datatype type, const void *own);
/* Parts of different sizes, all of which are known, or only one. */
void mpi_probe_parts(struct mpi_probe_call *c, uint32_t even, uint32_t uneven,
                     const int *counts, MPI_Datatype type, const void *own);
/* No parts: a reduction, a broadcast; `own` NULL: cannot be in place. */
void mpi_probe_whole(struct mpi_probe_call *c, uint32_t kind, int count,
                     MPI_Datatype type, const void *own);
/* Parts for each other rank; only their sum is logged. */
void mpi_probe_sum(struct mpi_probe_call *c, uint32_t kind, const int *counts,
                   MPI_Datatype type, const void *own);
void mpi_probe_mixed(struct mpi_probe_call *c, const int *counts,
                     const MPI_Datatype *types, const void *own);
void mpi_probe_op(struct mpi_probe_call *c, MPI_Op op);
void mpi_probe_root(struct mpi_probe_call *c, int root);

/* Logs the call, marks it as ours while PMPI runs; and logs how it ended. */
uint64_t mpi_probe_enter(const struct mpi_probe_call *c);
int mpi_probe_leave(const struct mpi_probe_call *c, uint64_t seq, int code);
/* A persistent call is logged when its request is started. */
int mpi_probe_keep(const struct mpi_probe_call *c, int code,
                   const MPI_Request *request);

/* Counts a message, or an access to another rank's memory; neither is a
 * collective. */
void mpi_probe_message(bool puts, int count, MPI_Datatype type);

/* mpi_communicators.c: with the log's lock held. The number of a communicator,
 * which is written to the log when it is first seen; -1: none. */
int64_t mpi_probe_comm(struct call_log *c, MPI_Comm comm, MPI_Comm parent);

/* mpi_requests.c: with the log's lock held. */
struct mpi_probe_kept {
    bool is_message;
    struct mpi_probe_call call;
    int64_t bytes;
};
void mpi_probe_remember(MPI_Request request, const struct mpi_probe_kept *kept);
const struct mpi_probe_kept *mpi_probe_recall(MPI_Request request);
void mpi_probe_drop(MPI_Request request);

/* The log; and whether one of our calls is running: a call that MPI makes
 * within it is not the program's. */
extern struct call_log mpi_probe_log;
extern _Thread_local int mpi_probe_depth
    __attribute__((tls_model("initial-exec")));

#endif
