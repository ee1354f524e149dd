/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutant_kit.h - what mutants have in common: the real communicator, device
 * and engine of this rank, how far the run has come, values on the device, and
 * the cases that are small enough to show a mutant.
 *
 * All state belongs to a thread, as a rank is a thread or a process.
 * mutant_apply resets it before each run: the kit's own state by itself, a
 * family's through `forget` of struct mutant.
 */
#ifndef FSDP_CTS_MUTANT_KIT_H
#define FSDP_CTS_MUTANT_KIT_H

#include "mutants/mutant.h"

#include <stddef.h>

/* For MUTANT_SETS: the offset of an option. */
#define MUTANT_OPTION(field) offsetof(struct fsdp_options, field)
/* For MUTANT_UNTELLS: the offset of an array. */
#define MUTANT_UNITS(field) offsetof(struct fsdp_units, field)
/* For MUTANT_FORGIVES: the offset of a function of the engine. */
#define MUTANT_CALL(function) offsetof(struct fsdp_engine, function)

enum {
    MUTANT_MOST_PARAMETERS = 512 /* of a model for `told` */
};

struct mutant_real {
    struct fsdp_env *env; /* where errors are told */
    const struct fsdp_comm *comm;
    const struct fsdp_device *device;
    struct fsdp_engine engine;
    uint32_t rank, world, replicas, shards; /* of this rank's run */
    /* The arguments of the last call of shard. */
    const struct fsdp_model *model;
    const struct fsdp_units *units;
    uint32_t layout;
};
extern _Thread_local struct mutant_real mutant_real;
/* The world's own env, which the recorder was about to wrap. */
extern _Thread_local struct fsdp_env mutant_below;

/* `fault.of` of this mutant's row, for a function that rows share. */
int64_t mutant_of(void);
/* Replaces the message of the last refusal. */
void mutant_say(const char *message);

/* How far the run has come: noted as the engine is called, before it
 * answers. */
struct mutant_now {
    uint32_t lives;     /* calls of shard, this one included */
    uint32_t steps;     /* calls of step that have returned */
    uint32_t sequence;  /* the one of the last BEGIN */
    uint32_t point;     /* the last one, whatever the answer was */
    uint32_t index;     /* its module or sequence */
    int status;         /* what the engine answered to it */
    bool in_pass;       /* BEGIN was answered with OK; no END or CANCEL yet */
    bool backward;      /* the last PRE point was a backward's */
    uint32_t parameter; /* the last one that param was called for */
    bool keeps;         /* FSDP_KNOB_RESHARD_AFTER_BACKWARD was last set to 0 */
    /* Weights have changed since copies were kept, so that these are stale;
     * until the next pass has ended. */
    bool stale;
};
extern _Thread_local struct mutant_now mutant_now;
/* For `when`, in this order: a pass has begun; none has; in a pass, and the
 * last point is one of a forward; the same, and copies are stale; this is rank
 * 0; this is another rank; the last BEGIN was an evaluation's; the last point
 * is a CANCEL. */
bool mutant_is_in_pass(void);
bool mutant_is_outside_pass(void);
bool mutant_is_in_forward(void);
bool mutant_finds_copies(void);
bool mutant_is_rank_0(void);
bool mutant_is_not_rank_0(void);
bool mutant_is_evaluating(void);
bool mutant_is_cancelling(void);

/* The mutant's communicator and device: copies of the real ones, put into env
 * by the first call. Their `self` is still the real one's. */
struct fsdp_comm *mutant_comm(struct fsdp_env *env);
struct fsdp_device *mutant_device(struct fsdp_env *env);

/* The bytes of all parameters, in float32. */
size_t mutant_model_bytes(const struct fsdp_model *model);

/* For mutant_apply alone: does what `fault`, `when` and `forgets` say. */
void mutant_fault_apply(const struct mutant *m, struct fsdp_env *env,
                        struct fsdp_engine *engine);

/* The copies that shard is given if a mutant has `told`. They live until the
 * next shard. */
struct mutant_told {
    struct fsdp_model model;
    struct fsdp_units units;
    const struct fsdp_options *options;
    /* The model's flags and aliases of its parameters; it points to these
     * arrays. */
    uint32_t flags[MUTANT_MOST_PARAMETERS];
    int32_t alias[MUTANT_MOST_PARAMETERS];
    /* Likewise the units of parameters, if units are given by parameter. */
    uint32_t unit[MUTANT_MOST_PARAMETERS];
};
/* Lets units be given by parameter from now on, at first as they are. */
void mutant_told_units(struct mutant_told *t);

/* These hand a call on to the real communicator, device and model. */
int mutant_communicate(struct fsdp_stream *stream,
                       const struct fsdp_collective *c);
/* As mutant_communicate, but past the recorder, which does not see it. */
int mutant_carry(struct fsdp_stream *stream, const struct fsdp_collective *c);
int mutant_run(struct fsdp_stream *stream, const struct fsdp_op *op);
int mutant_initial(void *context, uint32_t p, uint64_t first, uint64_t n,
                   void *out);
