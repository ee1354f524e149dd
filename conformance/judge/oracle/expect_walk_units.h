/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect_walk_units.h - a walk in progress: what is unsharded, pending, reduced
 * and live at this moment, and what each call does to that; and what the walk
 * asks of the layout. Internal to expect*.c.
 */
#ifndef FSDP_CTS_EXPECT_WALK_UNITS_H
#define FSDP_CTS_EXPECT_WALK_UNITS_H

#include "judge/oracle/expect_walk.h"

/* The settings of a unit (enum fsdp_knob). */
struct walk_knobs {
    bool sync, all_reduce, reshard_forward, reshard_backward;
};

struct walk_unit {
    struct walk_knobs knob, next_knob; /* in this pass; from the next one on */
    bool unsharded;
    uint32_t dtype; /* of its unsharded copy */
    bool pending;   /* has an unsharded gradient that is live */
    bool reduced;   /* has a gradient shard that is live */
    bool stepped;   /* was stepped in this pass, or in the last one */
    bool partial;   /* has a sum over shards that replicas have not added up */
};

struct walk {
    const struct expect *e;
    struct walk_unit *unit; /* [n_units] */
    bool *accumulated; /* [n_parameters]: is in the unit's pending gradient */
    uint64_t live[RECORD_N_KINDS];   /* bytes, as all that follows */
    uint64_t stored[RECORD_N_KINDS]; /* bytes of storage, each range in whole
                                        lines */
    uint64_t peak[RECORD_N_KINDS], peak_parameters, peak_engine, peak_storage;
    /* Peaks of an engine that gathers early, and so has more bytes of early
     * copies. */
    uint64_t early_full, early_parameters, early_engine;
    struct {
        const struct expect_stop *stop; /* NULL: at rest */
        uint32_t n;  /* stops of the sequence that is being walked */
        uint32_t at; /* the stop that is being passed */
    } pass;
    bool step_set, steps; /* step_set: the next pass was given a step; steps:
                             this pass was */
    struct record_sequence *out;
    struct record_hosted *hosted;
    const struct expect_watch *watch; /* NULL: nothing observes the walk */
};

/* How many elements of parameter p are in shard s. */
uint64_t expect_share(const struct expect *e, uint32_t p, uint32_t s);
/* Fills e->states, e->fullest and the `state` of each unit. */
void expect_find_states(struct expect *e);

/* How many states the optimizer keeps for each element. */
uint32_t expect_walk_states(const struct expect *e);
/* Bytes of so many elements. */
uint64_t expect_walk_bytes(uint32_t dtype, uint64_t elements);
/* Counts a copy to the device (bring), or to the host (take). */
void expect_walk_bring(struct walk *w, uint64_t bytes);
void expect_walk_take(struct walk *w, uint64_t bytes);
/* The bytes that so many bytes take in storage, in whole lines. */
uint64_t expect_walk_in_lines(uint64_t bytes);

/* The kind as it is counted where it lies: on the host, or on the device. */
uint32_t expect_walk_at(bool host, uint32_t kind);
/* A range of so many elements becomes live. */
void expect_walk_grow(struct walk *w, uint32_t kind, uint32_t dtype,
                      uint64_t elements);

void expect_walk_shrink(struct walk *w, uint32_t kind, uint32_t dtype,
                        uint64_t elements);
/* Notes a collective over the unit's chunks. NOMEM. */
int expect_walk_communicate(struct walk *w, uint32_t kind, uint32_t dim,
                            uint32_t u, uint32_t dtype);

/* Gathers one unit, if it is not unsharded already. NOMEM. */
int expect_walk_unshard(struct walk *w, uint32_t u, uint32_t dtype);
void expect_walk_reshard(struct walk *w, uint32_t u);
void expect_walk_reshard_each(struct walk *w);
/* The unit's backward window has closed: reduces the unit, and steps it if this
 * pass was given a step. NOMEM. */
int expect_walk_reduce(struct walk *w, uint32_t u);
/* Whether such a pass will step the unit: replicas must add up in it, too. */
bool expect_walk_steps(const struct walk *w, uint32_t u);

/* Steps every unit that has a gradient. A shard that rests elsewhere is brought
 * to where it is stepped, and back. */
void expect_walk_step(struct walk *w);

/* Sets all settings as they are after shard; and one setting, of one unit or of
 * all. */
void expect_walk_set_knobs(struct walk *w);
void expect_walk_set(struct walk *w, uint32_t unit, uint32_t knob, float value);

/* What zero_grad does; and what a cancel does in addition. */
void expect_walk_drop_gradients(struct walk *w);
void expect_walk_cancel(struct walk *w);

/* How many points the first `part` eighths of a sequence have. */
uint32_t expect_walk_part(const struct walk *w, uint32_t index, uint32_t part);

/* Begins a pass: settings that were made now hold. _points passes the points
 * [from, to) of a sequence with microbatch b. _sequence does both, for the
 * first `part` eighths of the sequence. INVALID: the model has no such
 * sequence; NOMEM. */
void expect_walk_begin(struct walk *w);
int expect_walk_points(struct walk *w, uint32_t index, uint32_t from,
                       uint32_t to, uint32_t b);
int expect_walk_sequence(struct walk *w, uint32_t index, uint32_t part,
                         uint32_t b);

/* Behind the first `at` points of a sequence: finds the units that may have
 * been gathered for the windows that come next in the same phase, but for those
 * that are unsharded there anyway. INVALID, NOMEM. */
int expect_walk_ahead(struct walk *w, uint32_t index, uint32_t at);

/* Adds to the peaks of a walk what running ahead may add. */
void expect_walk_allow_ahead(const struct expect *e, struct walk *w);

#endif
