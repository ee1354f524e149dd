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

/* Whose arithmetic a record shows: the suite's, where every bit is specified,
 * or the engine's own, which is held to bounds. */
enum expect_profile {
    EXPECT_F32_FMA = 0,
    EXPECT_OWN = 1,
};

/* The dtypes of a unit: its own, or else the options', or else their defaults.
 * None of them is FSDP_DTYPE_NONE. */
struct expect_dtypes {
    uint32_t param, grad, accumulate, reduce, sum;
    /* Only for the replay of a mistake: the dtype to which each replica's sum
     * is rounded before replicas add up. FSDP_DTYPE_NONE: it is not rounded. */
    uint32_t between;
};

/* The factors of a gradient: `before` is applied before it is sent, in the
 * dtype in which microbatches add up; `behind` is applied to the fold. */
struct expect_factors {
    float before, behind;
};

struct expect_unit {
    struct expect_dtypes dtype;
    struct expect_factors factor;
    float divide;    /* the unit's divide factor */
    uint64_t numel;  /* m_u */
    uint64_t chunk;  /* a rank's shard, with its padding */
    uint64_t padded; /* chunk * S: elements on the wire */
    /* elements of an unsharded copy: padded, or numel (packs) */
    uint64_t whole;
    /* The same for the unit's gradient: flat, with places for frozen
     * parameters; per parameter, of trainable parameters alone. 0: nothing is
     * trainable. */
    uint64_t grad_numel, grad_chunk, grad_padded, grad_whole;
    /* Elements of one state: grad_chunk; flat, with a frozen parameter, only
     * the trainable elements, of the rank that has most of them. */
    uint64_t state;
    bool has_holes;                   /* flat, with a frozen parameter */
    bool freezes;                     /* some parameter of it is frozen */
    bool trains;                      /* not all of its parameters are frozen */
    bool shard_on_host, step_on_host; /* the unit is offloaded */
};

/* Elements [first, first + n) of a parameter. Shard `shard` owns them, and has
 * them from its element `local` on. */
struct expect_part {
    uint32_t parameter;
    uint64_t first, n, local;
};

/* What an action of a script must show. */
struct expect_event {
    const struct script_action *action;
    struct record_sequence seen; /* the collectives, in their order */
    /* all-gathers that a cancelled pass may add */
    struct record_sequence ahead;
    uint64_t rest[RECORD_N_KINDS]; /* bytes that are live behind it */
    /* copies between device and host */
    struct record_hosted hosted;
    bool *reduced; /* [n_units], of a look: whether the unit has gradients that
                      were reduced */
    /* steps: this is a step, or a pass that was given a step and has reduced
     * something. stepped: of such a pass, [n_units], the units that it steps;
     * else NULL. */
    bool steps;
    bool *stepped;
    /* with what is trained behind the action: expect_at */
    const struct expect *as;
};

struct expect {
    const struct run_case *c;
    const struct fsdp_model *model;
    const struct fsdp_units *units;
    struct fsdp_options options;
    uint32_t replicas, shards; /* R, S */

    bool packs; /* per parameter, S > 1: the order of parameters on the wire is
                   another than in a unit's unsharded copy */

    /* [n_units], and an empty one behind them for what is in no unit */
    struct expect_unit *unit;
    /* [n_parameters]; n_units for an ignored parameter */
    uint32_t *unit_of_parameter;
    /* [n_parameters]. Flat: where the parameter begins in its unit's flat
     * parameter, and 0. Per parameter: where its block begins in a shard, and
     * how long a block is. */
    uint64_t *offset, *block;
    uint64_t *grad_offset; /* the same offsets for gradients */
    /* [n_parameters]: it has another name, or is another name. The latter has
     * the places of its original, and is in no part */
    bool *shared;
    bool *stepped; /* [n_parameters]: it is trainable, in a unit that is trained
                    */
    uint64_t total; /* M */
    /* What a training pass does with each parameter, [n_parameters]: how many
     * backwards its module has; in which microbatches b (bit b) these leave a
     * gradient; whether a forward uses it. And with each unit, [n_units]:
     * whether it has a backward window and something trainable, so that it is
     * reduced and stepped. */
    uint32_t *backwards;
    uint8_t *has_gradient;
    bool *seen;
    bool *trained;
    uint64_t states;        /* elements of one state, of all units together */
    uint32_t fullest;       /* the shard that has most of them */
    uint64_t resting;       /* elements of all of one rank's shards */
    uint64_t largest;       /* elements of the largest unsharded copy */
    uint64_t largest_bytes; /* bytes of the unsharded copy that has most */

