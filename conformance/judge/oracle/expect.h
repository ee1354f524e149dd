/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect.h - what a case must show, computed in closed form from the model's
 * description, its call sequence and the options alone; never from what an
 * engine reported. This is the oracle.
 */
#ifndef FSDP_CTS_EXPECT_H
#define FSDP_CTS_EXPECT_H

#include "record/record.h"
#include "script/script.h"

/* Whose arithmetic a record is of: the suite's own, where every bit is
 * specified, or another, of which bounds are asked. */
enum expect_profile {
    EXPECT_F32_FMA = 0,
    EXPECT_OWN = 1,
};

/* Of a unit: its own, or the options', or what these are by default. None is
 * FSDP_DTYPE_NONE. */
struct expect_dtypes {
    uint32_t param, grad, accumulate, reduce, sum;
    /* Of a replay with a mistake: what each replica's sum is rounded to before
     * replicas meet. FSDP_DTYPE_NONE: to nothing. */
    uint32_t between;
};

/* What a gradient is multiplied by: before it is sent, in the dtype in which
 * microbatches add up; and behind the fold. */
struct expect_factors {
    float before, behind;
};

struct expect_unit {
    struct expect_dtypes dtype;
    struct expect_factors factor;
    float divide;    /* its divide factor */
    uint64_t numel;  /* m_u */
    uint64_t chunk;  /* a rank's shard, with its padding */
    uint64_t padded; /* chunk * S: on the wire */
    uint64_t whole;  /* of an unsharded copy: padded, or numel (packs) */
    /* The same of its gradient: flat, with the places of what is frozen; per
     * parameter, of trainable parameters alone. 0: nothing is trainable. */
    uint64_t grad_numel, grad_chunk, grad_padded, grad_whole;
    /* A state's elements: grad_chunk; flat, with a frozen parameter, those that
     * are trainable, and of the rank that has most of them. */
    uint64_t state;
    bool has_holes;                   /* that case */
    bool freezes;                     /* a parameter of it is frozen */
    bool trains;                      /* not all of them are */
    bool shard_on_host, step_on_host; /* offloaded */
};

/* Elements [first, first + n) of a parameter, owned by shard `shard` at
 * `local` in it. */
struct expect_part {
    uint32_t parameter;
    uint64_t first, n, local;
};

/* What an action of a script must show. */
struct expect_event {
    const struct script_action *action;
    struct record_sequence seen;   /* collectives, in order */
    struct record_sequence ahead;  /* and what a cancelled pass may add */
    uint64_t rest[RECORD_N_KINDS]; /* bytes that are live behind it */
    struct record_hosted hosted;   /* copies */
    bool *reduced; /* [n_units], of a look: has gradients that were reduced */
    /* A step, or a pass that was given one and has reduced something; of such a
     * pass [n_units], which it has stepped; else NULL. */
    bool steps;
    bool *stepped;
    const struct expect *as; /* what is trained behind it: expect_at */
};

struct expect {
    const struct run_case *c;
    const struct fsdp_model *model;
    const struct fsdp_units *units;
    struct fsdp_options options;
    uint32_t replicas, shards; /* R, S */

    bool packs; /* per parameter, S > 1: parameters do not lie on the wire as
                 * they do in a unit's unsharded copy */

    struct expect_unit
        *unit; /* [n_units], and an empty one for what is in no unit */
    /* [n_parameters]; n_units for a parameter that is ignored */
    uint32_t *unit_of_parameter;
    /* [n_parameters]: flat, where the parameter begins in its unit's flat
     * parameter; per parameter, where its block begins in a shard, and how
     * long a block is (flat: 0). */
    uint64_t *offset, *block;
    uint64_t *grad_offset; /* the same in the gradient */
    bool *shared;   /* [n_parameters]: has another name, or is one. What is one
                     * has the places of its original, and is in no part */
    bool *stepped;  /* [n_parameters]: trainable, in a unit that is trained */
    uint64_t total; /* M */
    /* What a training pass makes of a parameter, [n_parameters]: how often its
     * module has a backward; bit b: that leaves a gradient in microbatch b;
     * whether a forward asks for it. And of a unit, [n_units]: whether it has
     * a backward window and something trainable, so that it is reduced and
     * stepped. */
    uint32_t *backwards;
    uint8_t *has_gradient;
    bool *seen;
    bool *trained;
    uint64_t states;        /* elements of one state of all units */
    uint32_t fullest;       /* the shard that has so many */
    uint64_t resting;       /* elements of all shards of one rank */
    uint64_t largest;       /* elements of the largest unsharded copy */
    uint64_t largest_bytes; /* bytes of that which has most of them */

