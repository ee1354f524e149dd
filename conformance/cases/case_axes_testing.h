/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_axes_testing.h - the axes along which cases differ, and which
 * combinations of their values exist. The proof that all pairs of values occur
 * (case_pairs_test.c) goes by them.
 *
 * A pick is one value of every axis. Scenarios that do not train are not values
 * of AXIS_SCENARIO: a pair of values that occurs only where nothing is trained
 * would not have been tested.
 */
#ifndef FSDP_CTS_CASE_AXES_TESTING_H
#define FSDP_CTS_CASE_AXES_TESTING_H

#include "cases/case.h"

/* The axes with the most values come first: the pairs of the first two set how
 * many cases there must be. */
enum case_axis {
    AXIS_MODEL = 0, /* workload, size and data */
    AXIS_WORLD = 1, /* ranks and replicas */
    AXIS_WRAP = 2,
    AXIS_SCENARIO = 3,
    AXIS_STRATEGY = 4,
    AXIS_SYNC = 5,
    AXIS_FOLD = 6,
    AXIS_OPTIMIZER = 7,
    AXIS_KEEP_ROOT = 8,
    AXIS_AHEAD = 9,   /* prefetch forward and backward, reduces in flight */
    AXIS_LAYOUT = 10, /* must be the last one: pairs_mark relies on it */
    N_AXES = 11,
};

enum {
    AXIS_MAX_VALUES = 32,
    AXIS_WORD_BYTES = 48
};

#define AXIS_OPEN UINT32_MAX /* a pick's axis that has no value yet */

/* replicas = 0: a world of one dimension, and the strategy says which one. Any
 * other world is for the hybrid strategies. */
struct axis_world {
    uint32_t ranks, replicas;
};

struct case_axes {
    uint32_t n[N_AXES]; /* values of each axis */
    /* How ids spell the value. The default, which ids leave out, has a name of
     * its own here. */
    char word[N_AXES][AXIS_MAX_VALUES][AXIS_WORD_BYTES];
    struct axis_world world[AXIS_MAX_VALUES];
};

extern const char *const axis_name[N_AXES];

/* The axes of the manifest; and those of a world size that the manifest
 * lacks. */
void axes_of_manifest(struct case_axes *out);
void axes_of_world(uint32_t ranks, struct case_axes *out);

/* NULL if nothing is wrong with the values picked so far; else why no case
 * has them together. */
const char *axes_excluded(const struct case_axes *axes,
                          const uint32_t pick[N_AXES]);

/* False if c is not on the axes: it has another scenario or size, or its
 * precision, factors or offload are not the usual ones. */
bool axes_pick(const struct case_axes *axes, const struct run_case *c,
               uint32_t pick[N_AXES]);

/* The id of a case with these values, all picked; without weight decay. */
void axes_id(const struct case_axes *axes, const uint32_t pick[N_AXES],
             char id[CASE_ID_BYTES]);

#endif
