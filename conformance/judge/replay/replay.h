/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.h - computes from a record's own values what must follow from them:
 * from its local gradients the reduced gradient, from its gradients the next
 * weights. So every stage is judged by itself, and a fault is found where it
 * happened, however wrong its inputs were.
 */
#ifndef FSDP_CTS_REPLAY_H
#define FSDP_CTS_REPLAY_H

#include "judge/compare/compare.h"

enum {
    REPLAY_USES = 8 /* of one parameter in a pass: more are not handled */
};

/* Where the inputs of the reduction of one part are. */
struct replay_reduction {
    const struct expect *e;
    uint32_t unit;
    uint32_t parameter;
    uint64_t first; /* the part's first element */
    /* the part of the divide factor that is applied to the fold */
    float divide;
    struct expect_factors factor; /* the unit's; to try a mistake, others */
    bool predivides_each; /* to try a mistake: predivides in each microbatch */
    /* Local gradients by microbatch, use of the parameter, and rank, the uses
     * in the order in which gradients come; uses[b] is how many there are. */
    const float *grad[CASE_MAX_MICROBATCHES][REPLAY_USES][WORLD_MAX_RANKS];
    uint32_t uses[CASE_MAX_MICROBATCHES];
};

/* Adds to `pending`, for each rank, what microbatch b leaves of element i.
 * *has: pending has something already; if not, it is set. */
void replay_accumulate(const struct replay_reduction *reduction, uint32_t b,
                       uint64_t i, float pending[WORLD_MAX_RANKS], bool *has);

/* Finds the local gradients of `part` on all ranks and microbatches of its
 * step. False, with the finding, if one is not recorded. */
bool replay_reduction_find(const struct expect *e, const struct record *r,
                           const struct compare_part *part,
                           struct replay_reduction *out, struct finding *f);

/*
 * The reduced gradient of element i of the part. Gradients of microbatches
 * without sync add up on each rank. A microbatch with sync folds what has added
 * up over the mesh, multiplies it by one factor before the fold and by the
 * other behind it, and adds it to the sum of the step.
 */
float replay_reduced(const struct replay_reduction *reduction, uint64_t i);

/* Compares what r recorded as reduced, at one part, with the replay of it; to
 * be given to compare_parts. replay_reduced_holds does so in all recorded
 * steps. */
bool replay_compare_reduced(const struct expect *e, const struct record *r,
                            const struct compare_part *part, struct finding *f);
bool replay_reduced_holds(const struct expect *e, const struct record *r,
                          struct finding *f);

/* Does the least damage to a reduced gradient that the comparison must
 * notice. */
bool replay_spoil_reduced(const struct expect *e, struct record *r);

/* If the part's n recorded values `got` are known as the result of some
 * mistake, f's note says which. */
void replay_hint(const struct replay_reduction *reduction, const float *got,
                 uint64_t n, struct finding *f);

/* The name of the known mistake that gives exactly the n values `got`, of which
 * some are wrong (replay_hint.c); NULL: there is none. */
const char *replay_mistake(const struct replay_reduction *reduction,
                           const float *got, uint64_t n);

/* One element before or after an optimizer step (op.h). */
struct replay_element {
    float weight;
    float state[2]; /* momentum: v; AdamW: m, v */
};

struct replay_optimizer {
    uint32_t kind; /* enum fsdp_optimizer */
    float lr, weight_decay, momentum, beta1, beta2, eps;
    float p1, p2; /* powers of the betas, with this step's factor */
};

enum {
    /* not a group's: the numbers that the options have */
    REPLAY_OPTIONS = UINT32_MAX
};
/* Sets momentum, betas, their powers and eps as a group has them in a step. */
void replay_numbers(const struct expect *e, uint32_t group, uint32_t step,
                    struct replay_optimizer *o);
/* The optimizer as it is for a parameter in a step. */
struct replay_optimizer replay_optimizer_at(const struct expect *e,
                                            uint32_t parameter, uint32_t step);
/* The element that one step with gradient g makes of x. */
struct replay_element replay_step(const struct replay_optimizer *o,
                                  struct replay_element x, float g);

/* The values of one part before and after a step. state[s] is NULL if the
 * optimizer has no such state, and before the first step, where it is +0. */
struct replay_values {
    uint32_t n_states;
    /* false: its unit has no backward, and it stays as it is */
    bool is_stepped;
    const float *before, *gradient, *after;
    const float *state_before[2], *state_after[2];
};

/* The stage whose gradients are given to the optimizer: enum record_stage. */
uint32_t replay_stepped_stage(const struct expect *e);

/* Finds the values of a part. False, with the finding: one that there must be
 * is not recorded. */
bool replay_values_find(const struct expect *e, const struct record *r,
                        const struct compare_part *part,
                        struct replay_values *out, struct finding *f);

/* Compares weights and states after the step with what the replay makes of
 * weights, gradient and states before it; to be given to compare_parts. */
bool replay_compare_step(const struct expect *e, const struct record *r,
                         const struct compare_part *part, struct finding *f);

/* The same, but allows for the roundings of another arithmetic
 * (replay_bound.c). */
bool replay_bound_step(const struct expect *e, const struct record *r,
                       const struct compare_part *part, struct finding *f);
/* Whether `got` is, within those roundings, what a step with gradient g makes
 * of x. States that the optimizer does not have are 0 in both. */
bool replay_bound_near(const struct replay_optimizer *o, uint32_t step,
                       const struct replay_element *x, float g,
                       const struct replay_element *got);

#endif