    /* The collectives of one step, in order (all its microbatches, a cancelled
     * pass before them, an evaluation after them), and those after the last
     * step. `shard` communicates nothing. */
    struct record_sequence step;
    struct record_sequence end;
    /* All-gathers that a cancelled pass may have made beyond those in `step`,
     * as far ahead as the options let it: the first of these, or more of
     * them, in this order, or none. */
    struct record_sequence ahead;

    /* Bytes, over the whole run. Exact for the strict profile (no prefetch,
     * nothing in flight); with prefetch they are the bound, and `step` says
     * which collectives there are, not their order. */
    uint64_t peak[RECORD_N_KINDS]; /* of each kind alone */
    uint64_t peak_parameters;      /* PARAM_SHARD + PARAM_FULL */
    uint64_t peak_full;            /* PARAM_FULL alone */
    uint64_t peak_grads;           /* GRAD_FULL alone */
    uint64_t peak_engine;          /* all kinds of the device but ACTIVATION */
    /* The same with each range in whole lines of 64 bytes, which is as storage
     * is aligned. Of the strict profile alone. */
    uint64_t peak_storage;
    struct record_rest rest;     /* after shard and after every step */
    struct record_hosted hosted; /* copies of one step, as `step` */

    /* Of a case that plays a script of its own: its actions, as many as the
     * case has steps. Then there is no `step`, `end` and `ahead`. */
    struct script script;
    struct expect_event *event;
    uint32_t n_events;
    /* Where it freezes or thaws parameters: after each action that does so,
     * this expect with what depends on what is trained, which is its own;
     * else there is none. And what is frozen, [n_parameters]. */
    struct expect **set;
    uint32_t n_sets;
    bool *frozen;
    const uint8_t *idle; /* the caller's, while it is made */

    /* The unsharded run with the same key, and other records of this run by
     * case id (NULL if there is none). */
    const struct record *baseline;
    const struct record *(*lookup)(void *context, const char *id);
    void *lookup_context;

    /* Of the record, set by the caller. */
    uint32_t profile; /* enum expect_profile */
    bool any_fold;    /* ranks may meet in any order: none is declared */
    bool late_states; /* they come with the first step, and have no padding */
};

enum {
    /* Ranks that a case may have. No world has more than WORLD_MAX_RANKS: of
     * larger cases bytes and collectives can be computed, folds cannot. */
    EXPECT_MAX_RANKS = 65536
};

/*
 * Who looks on while the oracle walks what rests, and then a step: what
 * happens, in its order. A function that is NULL is not called. What an engine
 * that runs ahead may add to the peaks is a bound, no moment, and not seen.
 */
struct expect_watch {
    /* Bytes of a kind become live, or dead: a range, or all of a kind; on the
     * host those of RECORD_HOST + kind. */
    void (*live)(void *context, uint32_t kind, uint64_t bytes, bool lives);
    void (*collective)(void *context, const struct record_collective *c);
    /* A unit's window opens, before it is gathered; or closes, and the unit is
     * resharded, before its gradient is reduced. */
    void (*window)(void *context, uint32_t unit, bool opens, bool backward);
    /* A point: after what opens at it, before what closes. Behind it, if it is
     * a PRE point, the model computes. */
    void (*point)(void *context, uint32_t point, uint32_t module);
    void *context;
};

/*
 * Computes everything but baseline and lookup, which the caller sets. The
 * case, the model and the units are borrowed until the release.
 *
 * INVALID: a case, a model or units that the oracle has no rules for (an
 * unknown layout, a tie across units, another dtype than float32, a window
 * that never closes). NOMEM.
 *
 * A case that does not train (OPTIONS, DISAGREE) communicates nothing and has
 * only what rests: its step and its end are empty.
 */
int expect_make(const struct run_case *c, const struct fsdp_model *model,
                const struct fsdp_units *units, struct expect *out);
/* The same for a model whose passes leave some parameters alone (`idle`: bits
 * of data.h; NULL: none). */
int expect_make_idle(const struct run_case *c, const struct fsdp_model *model,
                     const struct fsdp_units *units, const uint8_t *idle,
                     struct expect *out);
