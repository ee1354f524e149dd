/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h - the process that runs cases. The supervisor never loads an engine:
 * it starts workers, gives each a batch of cases in a file, and reads from a
 * descriptor which case has begun and which has ended:
 *
 *     engine ref 0.1.0 flat full-shard ...
 *     begin 3
 *     end 3
 *
 * In place of "end" the worker says "died" if a rank did not return from the
 * case.
 *
 * A worker that cannot go on, for a reason that is no engine's fault, says so
 * with "refuse STATUS MESSAGE" and ends. After "again 3" it has ended without
 * case 3: an MPI world is unusable after a failure, and a new one is not.
 *
 * After "end" or "died" the worker waits for a byte, by which the supervisor
 * says that the record is where no engine reaches it. (Not under MPI.) While
 * the supervisor does not answer, the worker continues it, because a rank may
 * have stopped it; but not if the supervisor is suspended.
 *
 * "no record: WHY" before "end" says that a record of the case could not be
 * written, so that the case has no verdict; then this worker ends with that
 * case, and another goes on. (Under MPI it refuses.)
 *
 * A batch file is an array of struct run_case as it lies in memory: it never
 * leaves the machine or the version that wrote it.
 */
#ifndef FSDP_CTS_WORKER_H
#define FSDP_CTS_WORKER_H

#include "record/record.h"
#include "world/world.h"

/* The descriptor on which a worker of the local world or of threads says this:
 * its ranks do not have it, if they are processes. Under MPI it is standard
 * output. */
enum {
    WORKER_WORDS_FD = 3,
    WORKER_OUTPUTS_FD = 4, /* of rank 0; the others' follow */
    /* The exit code of a worker that called abort() as the first process of a
     * namespace, which no signal ends. */
    WORKER_ABORTED = 134
};

/* What a supervisor says to a worker. */
enum {
    WORKER_HEARD = '\n',    /* the record has been moved: go on */
    WORKER_SUSPENDED = 'z', /* the terminal has suspended the supervisor: do not
                               continue it, until */
    WORKER_GO_ON = 'c'
};

/* Added to the name of a batch: the file of the scripts that it plays. */
#define WORKER_SCRIPTS ".scripts"

/* A file in a worker's folder: it has the number of the process of the rank
 * that waits for a debugger. */
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
    uint32_t outputs; /* so many ranks have a descriptor for their output */
    bool trace;       /* ranks leave traces in the case's folder */
    bool wrapped;     /* runs under another program, whose memory is not the
                         engine's */
    uint32_t debug;   /* the rank + 1 that waits for a debugger; 0: none */
    bool isolate;     /* isolates ranks that are processes (rank_limits.h) */
    uint32_t sample;  /* so many ranks record everything; 0: all ranks do */
};

/* Runs the batch; returns an exit code. */
int worker_run(const struct worker_options *o);

#endif
