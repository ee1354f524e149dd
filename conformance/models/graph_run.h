/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_run.h - what a run of a graph has on its device. Private to
 * graph_compute.c and graph_backward.c.
 */
#ifndef FSDP_CTS_GRAPH_RUN_H
#define FSDP_CTS_GRAPH_RUN_H

#include "compute.h"
#include "graph_internal.h"

enum {
    GRAPH_NORM_EPS_INVERSE = 100000
};

/* The storage of one call. */
struct graph_kept {
    uint32_t module;
    float *x; /* its input */
    float *pre, *act;
    float *stat;
};

struct workload_run {
    const struct graph_model *model;
    struct compute compute;
    uint64_t rows;
    uint32_t microbatch;
    float *host; /* input, target, zeros */
    struct graph_kept kept[GRAPH_CALLS + 1];
    uint32_t depth;
    uint32_t recomputed; /* the call that is recomputed next, if any */
    float *x0, *target, *added, *y, *dout, *dy, *f, *wide, *row_loss, *scrap;
};

uint64_t graph_width(const struct workload_run *run);
/* Parameter i of a module; its gradient, NULL where this microbatch leaves the
 * parameter without one. */
int graph_weight(struct workload_run *run, uint32_t module, uint32_t i,
                 const float **out);
int graph_gradient(struct workload_run *run, uint32_t module, uint32_t i,
                   float **out);

/* The backward of a call of a leaf: run->dy is the gradient of its f, and
 * run->f becomes the resulting gradient of x, to be added to dy. */
int graph_derive(struct workload_run *run, const struct graph_kept *k);

#endif
