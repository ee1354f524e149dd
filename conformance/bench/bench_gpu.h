/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_gpu.h - what the files of `bench gpu` share.
 */
#ifndef FSDP_CTS_BENCH_GPU_H
#define FSDP_CTS_BENCH_GPU_H

#include "bench/bench.h"
#include "bench/bench_life.h"

/* bench_gpu_steps.c: a large model, what a unit costs, memory. */
int bench_gpu_steps(struct bench_plan *plan, const struct bench_engine *engine);
/* Those models; ends with a NULL name. */
const struct bench_model *bench_gpu_models(bool small);

#endif
