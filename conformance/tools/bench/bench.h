/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.h - the parts of `fsdp-cts bench`.
 */
#ifndef FSDP_CTS_BENCH_H
#define FSDP_CTS_BENCH_H

#include "tools/bench/bench_report.h"

#include <fsdp/engine.h>

enum {
    BENCH_MAX_ENGINES = 8,
    BENCH_MAX_RANKS_GIVEN = 8,
};

struct bench_engine {
    const char *label; /* its part of the names of results */
    const struct fsdp_engine *engine;
    uint32_t place; /* enum fsdp_place, of its device */
};

struct bench_plan {
    struct bench_report report;
    struct bench_engine engine[BENCH_MAX_ENGINES];
    uint32_t n_engines;
    uint32_t ranks[BENCH_MAX_RANKS_GIVEN], n_ranks;
    /* Blocks of the largest gpt that fits on GPUs; 0: not known yet. */
    uint32_t largest[BENCH_MAX_ENGINES][BENCH_MAX_RANKS_GIVEN];
    bool small; /* shapes of a GPU, to try the command */
    bool alone; /* engines alone, without the baselines beside them */
    bool sgd;   /* bench_steps: SGD in place of AdamW */
    bool mpi;   /* bench_cluster: in the world of MPI that was started */
    const char *cluster; /* the file that bench_cluster writes; NULL: none */
    const struct fsdp_engine *plain; /* the reference; engines without a device
                                      * are lent its */
    const char *text;
    uint64_t text_bytes;
    struct fsdp_error error;
};

/* The first failure of several measurements, each of which is tried. */
struct bench_failure {
    int status;
    struct fsdp_error error;
};
/* Keeps the first status that is not FSDP_OK, with plan->error, which is
 * cleared for the next measurement. A second failure is printed on stderr. */
void bench_failed(struct bench_plan *plan, struct bench_failure *failure,
                  int status);
/* Returns that status, and puts its error into the plan. */
int bench_first_failure(struct bench_plan *plan,
                        const struct bench_failure *failure);

/* Operators of each engine's device, at each level of instructions that it
 * has (FSDP_SIMD), beside plain loops and OpenBLAS. */
int bench_operators(struct bench_plan *plan);
/* All-gather, reduce-scatter and all-reduce between local processes, beside
 * memcpy. */
int bench_collectives(struct bench_plan *plan);
/* Engines on GPUs, all in processes of their own: GEMM beside cuBLAS, other
 * operators beside the card's copy rate; a large model's step; what a unit
 * costs the host; memory as the driver sees it. */
int bench_gpu(struct bench_plan *plan);
/* Fills in the place of all engines. */
int bench_places(struct bench_plan *plan);
/* Whole steps beside the bare model, memory, and what a unit costs. */
int bench_steps(struct bench_plan *plan);
/* Where the time of those steps, and of those on GPUs, went: shares of matrix
 * products, attention, other operators, communication and idle time. */
int bench_shares(struct bench_plan *plan);
/* Describes this machine in a file for `plan`, and measures steps of the first
 * engine there. */
int bench_cluster(struct bench_plan *plan);

#endif
