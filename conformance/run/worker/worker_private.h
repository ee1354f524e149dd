/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_private.h - shared by the files of a worker: the engine that plays,
 * and the worlds of a case.
 */
#ifndef FSDP_CTS_WORKER_PRIVATE_H
#define FSDP_CTS_WORKER_PRIVATE_H

#include "models/text.h"
#include "mutants/mutant.h"
#include "run/process/process.h"
#include "run/worker/worker_ranks.h"

enum {
    MOST_CLAIMS = 64 /* claims, of an engine of which a mutant drops some */
};

struct worker {
    const struct worker_options *o;
    const struct fsdp_engine *engine, *device_engine;
    const struct mutant *mutant;
    struct fsdp_engine mutated; /* the engine with fewer claims */
    const char *claims[MOST_CLAIMS];
    struct text text;
    int words;                        /* descriptor of what it says to the
                                         supervisor */
    char loading[PROCESS_STATE_TEXT]; /* how loading the engine has changed the
                                         process, or "" */
    struct worker_ranks ranks;
    struct record_weight weight[WORLD_MAX_RANKS]; /* of the ranks of the case */
    uint32_t mpi_rank, mpi_world;
    bool different; /* the ranks are not of one build */
    bool died;      /* a rank did not return from the case */
    struct fsdp_error error;
};

/* Plays the case in a world of the worker's kind; ends[ranks]. */
int worker_run_world(struct worker *w, const struct drive *d,
                     struct world_result *ends);

/* worker_beside.c: the world that saves what the case loads; and those in which
 * the case is weighed, into w->weight. */
int worker_save_first(struct worker *w, const struct drive *d);
int worker_weigh(struct worker *w, const struct drive *d);

#endif
