/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.h - a world runs one function on every rank and gives each rank a
 * communicator. Three kinds with the same results:
 *
 *   LOCAL    every rank a forked process (the default): a rank may die, and
 *            no global is shared by accident. Shared memory is one anonymous
 *            mapping, so nothing can be left behind.
 *   THREADS  every rank a thread, for sanitizers.
 *   MPI      this process is one rank of a program that mpirun started.
 *
 * The communicator's device is the host: pointers are host memory. Streams
 * are ignored (a collective has finished when it returns), so an engine that
 * gives a stream has to have synchronised it, or brings a communicator of
 * its own.
 */
#ifndef FSDP_CTS_WORLD_H
#define FSDP_CTS_WORLD_H

#include "record/ending.h"

#include <fsdp/engine.h>
#include <stddef.h>

enum world_kind {
    WORLD_LOCAL = 0,
    WORLD_THREADS = 1,
    WORLD_MPI = 2,
    N_WORLDS = 3,
    /* LOCAL, in which ranks share no memory: a process beside them carries what
     * they send (broker.h). It has no name of its own. At most 128 ranks. */
    WORLD_CARRIED = N_WORLDS,
};
extern const char *const world_names[N_WORLDS]; /* "local", "threads", "mpi" */

/* What one rank is given; valid during the body only. */
struct world_rank {
    uint32_t rank;
    uint32_t world;
    struct fsdp_comm comm;
    int (*exchange)(void *self, const void *mine, uint64_t bytes, void *all);
    void *exchange_self;
    /* Errors in `comm` are described here. The body may set env->error to it,
     * too: what it holds at the end arrives in result[].error, even when the
     * rank has died. (Or point it elsewhere, or to NULL.) */
    struct fsdp_error *error;
    /* LOCAL and THREADS: the memory that ranks share. A page counts as a
     * process's memory once the process has looked at it. */
    const void *shared;
    size_t shared_bytes;
};

/* How a rank ended, and the last collective that it entered. `exchange` is
 * progress, but does not count as a collective here. */
struct world_result {
    uint32_t end;
    int32_t status;
    int32_t signal;
    uint64_t n_collectives; /* entered so far */
    uint32_t in_collective; /* 1: the rank was in it at the end, or when the
                               world was aborted */
    uint32_t last_kind;     /* enum fsdp_collective_kind */
    uint32_t last_unit;
    struct fsdp_error error;
};

/*
 * LOCAL: appends where this rank stands to the file, as addresses and what is
 * mapped (world_stack.c), when a fatal signal ends it, and when another rank
 * has died or none gets on. It sets handlers of those signals: an engine may
 * set its own, and then nothing is appended at them.
 */
void world_stack_to(struct world_rank *rank, const char *file);
/* To be called once by a process that runs worlds, before it does: then
 * handlers need not load anything. */
void world_stack_prepare(void);
/* Names the wrong call that this process is making, for what is appended; NULL:
 * none. The text is not copied. */
void world_stack_doing(const char *word);

/*
 * Runs `body` on every rank of the mesh and waits for all. result[] has an
 * element for each rank (MPI: only this rank's own is filled). A rank whose
 * body returns a failure aborts the others' collectives; so does one that dies.
 * One that returns FSDP_OK while others still wait for it in a collective makes
 * that collective FSDP_ERR_MISMATCH at once.
 *
 * If for `timeout_ms` no rank gets on in a collective or ends, all collectives
 * are aborted. A rank that has not ended after a while (LOCAL: at most half a
 * second without progress; THREADS: timeout_ms) is ended: LOCAL kills it;
 * THREADS says so on stderr and leaves the process by _exit(70), as threads
 * cannot be killed. MPI: each process sees only its own rank. It gives a
 * collective timeout_ms (FSDP_ERR_TIMEOUT) and, after twice that without any
 * collective, reports and _exits with 70.
 *
 * LOCAL: a rank starts as a copy of the caller, with default handlers for
 * signals, and ends without running exit handlers: the body closes what it
 * opened. The caller should have one thread. A rank dies with its parent.
 *
 * Returns FSDP_OK if the world ran at all, whatever its ranks did. INVALID: a
 * world of 0 or more than WORLD_MAX_RANKS ranks, an extent of 0, more than 4
 * dimensions, timeout_ms 0; MPI: a mesh of another size than MPI's world.
 */
int world_run(uint32_t kind, const struct fsdp_mesh *mesh, uint32_t timeout_ms,
              int (*body)(void *context, struct world_rank *rank),
              void *context, struct world_result *result,
              struct fsdp_error *error);

/* The same in WORLD_CARRIED; `carried` gets what was carried: [ranks of the
 * mesh], zeroed. COMM: the process that carries has died, and *error says so;
 * ranks are not to blame for what they did then. NOMEM also: more ranks than it
 * carries. */
struct record_carried;
int world_run_carried(const struct fsdp_mesh *mesh, uint32_t timeout_ms,
                      int (*body)(void *context, struct world_rank *rank),
                      void *context, struct world_result *result,
                      struct record_carried *carried, struct fsdp_error *error);

/* MPI only: initialises MPI (once), says rank and world. UNSUPPORTED if built
 * without MPI. After an aborted case the MPI world is unusable: world_run says
 * FSDP_ERR_ABORTED from then on and the process should close and end. */
int world_mpi_open(uint32_t *out_rank, uint32_t *out_world,
                   struct fsdp_error *error);
void world_mpi_close(void);
/* Once MPI is open: gives all ranks what each has in `mine`, all[rank], in
 * order. All ranks call it. COMM, UNSUPPORTED. */
int world_mpi_exchange(const void *mine, uint32_t bytes, void *all,
                       struct fsdp_error *error);

#endif
