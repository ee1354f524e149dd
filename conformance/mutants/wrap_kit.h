/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrap_kit.h - what mutants have in common: the real communicator, device and
 * engine of this rank, changed copies of them, and the cases that are small
 * enough to show a mutant.
 *
 * All state is of a thread, as a rank is a thread or a process, and starts
 * anew in mutant_keep, which every `wrap` calls first.
 */
#ifndef FSDP_CTS_WRAP_KIT_H
#define FSDP_CTS_WRAP_KIT_H

#include "mutants/mutant.h"

struct mutant_real {
    const struct fsdp_comm *comm;
    const struct fsdp_device *device;
    struct fsdp_engine engine;
    uint32_t rank, world, replicas, shards; /* of this rank's run */
    /* What shard was given, where mutant_know asked for it. */
    const struct fsdp_model *model;
    const struct fsdp_units *units;
    /* The model's, where mutant_initial stands before it. */
    int (*initial)(void *context, uint32_t p, uint64_t first, uint64_t n,
                   void *out);
};
extern _Thread_local struct mutant_real mutant_real;

/* Remembers the real ones, and forgets the run before. */
void mutant_keep(const struct fsdp_env *env, const struct fsdp_engine *engine);
/* Puts a copy of the real one into env, to be changed by the caller. `self`
 * stays the real one's. */
struct fsdp_comm *mutant_comm(struct fsdp_env *env);
struct fsdp_device *mutant_device(struct fsdp_env *env);

/* Hands on to the real ones. */
int mutant_communicate(struct fsdp_stream *stream,
                       const struct fsdp_collective *c);
int mutant_run(struct fsdp_stream *stream, const struct fsdp_op *op);

/* What a collective is about to send, to be changed. */
float *mutant_input(const struct fsdp_collective *c);
/* Floats from the device and to it; finished on return. */
int mutant_get(struct fsdp_stream *stream, const void *from, uint64_t n,
               float *to);
int mutant_put(struct fsdp_stream *stream, const float *from, uint64_t n,
               void *to);
/* x = change(x) for n floats of the device. */
int mutant_each(struct fsdp_stream *stream, void *p, uint64_t n,
                float (*change)(float x));
/* After an all-gather: what it brought first is what it brings for ever, for
 * the first elements of the first units. keep: only look. */
int mutant_stale(struct fsdp_stream *stream, const struct fsdp_collective *c,
                 bool keep);

/* From now on the engine's shard gets other options; other initial values. */
void mutant_options(struct fsdp_engine *engine,
                    void (*change)(struct fsdp_options *o));
void mutant_initial(struct fsdp_engine *engine,
                    int (*initial)(void *context, uint32_t p, uint64_t first,
                                   uint64_t n, void *out));

/* From now on mutant_real has model and units. And elements of parameter p's
 * rows that a shard has room for; p has rows. */
void mutant_know(struct fsdp_engine *engine);
uint64_t mutant_block(uint32_t p);

/* Every piece goes through `tell`, which hands on what it likes. */
struct mutant_visit {
    void (*visit)(void *context, const struct fsdp_piece *piece);
    void *context;
};
void mutant_pieces(struct fsdp_engine *engine,
                   void (*tell)(const struct mutant_visit *v,
                                const struct fsdp_piece *piece));

/* After each load that succeeds, `change` sees every piece, and may write to
 * what it points to. */
void mutant_after_load(struct fsdp_engine *engine,
                       void (*change)(const struct fsdp_piece *piece));

/*
 * Values of `kind` that the engine gives back while holding is on stay live
 * until mutant_let_go, or until just before destroy.
 */
void mutant_hold(struct fsdp_env *env, struct fsdp_engine *engine,
                 uint32_t kind);
void mutant_holding(bool on);
void mutant_let_go(void);
/* All of them, until END. */
void mutant_hold_pass(struct fsdp_env *env, struct fsdp_engine *engine,
                      uint32_t kind);

/* After END all ranks meet in a collective of this kind that moves nothing. */
void mutant_communicate_at_end(struct fsdp_engine *engine, uint32_t kind);

/* What is refused as INVALID at these points is answered with OK. */
void mutant_forgive(struct fsdp_engine *engine,
                    bool (*forgives)(uint32_t point));

/* From a point at which this is true until the next END gradients are
 * averaged to twice what they are. */
void mutant_disturb(struct fsdp_env *env, struct fsdp_engine *engine,
                    bool (*disturbs)(uint32_t point, int status));

/* In every pass another value of `kind` is live, as large as all shards of
 * this rank together. */
void mutant_ballast(struct fsdp_env *env, struct fsdp_engine *engine,
                    uint32_t kind);

/* Waits with this name are forgotten. */
void mutant_forget_wait(struct fsdp_env *env, const char *edge);

/* Natural data through a small workload on three ranks or more, in a scenario
 * that makes no mistakes, flat. And that with several microbatches a step. */
bool mutant_natural(const struct run_case *c);
bool mutant_accumulates(const struct run_case *c);
/* Natural data through an MLP whose shards are all filled. */
bool mutant_mlp(const struct run_case *c);
/* mutant_mlp that makes every mistake. */
bool mutant_misuse(const struct run_case *c);
/* mutant_mlp that only trains, one microbatch a step, each layer a unit, flat,
 * ranks folded in order. */
bool mutant_train(const struct run_case *c);
/* mutant_train with SGD, fully sharded over 3 or 4 ranks. */
bool mutant_plain(const struct run_case *c);
/* Matrices whose rows do not divide, in one unit, sharded parameter by
 * parameter: over 4 and 7 ranks some own none. */
bool mutant_rows(const struct run_case *c);
/* A small MLP under AdamW that saves its shards, and loads them. */
bool mutant_resume(const struct run_case *c);
/* Gradients of a small MLP are clipped. */
bool mutant_clips(const struct run_case *c);
/* mutant_train with more than one shard and more than one replica. */
bool mutant_hybrid(const struct run_case *c);
/* Gathers and reductions run ahead; the second: in both dimensions. */
bool mutant_ahead(const struct run_case *c);
bool mutant_hybrid_ahead(const struct run_case *c);

#endif