    /* The collectives of one step in their order: a cancelled pass, all
     * microbatches, an evaluation; and the collectives after the last step.
     * `shard` communicates nothing. */
    struct record_sequence step;
    struct record_sequence end;
    /* All-gathers that a cancelled pass may have made in addition to those in
     * `step`, because the options let it run ahead: none of these, the first,
     * or more of them in this order. */
    struct record_sequence ahead;

    /* Peaks in bytes, over the whole run. They are exact for the strict profile
     * (no prefetch, nothing in flight). With prefetch they are bounds, and
     * `step` has the right collectives in an order that need not be the
     * engine's. */
    uint64_t peak[RECORD_N_KINDS]; /* of each kind alone */
    uint64_t peak_parameters;      /* PARAM_SHARD + PARAM_FULL */
    uint64_t peak_full;            /* PARAM_FULL alone */
    uint64_t peak_grads;           /* GRAD_FULL alone */
    uint64_t peak_engine;          /* all kinds of the device but ACTIVATION */
    /* The same in storage, each range in whole lines of 64 bytes, to which
     * storage is aligned. Only for the strict profile. */
    uint64_t peak_storage;
    struct record_rest rest; /* after shard and after every step */
    /* copies of one step, which has the collectives of `step` */
    struct record_hosted hosted;

    /* If the case plays a script of its own: one event for each action, as many
     * as the case has steps. `step`, `end` and `ahead` are then empty. */
    struct script script;
    struct expect_event *event;
    uint32_t n_events;
    /* One for each action that freezes or thaws parameters: this expect, with
     * what depends on what is trained behind the action; it owns only that.
     * None if no action does so. frozen: [n_parameters]. */
    struct expect **set;
    uint32_t n_sets;
    bool *frozen;
    const uint8_t *idle; /* the caller's; used only while the expect is made */

    /* The unsharded run with the same key; and the record of another case of
     * this run, by its id (NULL: there is none). */
    const struct record *baseline;
    const struct record *(*lookup)(void *context, const char *id);
    void *lookup_context;

    /* What the caller knows of the record. */
    uint32_t profile; /* enum expect_profile */
    /* no order in which ranks add up is declared: any is right */
    bool any_fold;
    bool late_states; /* states appear with the first step, without padding */
};

enum {
    /* The most ranks that a case may have. A world has at most WORLD_MAX_RANKS;
     * for larger cases bytes and collectives can be computed, folds cannot. */
    EXPECT_MAX_RANKS = 65536
};

/*
 * An observer of the oracle's walk through what rests and then through a step.
 * It is told what happens, in its order. A function that is NULL is not called.
 * What running ahead may add to the peaks is a bound and has no moment, so it
 * is not told.
 */
struct expect_watch {
    /* Bytes of a kind become live, or are live no more: one range, or all of
     * the kind. Host memory is RECORD_HOST + kind. */
    void (*live)(void *context, uint32_t kind, uint64_t bytes, bool lives);
    void (*collective)(void *context, const struct record_collective *c);
    /* A unit's window opens, and the unit is then gathered; or it closes, and
     * the unit is resharded, and then its gradient is reduced. */
    void (*window)(void *context, uint32_t unit, bool opens, bool backward);
    /* A point is passed: all that opens there has opened, nothing that closes
     * there has closed. Behind a PRE point the model computes. */
    void (*point)(void *context, uint32_t point, uint32_t module);
    void *context;
};

/*
 * Computes everything but baseline and lookup, which the caller sets. The case,
 * the model and the units must live until the release.
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
/* The same for a model with passes that do not use some parameters (`idle`:
 * bits of data.h; NULL: all are used). */
int expect_make_idle(const struct run_case *c, const struct fsdp_model *model,
                     const struct fsdp_units *units, const uint8_t *idle,
                     struct expect *out);
/* The same, with an observer (`watch`; NULL: none). */
int expect_make_watched(const struct run_case *c,
                        const struct fsdp_model *model,
                        const struct fsdp_units *units, const uint8_t *idle,
                        const struct expect_watch *watch, struct expect *out);
