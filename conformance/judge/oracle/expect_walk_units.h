/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect_walk_units.h - a walk in progress: what is unsharded, pending, reduced
 * and live at this moment, and what each call does to that; and what the walk
 * asks of the layout. Internal to expect*.c.
 */
#ifndef FSDP_CTS_EXPECT_WALK_UNITS_H
#define FSDP_CTS_EXPECT_WALK_UNITS_H

#include "judge/oracle/expect_walk.h"

/* What is said of a unit (enum fsdp_knob). */
struct walk_knobs {
    bool sync, all_reduce, reshard_forward, reshard_backward;
};

struct walk_unit {
    struct walk_knobs knob, next_knob; /* of this pass; of the next one */
    bool unsharded;
    uint32_t dtype; /* of what is unsharded */
    bool pending;   /* has an unsharded gradient that is live */
    bool reduced;   /* has a gradient shard that is live */
    bool stepped;   /* in this pass, or the last one */
    bool partial;   /* has a sum over shards that replicas did not meet for */
};

struct walk {
    const struct expect *e;
    struct walk_unit *unit;        /* [n_units] */
    bool *accumulated;             /* [n_parameters]: in the pending gradient */
    uint64_t live[RECORD_N_KINDS]; /* bytes, as all that follows */
    uint64_t stored[RECORD_N_KINDS]; /* the same, each range in whole lines */
    uint64_t peak[RECORD_N_KINDS], peak_parameters, peak_engine, peak_storage;
    /* Of an engine that gathers early, which has `early` bytes more. */
    uint64_t early_full, early_parameters, early_engine;
    struct {
        const struct expect_stop *stop; /* NULL: at rest */
        uint32_t n;                     /* of those of its sequence */
        uint32_t at;                    /* the stop that is passed */
    } pass;
    bool step_set, steps; /* the next pass, this pass has been given a step */
    struct record_sequence *out;
    struct record_hosted *hosted;
    const struct expect_watch *watch; /* NULL: nobody looks on */
};

/* Elements of parameter p that shard s has. */
uint64_t expect_share(const struct expect *e, uint32_t p, uint32_t s);
/* Fills e->states, e->fullest and the state of each unit. */
void expect_find_states(struct expect *e);

/* States that the optimizer has of an element. */
uint32_t expect_walk_states(const struct expect *e);
/* Bytes of so many elements. */
uint64_t expect_walk_bytes(uint32_t dtype, uint64_t elements);
/* A copy to the device, to the host. */
void expect_walk_bring(struct walk *w, uint64_t bytes);
void expect_walk_take(struct walk *w, uint64_t bytes);
/* Bytes of storage of so many: whole lines. */
uint64_t expect_walk_in_lines(uint64_t bytes);

/* The kind, where it is: on the host, or not. */
uint32_t expect_walk_at(bool host, uint32_t kind);
/* A range of so many elements comes to be live. */
void expect_walk_grow(struct walk *w, uint32_t kind, uint32_t dtype,
                      uint64_t elements);

void expect_walk_shrink(struct walk *w, uint32_t kind, uint32_t dtype,
                        uint64_t elements);
/* A collective over the unit's chunks. NOMEM. */
int expect_walk_communicate(struct walk *w, uint32_t kind, uint32_t dim,
                            uint32_t u, uint32_t dtype);

/* Of one unit; what is unsharded already stays so. NOMEM. */
int expect_walk_unshard(struct walk *w, uint32_t u, uint32_t dtype);
void expect_walk_reshard(struct walk *w, uint32_t u);
void expect_walk_reshard_each(struct walk *w);
/* Its backward window closes, and it is reduced, and stepped, if this pass was
 * given a step. NOMEM. */
int expect_walk_reduce(struct walk *w, uint32_t u);
/* Whether it will be: replicas meet for it, too. */
bool expect_walk_steps(const struct walk *w, uint32_t u);

/* All that has a gradient is stepped: a shard that rests elsewhere is brought
 * to where that is done, and back. */
void expect_walk_step(struct walk *w);

/* As after shard; and what `set` changes, of one unit or of all. */
void expect_walk_set_knobs(struct walk *w);
void expect_walk_set(struct walk *w, uint32_t unit, uint32_t knob, float value);

/* zero_grad, and what a cancel does beyond it. */
void expect_walk_drop_gradients(struct walk *w);
void expect_walk_cancel(struct walk *w);

/* Points of the first `part` of 8 parts of a sequence. */
uint32_t expect_walk_part(const struct walk *w, uint32_t index, uint32_t part);

/* A pass begins: what was set holds. Then points [from, to) of a sequence, on
 * microbatch b. Or both, of the first `part` of its 8 parts. INVALID: the model
 * has no such sequence; NOMEM. */
void expect_walk_begin(struct walk *w);
int expect_walk_points(struct walk *w, uint32_t index, uint32_t from,
                       uint32_t to, uint32_t b);
int expect_walk_sequence(struct walk *w, uint32_t index, uint32_t part,
                         uint32_t b);

/* Behind the first `at` points of a sequence that were passed: the units of
 * the same phase that may have been gathered for the windows that come next.
 * Those that are unsharded then are not counted. INVALID, NOMEM. */
int expect_walk_ahead(struct walk *w, uint32_t index, uint32_t at);

/* Adds to the peaks of a walk what running ahead may add. */
void expect_walk_allow_ahead(const struct expect *e, struct walk *w);

#endif
