/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_axes.h - the axes along which generated cases differ, and which
 * combinations of their values exist. Private to the manifest and its test.
 *
 * A pick is one value of every axis. Scenarios that do not train are no
 * values of the axis: a pair of values that occurs only where nothing is
 * trained would not have been tested. They are in the core (manifest_core.c).
 */
#ifndef FSDP_CTS_MANIFEST_AXES_H
#define FSDP_CTS_MANIFEST_AXES_H

#include "cases/case.h"

/* The longest first: pairs of these two set how many cases there must be. */
enum manifest_axis {
    AXIS_MODEL = 0, /* workload, size and data */
    AXIS_WORLD = 1, /* ranks and replicas */
    AXIS_WRAP = 2,
    AXIS_SCENARIO = 3,
    AXIS_STRATEGY = 4,
    AXIS_SYNC = 5,
    AXIS_FOLD = 6,
    AXIS_OPTIMIZER = 7,
    AXIS_KEEP_ROOT = 8,
    AXIS_AHEAD = 9, /* prefetch forward and backward, reduces in flight */
    AXIS_LAYOUT = 10,
    N_AXES = 11,
};

/* replicas = 0: a world of one dimension; the strategy says which. Else it is
 * for the hybrid strategies. */
struct manifest_world {
    uint32_t ranks, replicas;
};

enum {
    MANIFEST_MAX_WORLDS = 256
};

struct manifest_axes {
    uint32_t n[N_AXES]; /* values of each axis */
    struct manifest_world world[MANIFEST_MAX_WORLDS];
};

/* The axes for these world sizes, ascending and no size twice; n_ranks = 0:
 * for the suite's own. INVALID: a size of 0 or over CASE_MAX_RANKS. */
int manifest_axes_make(const uint32_t *ranks, uint32_t n_ranks,
                       struct manifest_axes *out);

#define MANIFEST_OPEN UINT32_MAX /* this axis has no value yet */

/* NULL if nothing is wrong with the values picked so far; else why no case
 * has them together. */
const char *manifest_excluded(const struct manifest_axes *axes,
                              const uint32_t pick[N_AXES]);

/* The case of a whole pick that is not excluded. */
void manifest_case(const struct manifest_axes *axes,
                   const uint32_t pick[N_AXES], struct run_case *out);

/* False if c is none of the generator's: another scenario or size. */
bool manifest_pick(const struct manifest_axes *axes, const struct run_case *c,
                   uint32_t pick[N_AXES]);

/* A case with the suite's numbers for what the arguments leave open: fold
 * rank, one microbatch, SGD, wrapped by layer, 4 steps of which 2 are
 * recorded. replicas = 0: what the strategy says. */
void manifest_start(const char *workload, const char *size, uint32_t data,
                    uint32_t strategy, struct manifest_world world,
                    struct run_case *out);
/* Sets the numbers that follow from the workload, data and optimizer. */
void manifest_numbers(struct run_case *c);

/* A list that grows; a case that it has already is not added again. */
int manifest_add(struct case_list *list, const struct run_case *c);

/* manifest_core.c: the cases that were chosen by hand. */
int manifest_core(const uint32_t *ranks, uint32_t n_ranks,
                  struct case_list *list);
/* More of these, which stand behind the generated ones so that those do not
 * depend on them. n_ranks 0: the suite's own worlds. */
int manifest_ahead(uint32_t n_ranks, struct case_list *list);
/* manifest_moves.c: likewise; one layout saves, the other one loads. */
int manifest_moves(uint32_t n_ranks, struct case_list *list);
/* manifest_common.c */
int manifest_common(uint32_t n_ranks, struct case_list *list);
/* manifest_steps.c: clipping and parameter groups. */
int manifest_steps(uint32_t n_ranks, struct case_list *list);

#endif
