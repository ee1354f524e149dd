/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simulate.h - histories that are made up, with a step or without one, from
 * fixed seeds: how often the change points are right, as a number.
 */
#ifndef FSDP_CTS_SIMULATE_H
#define FSDP_CTS_SIMULATE_H

#include "tools/track/edivisive.h"

struct simulation {
    uint32_t series;  /* histories of each sort */
    uint32_t runs;    /* of a history */
    uint32_t samples; /* of a run */
    double noise;     /* of a sample: standard deviation, of the value */
    double drift;     /* of a run: the same for all of its samples */
    double step;      /* of the value, at one run; downwards */
    uint32_t within;  /* a step is found if it is called so many runs later */
    /* Which part of a run's drift the next run has: 0: none; 1: all of it, to
     * which its own is added, a random walk. */
    double persistence;
    uint64_t seed;
};
extern const struct simulation simulation_defaults;

struct simulation_result {
    uint32_t found;        /* of the histories with a step: called in time, once
                              and not before it */
    uint32_t false_before; /* of those: called before the step */
    uint32_t called;       /* of those without a step: called at any run */
    uint32_t exactly;      /* of those found: begins at the very run */
    uint32_t delay[64];    /* of those found: [i]: called i runs after it */
};

/* INVALID, NOMEM. */
int simulate(const struct simulation *s, const struct edivisive_options *o,
             struct simulation_result *out);

/* After how many runs a step at one run is called, in many histories. */
struct simulation_call {
    uint32_t found;  /* histories: called at any run from there on */
    uint32_t before; /* called before it */
    uint32_t half;   /* run by which half of those found were called */
    uint32_t latest; /* and all of them */
};

/* A step at run `at`, counted from 1, of s->series histories; `at` 0: none,
 * then `found` are those that were called all the same. INVALID, NOMEM. */
int simulate_step_at(const struct simulation *s,
                     const struct edivisive_options *o, uint32_t at,
                     struct simulation_call *out);

/* The medians of one history, for benchmarks and tests: x[0..runs-1]; its step
 * is at run `at`, or nowhere if that is not a run. `index` picks the history.
 */
void simulate_history(const struct simulation *s, uint32_t index, uint32_t at,
                      double *x);

#endif
