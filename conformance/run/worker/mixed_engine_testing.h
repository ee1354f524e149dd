/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixed_engine_testing.h - a model of three modules, each a unit, whose
 * gradients are drawn; and its training by hand, on one rank that plays all.
 */
#ifndef FSDP_CTS_MIXED_ENGINE_TESTING_H
#define FSDP_CTS_MIXED_ENGINE_TESTING_H

#include <fsdp/arith/cast.h>
#include <fsdp/engine.h>

enum {
    MIXED_UNITS = 3,
    MIXED_PARAMETERS = 5,
    MIXED_MOST = 15, /* elements of the largest */
    MIXED_STEPS = 3,
    MIXED_GROUPS = 3, /* the last is empty */
};

#define MIXED_LR  0.125f
#define MIXED_ANY UINT64_MAX

extern const uint32_t mixed_numel[MIXED_PARAMETERS];
extern const uint32_t mixed_module[MIXED_PARAMETERS];
extern const struct fsdp_model mixed_model;

/* A unit's dtypes, all said. */
struct mixed_policy {
    uint32_t param, grad, accumulate, reduce, sum;
};

struct mixed_case {
    uint32_t extent[2]; /* replicate, shard */
    uint32_t layout;
    uint32_t microbatches, sync; /* bit m: microbatch m is reduced */
    bool strict;                 /* else two ahead, two in flight */
    bool own;                    /* policies are given unit by unit */
    float scale;                 /* of the loss; 0: none */
    bool overflows;              /* one element of one rank, in one step */
    bool clips;                  /* which unscales, in place of the step */
    float predivide, divide;     /* 0: as usual */
    uint32_t optimizer;          /* of two groups, unless it is SGD */
    struct mixed_policy policy[MIXED_UNITS];
};

/* What such a case gives an engine; it stays where it was made. */
struct mixed_options {
    struct fsdp_units units;
    struct fsdp_options options;
    uint32_t own[5][MIXED_UNITS];
};
void mixed_options_make(const struct mixed_case *c, struct mixed_options *out);

/* The gradient that a rank computes, before it is rounded to anything. */
struct mixed_when {
    uint32_t step, microbatch;
};
float mixed_gradient(const struct mixed_case *c, const struct mixed_when *when,
                     uint32_t rank, uint32_t p, uint32_t i);
/* One parameter has none on some ranks. */
bool mixed_has_gradient(uint32_t p, uint32_t rank);

struct mixed_truth {
    float weight[MIXED_PARAMETERS][MIXED_MOST];
    float gradient[MIXED_PARAMETERS][MIXED_MOST]; /* reduced, of the step */
    float moment[2][MIXED_PARAMETERS][MIXED_MOST];
    float power[MIXED_GROUPS][2]; /* of the betas */
};
void mixed_truth_make(struct mixed_truth *t); /* initial values */
/* False: a gradient was not finite, and no weight has changed. */
bool mixed_truth_step(struct mixed_truth *t, const struct mixed_case *c,
                      uint32_t step);

/* Bytes of a kind that are live at once on a rank in the strict profile, at
 * most over a training; MIXED_ANY: not said. */
uint64_t mixed_peak(const struct mixed_case *c, uint32_t rank, uint32_t kind);

#endif