/* For `initial`: zeros. */
int mutant_zeros(void *context, uint32_t p, uint64_t first, uint64_t n,
                 void *out);
/* For `piece` of struct mutant: shows one more piece before the one that is
 * being changed. */
void mutant_tell(const struct fsdp_piece *piece);

/* The values that a collective is about to send, to be changed. */
float *mutant_input(const struct fsdp_collective *c);
/* Copy floats from the device and to it; finished on return. */
int mutant_get(struct fsdp_stream *stream, const void *from, uint64_t n,
               float *to);
int mutant_put(struct fsdp_stream *stream, const float *from, uint64_t n,
               void *to);
/* x = change(x) for n floats of the device. */
int mutant_each(struct fsdp_stream *stream, void *p, uint64_t n,
                float (*change)(float x));
/* x without the 16 bits that bf16 lacks. */
float mutant_as_bf16(float x);
/* At least `bytes` of memory at the thread's *room, zeroed and mapped when
 * first asked for: large `_Thread_local` arrays would be cleared for every
 * thread that any engine starts. It is not from the heap, which is watched.
 * NULL: no memory. */
void *mutant_room(void **room, size_t bytes);
/* Allocates as many live unsharded bytes as the whole model has, and frees
 * them. */
int mutant_take_whole(void **all);
void mutant_drop_whole(void *all);
/* For a communicator: so many bytes are live during each broadcast. */
int mutant_whole_beside_broadcast(void *self, struct fsdp_stream *stream,
                                  const struct fsdp_collective *c);
/* x = change(x) for each reduced gradient of this rank. */
int mutant_each_gradient(struct fsdp_sharded *s, float (*change)(float x));
/* look(piece) for every piece of this rank. */
int mutant_each_piece(struct fsdp_sharded *s,
                      void (*look)(const struct fsdp_piece *piece));

/* How many elements of parameter p, which has rows, a shard has room for. */
uint64_t mutant_block(uint32_t p);
/* The unit that parameter p belongs to; how many elements all parameters of a
 * unit have, without second names; and how many one flat shard of them has. */
uint32_t mutant_unit(uint32_t p);
uint64_t mutant_unit_numel(uint32_t unit);
uint64_t mutant_chunk(uint32_t unit);
/* Makes an additional collective of this kind in the shard group, with zeros
 * and the size of the unit; its result is not used. */
int mutant_meet(uint32_t kind, uint32_t unit);

/* Natural data through a small workload on three ranks or more, in a scenario
 * without wrong calls, flat. The second: the same with several microbatches a
 * step. */
bool mutant_natural(const struct run_case *c);
bool mutant_accumulates(const struct run_case *c);
/* Natural data through an MLP without frozen parameters, whose shards all have
 * elements. */
bool mutant_mlp(const struct run_case *c);
/* mutant_mlp that makes every wrong call; that cancels a pass; that evaluates
 * with sharded parameters. */
bool mutant_misuse(const struct run_case *c);
bool mutant_cancels(const struct run_case *c);
bool mutant_evaluates(const struct run_case *c);
/* mutant_mlp that only trains, one microbatch a step, each layer a unit, flat,
 * ranks folded in order. The same with AdamW; on one rank. */
bool mutant_train(const struct run_case *c);
bool mutant_adamw(const struct run_case *c);
bool mutant_alone(const struct run_case *c);
/* mutant_train with SGD, fully sharded over 3 or 4 ranks; over 3 alone, by
 * which not every number can be divided exactly. */
bool mutant_plain(const struct run_case *c);
bool mutant_three(const struct run_case *c);
/* Matrices whose rows do not divide, in one unit, sharded parameter by
 * parameter: over 4 and 7 ranks some own none. The second: over up to 4
 * ranks. */
bool mutant_rows(const struct run_case *c);
bool mutant_few_rows(const struct run_case *c);
/* A small MLP under AdamW that saves its shards, and loads them. */
bool mutant_resume(const struct run_case *c);
/* Gradients of a small MLP are clipped. */
bool mutant_clips(const struct run_case *c);
/* Options that must be refused are given. */
bool mutant_bad_options(const struct run_case *c);
/* mutant_train with more than one shard and more than one replica. */
bool mutant_hybrid(const struct run_case *c);
/* Gathers and reductions run ahead; the second: in a world with replicas. */
bool mutant_ahead(const struct run_case *c);
bool mutant_hybrid_ahead(const struct run_case *c);
/* A few steps over several shards, whose processes are weighed. */
bool mutant_weighed(const struct run_case *c);
/* Any case of an MLP; one of these without prefetch in the forward; one of
 * these that is also fully sharded. */
bool mutant_any_mlp(const struct run_case *c);
bool mutant_in_turn(const struct run_case *c);
bool mutant_sharded(const struct run_case *c);
/* Cases that play the named script; and those that are also one of these
 * three. */
bool mutant_plays(const struct run_case *c, const char *script);
bool mutant_plays_mlp(const struct run_case *c, const char *script);
bool mutant_plays_in_turn(const struct run_case *c, const char *script);
bool mutant_plays_sharded(const struct run_case *c, const char *script);

#endif
