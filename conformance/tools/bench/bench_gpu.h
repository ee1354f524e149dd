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
    uint32_t blocks; /* that were looked for; 0: the size had them */
    char size[32];
};

/* bench_gpu_steps.c: a large model, what a unit costs, memory. */
int bench_gpu_steps(struct bench_plan *plan, const struct bench_engine *engine);
/* Those models; ends with a NULL name. A size that ends in "-" lacks its number
 * of blocks. */
const struct bench_model *bench_gpu_models(bool small);

/* bench_largest.c: out is the model, with a size that has all: as many blocks
 * as fit with that many ranks (plan->ranks[k]), which is looked for once. Its
 * name is NULL where not even one does, or the driver does not say. */
int bench_gpu_size(struct bench_plan *plan, const struct bench_engine *engine,
                   const struct bench_model *model, uint32_t k,
                   struct bench_sized *out);

#endif