void expect_release(struct expect *e); /* any state */

/* The place of element i of parameter p among its unit's shards, which lie one
 * behind the other on the wire: in shard place / chunk, at place % chunk. In
 * the flat layout it is the index in the flat parameter. */
uint64_t expect_place(const struct expect *e, uint32_t p, uint64_t i);

/* Whether the point comes before a module computes. */
bool expect_is_pre(uint32_t point);
/* Whether the points of module m are points of unit u: m is in the unit, or the
 * unit owns a parameter of m. */
bool expect_is_of(const struct expect *e, uint32_t module, uint32_t u);
/* The name of a unit's first module, "(root)" for the root; of a unit without
 * modules, that of its first parameter. NULL: it has neither. */
const char *expect_unit_name(const struct expect *e, uint32_t u);
/* Whether p is in no unit, so that engines know nothing of it. */
bool expect_is_ignored(const struct expect *e, uint32_t p);

/* The parameter that p is another name of, or p itself. */
uint32_t expect_original(const struct expect *e, uint32_t p);

/* A gradient that the model leaves: of the module of `parameter`, in the
 * module's backward number `backward` of a pass. */
struct expect_use {
    uint32_t parameter, backward;
};
/* The gradients that add up to the gradient of p, an original, in microbatch b,
 * in the order in which they do. Returns how many there are; writes at most
 * `most` of them. */
uint32_t expect_uses(const struct expect *e, uint32_t p, uint32_t b,
                     uint32_t most, struct expect_use *out);

/* The dtype of buffer b at rest: its own, if that is one of integers. */
uint32_t expect_buffer_dtype(const struct expect *e, uint32_t b);

/* The expect that holds behind action i of a script: layouts of gradients,
 * states and uses depend on what is trained there. */
const struct expect *expect_at(const struct expect *e, uint32_t i);

/* Whether p is not frozen, so that it has states; if the script changes that,
 * at its beginning. */
bool expect_is_trainable(const struct expect *e, uint32_t p);
/* The same place among gradient shards, on the wire of a reduction. */
uint64_t expect_place_of_gradient(const struct expect *e, uint32_t p,
                                  uint64_t i);
/* Whether the case offloads anything. */
bool expect_is_offloaded(const struct expect *e);
/* Bytes of states on the device by which rank k has less than the rank that has
 * most, whose states are in all peaks and in `rest`. */
uint64_t expect_states_less(const struct expect *e, uint32_t k);
/* Bytes of a kind that rank k has live between actions, where `most` are those
 * of the rank that has most. Of the states on the device alone, or on the host
 * alone, that rank may have fewer than rank k. */
uint64_t expect_rest_of(const struct expect *e, uint32_t k, uint32_t kind,
                        const uint64_t most[static RECORD_N_KINDS]);
/* Rank k's peak_storage. It may be larger on a rank with fewer states, because
 * each state takes whole lines. */
uint64_t expect_peak_storage(const struct expect *e, uint32_t k);

/* The parts that shard s of the shard dimension owns: by parameter, none
 * empty. Sets *n; *out is malloc'ed, and the caller's. NOMEM; INVALID: no such
 * shard. */
int expect_parts(const struct expect *e, uint32_t s, struct expect_part **out,
                 uint32_t *n);

/* Adds up x[0..world-1] as the case's fold does over the mesh: within each
 * shard group, then across replicas. The world has at most WORLD_MAX_RANKS.
 * `place` is the element's (expect_place), on which the owner in a ring
 * depends. This loop is the judge's own. */
float expect_fold(const struct expect *e, uint32_t unit, uint64_t place,
                  const float *x);
/* What a reduction makes of an element of the unit, in the unit's dtypes:
 * x[0..world-1] go over the wire, are added up, and scaled. */
float expect_reduce(const struct expect *e, uint32_t unit, uint64_t place,
                    const float *x, struct expect_factors factor);
/* What the ranks of each replica have of that element before replicas add up,
 * as it is on the wire. */
void expect_partials(const struct expect *e, uint32_t unit, uint64_t place,
                     const float *x, struct expect_factors factor,
                     float partial[WORLD_MAX_RANKS]);
/* Folds a loss as gradients are folded, like an element that rank 0 owns, and
 * multiplies it by 1 / world. */
float expect_fold_loss(const struct expect *e, const float *x);

#endif
