/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h - the process that runs cases. The supervisor never loads an
 * engine: it starts workers, gives each a batch of cases in a file, and reads
 * from a descriptor which one has begun and which has ended:
 *
 *     engine ref 0.1.0 flat full-shard ...
 *     begin 3
 *     end 3
 *
 * In place of "end" it says "died" where a rank did not return from the case.
 *
 * A worker that cannot go on, for a reason that is no engine's fault, says so
 * with "refuse STATUS MESSAGE" and ends. After "again 3" it has ended without
 * case 3: an MPI world is unusable after a failure, a new one is not.
 *
 * After either it waits for a byte that says that the record is where no engine
 * reaches it. (Not under MPI.) Meanwhile it continues a supervisor that does
 * not answer, because a rank may have stopped it; but not one that is
 * suspended.
 *
 * "no record: WHY" before "end" says that the case has none, since one could
 * not be written, and so has no verdict; then this worker has ended with that
 * case, and another goes on. (Under MPI it refuses.)
 *
 * A batch file is an array of struct run_case as it lies in memory: it never
 * leaves the machine or the version that wrote it.
 */
#ifndef FSDP_CTS_WORKER_H
#define FSDP_CTS_WORKER_H

#include "record/record.h"
#include "world/world.h"

/* Where a worker of the local world or of threads says it: a descriptor that
 * its ranks do not have, where they are processes. Under MPI it is standard
 * output. */
enum {
    WORKER_WORDS_FD = 3,
    WORKER_OUTPUTS_FD = 4, /* of rank 0; the others' follow */
    /* How it ends after abort() where it is the first process of a namespace,
     * which no signal ends. */
    WORKER_ABORTED = 134
};

/* What a supervisor says to a worker. */
enum {
    WORKER_HEARD = '\n',    /* and done: go on */
    WORKER_SUSPENDED = 'z', /* from the terminal: let it be, until */
    WORKER_GO_ON = 'c'
};

/* Behind the name of a batch: the file of the scripts that it plays. */
#define WORKER_SCRIPTS ".scripts"

/* In a worker's folder: the rank that waits for a debugger, by its number. */
enum {
    WORKER_DEBUG_BYTES = 4096 + 32
};
const char *worker_debug_file(const char *folder,
                              char path[WORKER_DEBUG_BYTES]);

struct worker_options {
    const char *batch;   /* file */
    const char *records; /* folder */
    const char *engine;
    const char *mutant; /* NULL: none */
    const char *text;   /* NULL: the built-in one */
    uint32_t world;     /* enum world_kind */
    uint32_t timeout_ms;
    uint32_t words;   /* descriptor; 0: standard output */
    uint32_t outputs; /* for so many ranks there are descriptors */
    bool trace;       /* ranks leave traces in the case's folder */
    bool wrapped;     /* in another program, whose memory is not the engine's */
    uint32_t debug;   /* the rank + 1 that waits for a debugger; 0: none */
    bool isolate;     /* ranks that are processes are (rank_limits.h) */
    uint32_t sample;  /* ranks of which all is recorded; 0: all of them */
};

/* Runs the batch; returns an exit code. */
int worker_run(const struct worker_options *o);

#endif
