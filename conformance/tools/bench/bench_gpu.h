/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_gpu.h - what the files of `bench gpu` share.
 */
#ifndef FSDP_CTS_BENCH_GPU_H
#define FSDP_CTS_BENCH_GPU_H

#include "tools/bench/bench.h"
#include "tools/bench/bench_life.h"

/* A model, and where its size is written. */
struct bench_sized {
    struct bench_model model;
    uint32_t blocks; /* how many were found to fit; 0: the size named its
                      * blocks */
    char size[32];
};

/* bench_gpu_steps.c: a large model, what a unit costs, memory. */
int bench_gpu_steps(struct bench_plan *plan, const struct bench_engine *engine);
/* The models of that; ends with a NULL name. A size that ends in "-" lacks its
 * number of blocks. */
const struct bench_model *bench_gpu_models(bool small);

/* bench_largest.c: sets *out to the model with a complete size: if it lacked
 * its blocks, as many as fit with that many ranks (plan->ranks[k]), which is
 * tried only once. The name is NULL if not even one block fits, or the driver
 * does not say. */
int bench_gpu_size(struct bench_plan *plan, const struct bench_engine *engine,
                   const struct bench_model *model, uint32_t k,
                   struct bench_sized *out);

#endif
