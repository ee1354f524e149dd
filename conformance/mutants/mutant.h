/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutant.h - an engine that is wrong in one way, so that the suite proves
 * that it notices. A mutant is a correct engine of which one thing is changed;
 * it lists exactly the requirements that must fail as first causes. What
 * follows from those is blocked; anything else that fails, or one of the list
 * that does not, is an error of the suite.
 *
 * A mutant is a row of FAMILY_mutants.c, one file a family of fault. The row
 * says all where the kit can do what is wrong (`fault` and what follows it);
 * else it names functions that stand in the place of the correct engine's.
 */
#ifndef FSDP_CTS_MUTANT_H
#define FSDP_CTS_MUTANT_H

#include "cases/case.h"

/* What the kit can do wrong by itself. `of` and `to` say with what. */
enum mutant_fault_kind {
    MUTANT_NO_FAULT = 0,
    /* The option at this offset of struct fsdp_options, a uint32_t, is set to
     * `to`; also a float, to 0. */
    MUTANT_SETS,
    /* What units say of their own in the array at this offset of struct
     * fsdp_units, and in that at `to` (0: no other), is not there. */
    MUTANT_UNTELLS,
    /* Operators of this kind are left out, or run twice. */
    MUTANT_LEAVES_OUT_OP,
    MUTANT_REPEATS_OP,
    /* Collectives of this kind are left out, or issued twice. */
    MUTANT_LEAVES_OUT_COLLECTIVE,
    MUTANT_REPEATS_COLLECTIVE,
    /* What collectives of this kind bring is zeros. */
    MUTANT_BRINGS_ZEROS,
    /* After END all ranks meet in a collective of this kind that moves
     * nothing. */
    MUTANT_MEETS_AT_END,
    /* All-gathers bring, for the first elements of the first units, what the
     * first all-gather of the unit brought. */
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
    /* From a point on, until the next END, gradients are averaged to twice
     * what they are. */
    MUTANT_DOUBLES_AVERAGE,
};

enum {
    MUTANT_NEVER = UINT8_MAX /* no point of a pass */
};

struct mutant_told;

struct mutant {
    const char *name;     /* "no-average" */
    const char *text;     /* what is wrong, one sentence */
    const char *evidence; /* where it was seen: "pytorch/pytorch#180665" */
    const char *kills;    /* ids, separated by spaces, sorted */
    /* The cases that show it: the first `n_cases` of the manifest that play
     * `script` and for which `in` is true (NULL: whatever it is) are run (0
     * counts as 3), with the engine of this name. NULL: the one that the
     * command names, or the reference; then no case that runs ahead is among
     * them. */
    struct {
        const char *script;
        bool (*in)(const struct run_case *c);
        uint32_t n_cases;
        const char *engine;
        bool mixed;    /* of the cases in mixed precision; else of the others */
        bool factors;  /* of those with factors; else of the others */
        bool offload;  /* of those that are offloaded; else of the others */
        bool places;   /* of both: what rests on the host, and its twin */
        bool isolated; /* where the kernel limits what ranks may do */
    } shows;

    /* ---- What is wrong; all that is 0 or NULL is as it should be ---- */

    /* Something that the kit does, where `when` is true; NULL: always. */
    struct {
        uint32_t kind; /* enum mutant_fault_kind */
        int64_t of, to;
    } fault;
    bool (*when)(void);
    const char *forgets; /* waits with this name */
    /* Claims that the engine no longer makes, separated by spaces: what it then
     * still does, it should refuse. */
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
    /* Stands before the model's own (struct fsdp_model). */
    int (*initial)(void *context, uint32_t p, uint64_t first, uint64_t n,
                   void *out);

    /* Changes the copies of model and units that shard is given in their place;
     * mutant_kit.h has more of it. What is not OK is what shard answers. */
    int (*told)(struct mutant_told *t, const struct fsdp_env *env);

    /* Before each step of the optimizer, and behind each zero_grad. */
    void (*before_step)(void);
    void (*behind_zero)(void);

    /* Functions in the place of the correct ones. Data members are not read. */
    struct fsdp_engine calls;
    struct fsdp_device device;
    struct fsdp_comm comm;

    /* Forgets the run before: `_Thread_local` state of the family. */
    void (*forget)(void);
    /* Changes the env in another way. */
    void (*change_env)(struct fsdp_env *env);
    /* Stands in the place of the world's own communicator: the recorder, which
     * wraps it, does not see what is done here (mutant_below). */
    int (*carried)(void *self, struct fsdp_stream *stream,
                   const struct fsdp_collective *c);
};

/* Whether `shows` says so of the case by `script` and `in`. */
bool mutant_is_in(const struct mutant *m, const struct run_case *c);

/* Changes the env and the engine that the driver gives out, as the mutant
 * says. Called on every rank after open and before shard, with copies. */
void mutant_apply(const struct mutant *m, struct fsdp_env *env,
                  struct fsdp_engine *engine);

/* Before that, of what the recorder is about to wrap: `carried`. */
void mutant_apply_below(const struct mutant *m, struct fsdp_env *env);

/* The claims without those that the mutant drops: at most `room` - 1, and NULL.
 */
void mutant_claims(const struct mutant *m, const char *const *claims,
                   const char **out, uint32_t room);

/* Generated from all families; NULL-ended, sorted by name. */
extern const struct mutant *const mutants[];
/* NULL: there is none of that name, or the name is NULL. */
const struct mutant *mutant_named(const char *name);

#endif
