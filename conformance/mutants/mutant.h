/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutant.h - an engine that is wrong in one way, so that the suite proves that
 * it notices. A mutant is a correct engine in which one thing is changed; it
 * lists exactly the requirements that must fail as first causes. Requirements
 * that need those are blocked; if another one fails, or one of the list does
 * not, that is an error of the suite.
 *
 * A mutant is a row of FAMILY_mutants.c, one file a family of fault. If the kit
 * can do the fault, the row says all of it (`fault` and what follows it); else
 * it names functions that stand in the place of the correct engine's.
 */
#ifndef FSDP_CTS_MUTANT_H
#define FSDP_CTS_MUTANT_H

#include "cases/case.h"

/* The faults that the kit can do by itself, with the row's `of` and `to` as
 * arguments. */
enum mutant_fault_kind {
    MUTANT_NO_FAULT = 0,
    /* The option at offset `of` in struct fsdp_options, a uint32_t, is set to
     * `to`; a float can be set to 0. */
    MUTANT_SETS,
    /* The array at offset `of` in struct fsdp_units, in which units give values
     * of their own, is removed, and so is the one at `to` (0: no other). */
    MUTANT_UNTELLS,
    /* Operators of kind `of` are left out, or run twice. */
    MUTANT_LEAVES_OUT_OP,
    MUTANT_REPEATS_OP,
    /* Collectives of kind `of` are left out, or issued twice. */
    MUTANT_LEAVES_OUT_COLLECTIVE,
    MUTANT_REPEATS_COLLECTIVE,
    /* Collectives of kind `of` bring zeros. */
    MUTANT_BRINGS_ZEROS,
    /* After END all ranks meet in a collective of this kind that moves
     * nothing. */
    MUTANT_MEETS_AT_END,
    /* All-gathers of the first units bring, in their first elements, what the
     * unit's first all-gather brought. */
    MUTANT_GATHERS_STALE,
    /* Values of this kind that the engine gives back stay live until the
     * model has reached point `to`, or, with MUTANT_NEVER, until just before
     * destroy. */
    MUTANT_HOLDS,
    /* In every pass another value of this kind is live, as large as all
     * shards of this rank together. */
    MUTANT_HAS_BALLAST,
    /* Live ranges of this kind are declared as ranges of kind `to`, or, with
     * FSDP_N_KINDS, not at all. */
    MUTANT_MISNAMES,
    /* This function of the engine (MUTANT_CALL) answers OK where it should
     * refuse with the status `to`. */
    MUTANT_FORGIVES,
    /* From a point on, until the next END, averaged gradients are twice as
     * large as they should be. */
    MUTANT_DOUBLES_AVERAGE,
};

enum {
    MUTANT_NEVER = UINT8_MAX /* no point of a pass */
};

struct mutant_told;

struct mutant {
    const char *name;     /* "no-average" */
    const char *text;     /* the fault, in one sentence */
    const char *evidence; /* where it was seen: "pytorch/pytorch#180665" */
    const char *kills;    /* ids of requirements, separated by spaces, sorted */
    /* The cases that show the fault: the first `n_cases` (0 counts as 3) of the
     * manifest that play `script` and for which `in` is true are run; NULL
     * stands for any script, or any case. They run with the engine named
     * `engine`. NULL: the one that the command names, or the reference; then no
     * case that runs ahead is among them. */
    struct {
        const char *script;
        bool (*in)(const struct run_case *c);
        uint32_t n_cases;
        const char *engine;
        bool mixed;    /* only cases in mixed precision; else only others */
        bool factors;  /* only cases with factors; else only others */
        bool offload;  /* only offloaded cases; else only others */
        bool places;   /* both: a case that is offloaded, and its twin */
        bool isolated; /* where the kernel limits what ranks may do */
    } shows;

    /* ---- The fault; all that is 0 or NULL is as it should be ---- */

    /* A fault that the kit does while `when` is true; NULL: always. */
    struct {
        uint32_t kind; /* enum mutant_fault_kind */
        int64_t of, to;
    } fault;
    bool (*when)(void);
    const char *forgets; /* waits with this name are left out */
    /* Claims that the engine no longer makes, separated by spaces. It still
     * does what they are about, but should now refuse it. */
    const char *drops;

    /* These change what passes through: the options that shard is given; the
     * piece of each visit; a collective and an operator before they are
     * issued; each float of a reduce-scatter's input and of an all-gather's
     * output; and, after a load that succeeds, what a piece points to. */
    void (*options)(struct fsdp_options *o);
    void (*piece)(struct fsdp_piece *piece);
    void (*collective)(struct fsdp_collective *c);
    void (*op)(struct fsdp_op *op);
    float (*contributed)(float x);
    float (*gathered)(float x);
    void (*loaded)(const struct fsdp_piece *piece);
    /* Is called in place of the model's own (struct fsdp_model). */
    int (*initial)(void *context, uint32_t p, uint64_t first, uint64_t n,
                   void *out);

    /* Changes the copies of model and units that shard is given in their place
     * (struct mutant_told in mutant_kit.h). If it does not return OK, shard
     * returns that status. */
    int (*told)(struct mutant_told *t, const struct fsdp_env *env);

    /* Called before each step of the optimizer, and behind each zero_grad. */
    void (*before_step)(void);
    void (*behind_zero)(void);

    /* Functions that replace the correct ones. Data members are not read. */
    struct fsdp_engine calls;
    struct fsdp_device device;
    struct fsdp_comm comm;

    /* Forgets the run before: `_Thread_local` state of the family. */
    void (*forget)(void);
    /* Changes the env in any other way. */
    void (*change_env)(struct fsdp_env *env);
    /* Replaces the world's own communicator: the recorder, which wraps it, does
     * not see what is done here (mutant_below). */
    int (*carried)(void *self, struct fsdp_stream *stream,
                   const struct fsdp_collective *c);
};

/* Whether `script` and `in` of the row's `shows` admit the case. */
bool mutant_is_in(const struct mutant *m, const struct run_case *c);

/* Changes the env and the engine that the driver gives out, as the mutant
 * says. Called on every rank after open and before shard, with copies. */
void mutant_apply(const struct mutant *m, struct fsdp_env *env,
                  struct fsdp_engine *engine);

/* Called before that: puts `carried` into what the recorder is about to
 * wrap. */
void mutant_apply_below(const struct mutant *m, struct fsdp_env *env);

/* The claims without those that the mutant drops: at most `room` - 1, and NULL.
 */
void mutant_claims(const struct mutant *m, const char *const *claims,
                   const char **out, uint32_t room);

/* All mutants, generated from all families; NULL-ended, sorted by name. */
extern const struct mutant *const mutants[];
/* NULL: there is none of that name, or the name is NULL. */
const struct mutant *mutant_named(const char *name);

#endif
