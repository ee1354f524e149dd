/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drive.h - the life of one case on one rank: open, shard, train as the
 * scenario says, destroy; and the record of it.
 *
 * Read in this order: drive.c (a rank from the outside), drive_life.c (from
 * shard to destroy), drive_step.c (a step: passes over microbatches, the
 * optimizer); then what some scenarios add: drive_wrong.c,
 * drive_optimizer.c, drive_checkpoint.c.
 */
#ifndef FSDP_CTS_DRIVE_H
#define FSDP_CTS_DRIVE_H

#include "cases/case_model.h"
#include "run/recorder.h"
#include "world/world.h"

struct mutant;

/* What a driver needs; shared by all ranks and never written by them. */
struct drive {
    const struct run_case *c;
    const struct case_model *model;
    const struct fsdp_engine *engine;
    /* Gives the device to an engine that brings none. */
    const struct fsdp_engine *device_engine;
    /* NULL, or what makes the engine wrong, by changing copies of env and
     * engine (mutants/mutant.h). */
    const struct mutant *mutant;
    void (*mutate)(const struct mutant *mutant, struct fsdp_env *env,
                   struct fsdp_engine *engine);
    const char *directory;   /* where the rank's record goes; NULL: nowhere */
    bool look_at_process;    /* every rank is a process of its own */
    bool trace;              /* rank-R.trace.partial is wanted, too */
    const char *checkpoints; /* where they go; names beside it are used too */
    bool saves_only; /* these ranks save what those of another case load */
};

/* A rank while it is being driven. */
struct driver {
    const struct drive *d;
    /* Of d->model: what its workload describes, and how it is wrapped. */
    const struct fsdp_model *model;
    const struct fsdp_units *units;
    const struct workload *workload;
    struct fsdp_env env;
    /* What env->error points to: not the communicator's, whose collectives
     * may fail on a thread of their own. */
    struct fsdp_error error;
    struct fsdp_mesh mesh;
    uint32_t extent[2];
    struct fsdp_engine engine; /* a copy: a mutant may have changed it */
    struct fsdp_options options;
    struct fsdp_model told; /* the model as the engine sees it (drive_told.c) */
    struct recorder *recorder;
    struct record_rank *out; /* of the rank that is being played */
    struct fsdp_sharded *sharded;
    struct workload_run *run;

    bool alone;                  /* in a world of one: no collective shows
                                    that the run gets on */
    bool serial;                 /* plays all ranks, one after the other */
    uint32_t step, microbatch;   /* now */
    uint32_t point, index;       /* where the run stands: enum race_point */
    bool recording;              /* tensors of this pass are wanted */
    bool forward;                /* the point is a forward one */
    bool watching;               /* this step's timeline is wanted */
    struct fsdp_stream *compute; /* that this driver opened */
    struct wire wire;            /* for the recorder */
    struct fsdp_tensor *lent;    /* [n_parameters]: gradients lent, by data */
};

/*
 * Runs the case on this rank; a body of world_run. context: struct drive.
 * Writes the rank's record whatever happens. Returns what the run ended with.
 */
int drive_rank(void *context, struct world_rank *rank);
/* The same for an engine with the claim "serial", in a world of one: plays
 * all ranks of the case and writes a record for each. */
int drive_serial(void *context, struct world_rank *rank);

/* drive_life.c: a life as the scenario says, and its parts in their order. */
int drive_live(struct driver *x);
int drive_shard(struct driver *x);
int drive_end_life(struct driver *x);
void drive_end_of_run(struct driver *x);

/* drive_step.c: what the model asks the engine for; a step, and its parts in
 * their order. */
int drive_open_run(struct driver *x);
int drive_step(struct driver *x, uint32_t step);
int drive_microbatches(struct driver *x); /* of one rank and step */
int drive_optimize(struct driver *x);
int drive_evaluate(struct driver *x);
int drive_end_step(struct driver *x);
/* Whether a rank ended because its record could not be written: no fault of
 * its engine, and none of its case. */
bool drive_is_unwritten(const struct world_result *end);
/* CANCEL: the last pass is left in its middle, and destroy takes it all. */
int drive_abandon_pass(struct driver *x);
/* For those who describe what happens: the run stands here. */
void drive_place(struct driver *x, uint32_t point, uint32_t index);

/* drive_told.c: the model, whose `initial` says in env->error what was wrong
 * with a call that it refuses. */
void drive_tell_model(struct driver *x);
/* Completes *e, with which the run ended: what the engine left unsaid, and
 * where the run stood. */
void drive_tell_end(const struct driver *x, int status, struct fsdp_error *e);

/* One answer of the record. OK or NOMEM. */
int drive_answer(struct driver *x, const char *name, int status);
/* A count beside the answers, up to INT32_MAX. */
int drive_answer_number(struct driver *x, const char *name, uint64_t number);
/* drive_wrong.c: calls that an engine must refuse. */
int drive_options(struct driver *x);
int drive_disagree(struct driver *x);
int drive_wrong_at_rest(struct driver *x);
int drive_wrong_in_pass(struct driver *x, uint32_t i);
/* INVALID if all parameters are refused so; else the first other answer. */
int drive_ask_all(struct driver *x, int (*ask)(struct fsdp_sharded *, uint32_t,
                                               struct fsdp_tensor *));
int drive_wrong_before_end(struct driver *x, const struct fsdp_sequence *q);
int drive_wrong_step(struct driver *x);

/* drive_optimizer.c: shards, and makes a step, with the groups of the case. */
int drive_shard_model(struct driver *x);
int drive_step_groups(struct driver *x, struct fsdp_step *step);
/* CLIP alone. Measures this step's gradients, and clips them. */
int drive_clip(struct driver *x);
/* Calls that must be refused: in the first pass, or before the first step. */
int drive_wrong_clip(struct driver *x, bool in_pass);

/* drive_pieces.c: what pieces show, under a stage of the record. */
int drive_record_pieces(struct driver *x, uint32_t stage, uint32_t step);
/* drive_checkpoint.c: lives with a checkpoint between them. */
int drive_resume(struct driver *x);
int drive_save_only(struct driver *x);
/* Removes what a case left at that name, and at names that begin so. */
void drive_clear_checkpoints(const char *checkpoints);
int drive_wrong_checkpoint_in_pass(struct driver *x);
int drive_wrong_save(struct driver *x); /* there are gradients */

#endif