/* The same, and `watch` (NULL: nobody) looks on. */
int expect_make_watched(const struct run_case *c,
                        const struct fsdp_model *model,
                        const struct fsdp_units *units, const uint8_t *idle,
                        const struct expect_watch *watch, struct expect *out);
void expect_release(struct expect *e); /* any state */

/* Where element i of parameter p lies among its unit's shards, one behind the
 * other, as on the wire: in shard place / chunk, at place % chunk. Flat: in
 * the flat parameter. */
uint64_t expect_place(const struct expect *e, uint32_t p, uint64_t i);

/* Whether a point is one before a module computes. */
bool expect_is_pre(uint32_t point);
/* Whether module m's points are those of unit u: its unit, or one that owns a
 * parameter of it. */
bool expect_is_of(const struct expect *e, uint32_t module, uint32_t u);
/* A unit's first module, "(root)" for the root; of one that has none, its first
 * parameter. NULL: it has neither. */
const char *expect_unit_name(const struct expect *e, uint32_t u);
/* Whether p is in no unit: no engine has anything of it. */
bool expect_is_ignored(const struct expect *e, uint32_t p);

/* The parameter that p is another name of, or p itself. */
uint32_t expect_original(const struct expect *e, uint32_t p);

/* A gradient that the model leaves: that of the module of `parameter` in its
 * backward number `backward` of a pass. */
struct expect_use {
    uint32_t parameter, backward;
};
/* Those that add up to the gradient of p, an original, in microbatch b, in this
 * order. Returns how many there are; at most `most` of them are written. */
uint32_t expect_uses(const struct expect *e, uint32_t p, uint32_t b,
                     uint32_t most, struct expect_use *out);

/* The dtype that buffer b rests in: its own, if that is of integers. */
uint32_t expect_buffer_dtype(const struct expect *e, uint32_t b);

/* What holds behind action i of a script, of all that depends on what is
 * trained: layouts of gradients, states, uses. */
const struct expect *expect_at(const struct expect *e, uint32_t i);

/* Not frozen: it has states. In the beginning, of a script that changes it. */
bool expect_is_trainable(const struct expect *e, uint32_t p);
/* The same on the wire of a reduction. */
uint64_t expect_place_of_gradient(const struct expect *e, uint32_t p,
                                  uint64_t i);
/* Whether anything of the case is offloaded. */
bool expect_is_offloaded(const struct expect *e);
/* Bytes of states, of the device, that rank k has less than what all the peaks
 * and `rest` say, which are of the rank that has most. */
uint64_t expect_states_less(const struct expect *e, uint32_t k);
/* Bytes of a kind that rank k has live between actions, where that rank has
 * `most`. Of states that are on the device, or on the host, alone it may have
 * fewer than k. */
uint64_t expect_rest_of(const struct expect *e, uint32_t k, uint32_t kind,
                        const uint64_t most[static RECORD_N_KINDS]);
/* Rank k's peak_storage: that of a rank that has fewer states may be larger,
 * because each of them is in whole lines. */
uint64_t expect_peak_storage(const struct expect *e, uint32_t k);

/* The parts that shard index s of the shard dimension owns, parameters
 * ascending, none of them empty. Sets *n; *out is malloc'ed, the caller's.
 * NOMEM, INVALID: no such shard. */
int expect_parts(const struct expect *e, uint32_t s, struct expect_part **out,
                 uint32_t *n);

/* Folds x[0..world-1] in the case's fold over the mesh: within the shard group
 * first, then across replicas. The world has at most WORLD_MAX_RANKS. `place`
 * is the element's (expect_place); the ring's owner depends on it. The judge's
 * own loop. */
float expect_fold(const struct expect *e, uint32_t unit, uint64_t place,
                  const float *x);
/* x[0..world-1] as it goes over the wire, folded, scaled: what a reduction
 * makes of the unit's element, in the unit's dtypes. */
float expect_reduce(const struct expect *e, uint32_t unit, uint64_t place,
                    const float *x, struct expect_factors factor);
/* What each replica's ranks have of it before replicas meet, on the wire. */
void expect_partials(const struct expect *e, uint32_t unit, uint64_t place,
                     const float *x, struct expect_factors factor,
                     float partial[WORLD_MAX_RANKS]);
/* The loss is folded as gradients are, as an element that rank 0 owns, and
 * multiplied by 1 / world. */
float expect_fold_loss(const struct expect *e, const float *x);

#endif
