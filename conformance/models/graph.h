/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.h - a random model: a tree of modules, calls of them, units. What is
 * drawn depends on the seed alone; which part of it is kept, on the size.
 *
 * Size "random" is all of it. "x" and 14 hexadecimal digits is a part: a bit
 * for each module, call and group that is kept, so that a smaller graph of
 * the same seed has a name, too (a failing one is made smaller that way).
 * "ties", and "t" with the digits, are the same with parameters that are tied:
 * pairs of one shape within a unit. In "units", and "u" with the digits, some
 * parameters are in another unit than their module, or in none; "both", and
 * "b" with the digits, has this and ties.
 *
 * A module that is dropped leaves its children to its parent; a call that is
 * dropped leaves the calls within it to the call around it; a group that is
 * dropped has its modules join the root's. So all bits are independent.
 */
#ifndef FSDP_CTS_GRAPH_H
#define FSDP_CTS_GRAPH_H

#include "batch.h"
#include "models/model_build.h"

enum {
    GRAPH_MODULES = 16, /* drawn; bits 0..14 of the size keep 1..15 */
    GRAPH_CALLS = 32,   /* bits 15..46 */
    GRAPH_GROUPS = 8,   /* bits 47..54; group g has bit g mod 8 */
    GRAPH_BITS = 56,    /* bit 55: units have a reshard of their own */
    GRAPH_TIES = 56,    /* this bit: parameters may be tied */
    GRAPH_UNITS = 57,   /* this bit: parameters may have other units */
    GRAPH_USES = 4,     /* calls of one module in one sequence, at most */
    GRAPH_PARAMETERS = 64,
    GRAPH_OF_MODULE = 4,
    GRAPH_OWN_UNITS = 3, /* units that belong to no module, at most */
    GRAPH_MOST_UNITS = GRAPH_MODULES + GRAPH_OWN_UNITS,
};

enum graph_kind {
    GRAPH_BLOCK = 0, /* has children; may add x0 W to the output */
    GRAPH_LINEAR = 1,
    GRAPH_BIAS = 2,
    GRAPH_MLP = 3,
    GRAPH_NORM = 4,
    GRAPH_GELU = 5, /* no parameter */
    GRAPH_HEAD = 6, /* the last call of every sequence: output and loss */
    GRAPH_N_KINDS = 7,
};

/* Features that a graph may have; bits. */
enum graph_feature {
    GRAPH_REUSED = 1u << 0,       /* a module is called twice in training */
    GRAPH_UNUSED = 1u << 1,       /* a module with parameters is not called */
    GRAPH_NO_BACKWARD = 1u << 2,  /* a module is called without a backward */
    GRAPH_IDLE = 1u << 3,         /* no gradient in every microbatch */
    GRAPH_ROUTED = 1u << 4,       /* no gradient in some microbatches */
    GRAPH_UNSEEN = 1u << 5,       /* no forward asks for a parameter */
    GRAPH_EMPTY = 1u << 6,        /* a parameter without elements */
    GRAPH_NESTED = 1u << 7,       /* a window within another unit's */
    GRAPH_SHARED_UNIT = 1u << 8,  /* a unit over several modules */
    GRAPH_WITHOUT_UNIT = 1u << 9, /* a module of no unit */
    GRAPH_BARE_UNIT = 1u << 10,   /* a unit without elements */
    GRAPH_OTHER_EVAL = 1u << 11,  /* evaluation calls other modules */
    GRAPH_OWN_RESHARD = 1u << 12, /* units that reshard otherwise */
    GRAPH_IDLE_UNIT = 1u << 13,   /* a unit that training never needs */
    GRAPH_TIED = 1u << 14,        /* parameters that are tied */
    GRAPH_OWN_UNIT = 1u << 15,    /* a parameter in another unit than its
                                   * module */
    GRAPH_IGNORED = 1u << 16,     /* a parameter that is in no unit */
    GRAPH_N_FEATURES = 17,
};
extern const char *const graph_feature_name[GRAPH_N_FEATURES];

enum {
    GRAPH_TRAIN = 1u, /* bits: the sequences that a call is in */
    GRAPH_EVAL = 2u
};

struct graph_parameter {
    char name[24];
    uint32_t n_dims;
    uint64_t shape[FSDP_MAX_DIMS];
    float scale;   /* of initial values */
    uint8_t idle;  /* as workload_model.idle */
    int32_t tied;  /* number of its original in the model; -1: none */
    uint32_t unit; /* FSDP_NO_UNIT: it is ignored */
};

struct graph_module {
    uint32_t kind;
    int32_t parent;
    uint32_t hidden;
    uint32_t group;
    bool in_unit;  /* false: in no unit, if it has no parameter */
    bool detached; /* called without a backward */
    uint32_t n_parameters, first; /* first: in the model */
    struct graph_parameter parameter[GRAPH_OF_MODULE];
    uint32_t drawn; /* its number before anything was dropped */
};

struct graph_call {
    uint32_t module;
    int32_t around; /* the call that this one is made in; -1: the root's */
    uint32_t in;    /* GRAPH_TRAIN, GRAPH_EVAL */
};

struct graph {
    uint32_t width; /* columns of the rows that flow from call to call */
    uint32_t samples;
    uint32_t n_modules, n_calls;
    struct graph_module module[GRAPH_MODULES];
    struct graph_call call[GRAPH_CALLS];
    uint32_t n_units;
    uint32_t unit_of_module[GRAPH_MODULES];
    bool own_reshard;
    bool own_units;                     /* some parameters say their own */
    uint32_t reshard[GRAPH_MOST_UNITS]; /* of groups as drawn, then of units */
};

/* All bits of a size; false: this is no size. "random" has all bits set but
 * GRAPH_TIES and GRAPH_UNITS. */
bool graph_size_bits(const char *size, uint64_t *bits);
void graph_size_text(uint64_t bits, char size[16]);

/* Draws the graph of a seed, and drops what `bits` do not keep. */
void graph_draw(uint64_t seed, uint64_t bits, struct graph *out);
uint32_t graph_features(const struct graph *g);
/* The bits of a size that drop anything at all of the graph that this seed
 * draws. */
uint64_t graph_used_bits(uint64_t seed);

/* Whether a module's points concern unit u: it is the unit of the module, or of
 * one of its parameters. */
bool graph_is_of(const struct graph *g, uint32_t module, uint32_t u);

/* The points of a sequence: forward, (train) backward, and those of recomputed
 * calls (enum workload_recompute: the parts of a graph are the calls of its
 * leaves). Returns how many: at most GRAPH_POINTS. */
enum {
    GRAPH_POINTS = 6 * GRAPH_CALLS
};
uint32_t graph_sequence(const struct graph *g, uint32_t which,
                        uint32_t recompute, uint32_t point[GRAPH_POINTS],
                        uint32_t module[GRAPH_POINTS]);

/* The graph workload's own workload_model. */
struct graph_model {
    struct workload_model base;
    struct model_build *build;
    struct batch batch;
    struct graph graph;
    char size[16];
    uint8_t idle[GRAPH_PARAMETERS];
    uint32_t module_of[GRAPH_PARAMETERS];
};

/* graph_model.c */
int graph_describe(const struct workload_config *config,
                   struct workload_model **out, struct fsdp_error *error);
void graph_release(struct workload_model *model);
int graph_wrap(const struct workload_model *model, struct wrap_units *out);
/* Input and target of samples [first, first + n) of a step. */
void graph_data(const struct graph_model *m, uint32_t step, uint64_t first,
                uint64_t n, float *x, float *target);

#endif
