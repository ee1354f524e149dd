/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixed_engine_testing.h - a model of three modules, each a unit, whose
 * gradients are drawn; and its training by hand, on one rank that plays all
 * ranks.
 */
#ifndef FSDP_CTS_MIXED_ENGINE_TESTING_H
#define FSDP_CTS_MIXED_ENGINE_TESTING_H

#include <fsdp/arith/cast.h>
#include <fsdp/engine.h>

enum {
    MIXED_UNITS = 3,
    MIXED_PARAMETERS = 5,
    MIXED_MOST = 15, /* elements of the largest parameter */
    MIXED_STEPS = 3,
    MIXED_GROUPS = 3, /* the last is empty */
};

#define MIXED_LR  0.125f
#define MIXED_ANY UINT64_MAX

extern const uint32_t mixed_numel[MIXED_PARAMETERS];
extern const uint32_t mixed_module[MIXED_PARAMETERS];
extern const struct fsdp_model mixed_model;

/* All dtypes of a unit. */
struct mixed_policy {
    uint32_t param, grad, accumulate, reduce, sum;
};

struct mixed_case {
    uint32_t extent[2]; /* replicate, shard */
    uint32_t layout;
    uint32_t microbatches, sync; /* bit m: microbatch m is reduced */
    bool strict;                 /* else two gathers ahead and two in flight */
    bool own;                    /* policies are given unit by unit */
    float scale;                 /* of the loss; 0: none */
    bool overflows;              /* one element of one rank overflows, in one
                                    step */
    bool clips;                  /* clip is called, and unscales in place of the
                                    step */
    float predivide, divide;     /* 0: as usual */
    uint32_t optimizer;          /* with two groups, unless it is SGD */
    struct mixed_policy policy[MIXED_UNITS];
};

/* What an engine is given in such a case. It must not be moved. */
struct mixed_options {
    struct fsdp_units units;
    struct fsdp_options options;
    uint32_t own[5][MIXED_UNITS];
};
void mixed_options_make(const struct mixed_case *c, struct mixed_options *out);

/* The gradient that a rank computes, before any rounding. */
struct mixed_when {
    uint32_t step, microbatch;
};
float mixed_gradient(const struct mixed_case *c, const struct mixed_when *when,
                     uint32_t rank, uint32_t p, uint32_t i);
/* False for one parameter on some ranks: they compute no gradient for it. */
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

/* The most bytes of a kind that are live at once on a rank over a training in
 * the strict profile; MIXED_ANY: the number is not prescribed. */
uint64_t mixed_peak(const struct mixed_case *c, uint32_t rank, uint32_t kind);

#endif
