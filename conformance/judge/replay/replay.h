/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.h - what follows from a record's own values: the reduced gradient
 * from its local gradients, the next weights from its gradients. So every
 * stage is judged by itself, and a fault is found where it happened, however
 * wrong the values were that went in.
 */
#ifndef FSDP_CTS_REPLAY_H
#define FSDP_CTS_REPLAY_H

#include "judge/compare/compare.h"

enum {
    REPLAY_USES = 8 /* of one parameter in a pass: more are not known */
};

/* Where the inputs of one part's reduction lie. */
struct replay_reduction {
    const struct expect *e;
    uint32_t unit;
    uint32_t parameter;
    uint64_t first; /* of the part's elements */
    float divide;   /* what is left of the divide factor behind the fold */
    struct expect_factors factor; /* the unit's; a mistake's, to try it */
    bool predivides_each;         /* a mistake: with each microbatch */
    /* By microbatch, then use of the parameter, in the order in which gradients
     * come; uses[b]: how many there are. */
    const float *grad[CASE_MAX_MICROBATCHES][REPLAY_USES][WORLD_MAX_RANKS];
    uint32_t uses[CASE_MAX_MICROBATCHES];
};

/* What each rank has of element i after the gradients of microbatch b, that
 * are added to `pending` if there are any already (*has). */
void replay_accumulate(const struct replay_reduction *reduction, uint32_t b,
                       uint64_t i, float pending[WORLD_MAX_RANKS], bool *has);

/* Finds the local gradients of `part` on all ranks and microbatches of its
 * step. False, with the finding, if one is not recorded. */
bool replay_reduction_find(const struct expect *e, const struct record *r,
                           const struct compare_part *part,
                           struct replay_reduction *out, struct finding *f);

/*
 * The reduced gradient of the part's element i. Microbatches without sync add
 * up on each rank; one with sync folds what has added up over the mesh,
 * multiplies by the factors, once before and once behind it, and adds to the
 * sum of the step.
 */
float replay_reduced(const struct replay_reduction *reduction, uint64_t i);

/* Compares what r recorded as reduced, at one part, with its replay; a `check`
 * of compare_parts. And in all steps that were recorded. */
bool replay_compare_reduced(const struct expect *e, const struct record *r,
                            const struct compare_part *part, struct finding *f);
bool replay_reduced_holds(const struct expect *e, const struct record *r,
                          struct finding *f);

/* The least damage to a reduced gradient that the comparison must notice. */
bool replay_spoil_reduced(const struct expect *e, struct record *r);

/* Where `got`, the part's n recorded values, are something else that has a
 * name, f's note says so. */
void replay_hint(const struct replay_reduction *reduction, const float *got,
                 uint64_t n, struct finding *f);

/* What a known mistake is called that gives exactly the n values that were got,
 * which are not all right (replay_hint.c); NULL: none does. */
const char *replay_mistake(const struct replay_reduction *reduction,
                           const float *got, uint64_t n);

/* One element on its way through the optimizer (op.h). */
struct replay_element {
    float weight;
    float state[2]; /* momentum: v; AdamW: m, v */
};

struct replay_optimizer {
    uint32_t kind; /* enum fsdp_optimizer */
    float lr, weight_decay, momentum, beta1, beta2, eps;
    float p1, p2; /* running products, this step included */
};

enum {
    REPLAY_OPTIONS = UINT32_MAX /* no group: what the options say */
};
/* Momentum, betas, their products and eps in a step, as a group has them. */
void replay_numbers(const struct expect *e, uint32_t group, uint32_t step,
                    struct replay_optimizer *o);
/* The optimizer of a parameter in a step. */
struct replay_optimizer replay_optimizer_at(const struct expect *e,
                                            uint32_t parameter, uint32_t step);
/* What one step with gradient g makes of x. */
struct replay_element replay_step(const struct replay_optimizer *o,
                                  struct replay_element x, float g);

/* Values before and after a step at one part; state[s] is NULL where the
 * optimizer has none, and before the first step, where it is +0. */
struct replay_values {
    uint32_t n_states;
    bool is_stepped; /* a unit without a backward stays as it is */
    const float *before, *gradient, *after;
    const float *state_before[2], *state_after[2];
};

/* The gradients that the optimizer is given: enum record_stage. */
uint32_t replay_stepped_stage(const struct expect *e);

/* False, with the finding, if one that there must be is not recorded. */
bool replay_values_find(const struct expect *e, const struct record *r,
                        const struct compare_part *part,
                        struct replay_values *out, struct finding *f);

/* Compares weights and states after the step with the replay from weights,
 * gradient and states before it; a `check` of compare_parts. */
bool replay_compare_step(const struct expect *e, const struct record *r,
                         const struct compare_part *part, struct finding *f);

/* The same within the roundings of another arithmetic (replay_bound.c). */
bool replay_bound_step(const struct expect *e, const struct record *r,
                       const struct compare_part *part, struct finding *f);
/* Whether `got` is what a step with gradient g makes of x, within them; states
 * that the optimizer has not are 0 in both. */
bool replay_bound_near(const struct replay_optimizer *o, uint32_t step,
                       const struct replay_element *x, float g,
                       const struct replay_element *got);

#endif
