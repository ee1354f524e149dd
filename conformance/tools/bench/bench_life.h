/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_life.h - an engine that trains a model on one rank without any wrapper:
 * no recorder, and device and communicator as the engine brings them.
 */
#ifndef FSDP_CTS_BENCH_LIFE_H
#define FSDP_CTS_BENCH_LIFE_H

#include "models/workload.h"
#include "models/wrap.h"
#include "world/world.h"

/* A model, and what is measured with it. */
struct bench_model {
    const char *name; /* a part of results' names */
    const struct workload *workload;
    const char *size;
    const char *unit;      /* "tokens/s", "samples/s" */
    uint32_t units_a_step; /* of that, in a step of all ranks */
    bool large;            /* too much for plain loops */
};

/* gpt and mlp; ends with a NULL name. */
extern const struct bench_model bench_models[];
/* Many modules, each a unit of 16 parameters, and no compute at all. */
extern const struct workload bench_empty;
enum {
    BENCH_EMPTY_UNITS = 64
};

/* One of the engines, with its options, that are measured in turns. */
struct bench_contestant {
    const struct fsdp_engine *engine;
    /* Gives the device to an engine that brings none. */
    const struct fsdp_engine *lender;
    bool strict; /* nothing runs ahead */
    bool half;   /* parameters and reductions are bf16, where they travel */
    bool sgd;    /* SGD; otherwise AdamW */
    /* NULL, or called when the engine is open and has no model yet: may wrap
     * the device and the communicator. */
    void (*opened)(void *self, struct fsdp_env *env);
    void *self;
};

struct bench_life {
    const struct bench_contestant *who;
    struct workload_model *model;
    struct wrap_units units;
    struct fsdp_mesh mesh;
    uint32_t extent[2];
    struct fsdp_comm comm;
    struct fsdp_env env, lent;
    struct fsdp_stream *compute; /* that was opened here */
    struct fsdp_sharded *sharded;
    struct workload_run *run;
    struct bench_initial *initial; /* NULL: the model's own values */
    uint32_t step;
    float loss;
    double began; /* the last step, by bench_now */
    double host;  /* seconds of it until the host had issued all its work */
};

/* Runs body in local processes; one that does not return FSDP_OK is an
 * error. */
int bench_life_world(uint32_t ranks,
                     int (*body)(void *context, struct world_rank *rank),
                     void *context, struct fsdp_error *error);

/* The bare model: parameters, gradients and an optimizer in one piece each,
 * and nothing that an engine does. In a world of more than one every rank
 * trains alone. */
extern const struct fsdp_engine bench_bare;

/* Describes the model and shards it. `rank` is the world's. */
int bench_life_open(struct bench_life *life, const struct bench_contestant *who,
                    const struct bench_model *model, const char *text,
                    uint64_t text_bytes, struct world_rank *rank);
/* One step, from the first point until all work that it started has ended. The
 * samples are drawn before the clock starts. */
int bench_life_step(struct bench_life *life, double *seconds);
/* The slowest rank's time is the world's. */
int bench_life_slowest(struct world_rank *rank, double *seconds);
void bench_life_close(struct bench_life *life); /* any state */

/* A life from open to close in which `take` is called, which reaches the
 * engine's device and communicator through who->self. A rank that fails aborts
 * the others, but not with UNSUPPORTED, to which all ranks come. */
int bench_life_in(const struct bench_contestant *who,
                  const struct bench_model *model, const char *text,
                  uint64_t text_bytes, struct world_rank *rank,
                  int (*take)(void *self, struct world_rank *rank,
                              struct bench_life *life));

#endif
