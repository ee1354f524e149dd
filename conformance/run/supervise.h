/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supervise.h - starts workers, watches them, and goes on behind a case that
 * took its worker down. Never loads an engine, never touches MPI.
 */
#ifndef FSDP_CTS_SUPERVISE_H
#define FSDP_CTS_SUPERVISE_H

#include "judge/report/progress.h"
#include "record/record.h"
#include "run/process/seals.h"
#include "world/world.h"

struct supervise_job {
    const struct run_case *cases;
    uint32_t n_cases;
    const char *records;  /* folder; exists */
    const char *sealed;   /* the folder that no worker can change; NULL:
                             records */
    struct seals *seals;  /* gets a seal of each case that has ended; NULL: not
                             wanted */
    const char *engine;   /* name or path */
    const char *mutant;   /* NULL: none */
    const char *text;     /* NULL: the built-in one */
    uint32_t world;       /* enum world_kind */
    const char *launcher; /* MPI: "mpirun -n {K}" */
    uint32_t timeout_ms;  /* time that may pass without progress of a case */
    uint32_t n_workers;   /* workers at a time; MPI: one */
    bool trace;           /* ranks leave traces in the case's folder */
    bool isolate;         /* isolates the ranks of the local world
                             (rank_limits.h) */
    uint32_t sample;      /* so many ranks record everything; 0: all ranks do */
    const char *wrap;     /* NULL, or a program that workers run under */
    uint32_t debug;       /* the rank + 1 that gets a debugger, in the first
                             case that has such a rank; 0: none */
    bool tells;           /* told.txt names the functions of stacks; else it has
                             only what ranks printed */
    bool cleared;         /* the folder has nothing of an earlier run */
    const char *title;    /* for progress; NULL: silent */
    struct progress *part; /* the whole work that this job is a part of; NULL:
                              there is none */
};

/* What the engine says of itself, as a worker reported it. */
struct supervise_engine {
    char name[64], version[32];
    char claims[1024]; /* separated by spaces */
    bool known;
    double launch_seconds; /* from the start of its workers until their first
                              cases */
};

/*
 * Runs all cases; their records are in the folder afterwards. A case whose
 * worker died has a case.json that says so. Returns FSDP_OK if every case was
 * run or accounted for; ABORTED after SIGINT or SIGTERM, with all workers
 * ended and no half-written file left; otherwise why no worker could run.
 */
int supervise(const struct supervise_job *job, struct supervise_engine *engine,
              struct fsdp_error *error);

/*
 * Makes the unsharded runs that these cases are compared with in
 * records/baseline/, which exists. The suite always makes them itself, in the
 * local world, whatever engine, mutant and world the job names; all else is as
 * in the job. As supervise.
 */
int supervise_baselines(const struct supervise_job *job,
                        const struct case_list *cases,
                        struct fsdp_error *error);

/* From now on SIGINT and SIGTERM end a running supervise(), and what workers
 * leave behind becomes the caller's, so that it can be ended. The caller has
 * no other children. */
void supervise_catch_signals(void);
/* Whether SIGINT or SIGTERM has come. */
bool supervise_interrupted(void);
/* Whether an interrupted run has had the time to say the rest: a few seconds,
 * or until a second signal came. */
bool supervise_hurried(void);

/* Removes from the folder the records that an earlier run made of these cases,
 * or, if `baseline`, of their unsharded runs. IO; ABORTED: interrupted, and
 * some may be left. */
int supervise_clear(const char *records, const struct run_case *cases,
                    uint32_t n, bool baseline, struct fsdp_error *error);

#endif
