/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_backward.c - the backward of a leaf of a graph, by its kind: gradients
 * of its parameters and of its input.
 */
#include "graph_run.h"

uint64_t graph_width(const struct workload_run *run)
{
    return run->model->graph.width;
}

static uint32_t index_of(const struct workload_run *run, uint32_t module,
                         uint32_t i)
{
    return run->model->graph.module[module].first + i;
}

int graph_weight(struct workload_run *run, uint32_t module, uint32_t i,
                 const float **out)
{
    return compute_param(&run->compute, index_of(run, module, i), out);
}

int graph_gradient(struct workload_run *run, uint32_t module, uint32_t i,
                   float **out)
{
    const uint32_t p = index_of(run, module, i);

    *out = NULL;
    if ((run->model->idle[p] >> run->microbatch & 1) != 0) {
        return FSDP_OK;
    }
    return compute_grad(&run->compute, p, out);
}

static int backward_linear(struct workload_run *run, const struct graph_kept *k)
{
    struct compute *c = &run->compute;
    const uint64_t w = graph_width(run);
    const float *a;
    float *d;

    FSDP_TRY(graph_gradient(run, k->module, 0, &d));
    if (d) {
        FSDP_TRY(compute_gemm_grad(c, w, w, run->rows, k->x, run->dy, d));
    }
    FSDP_TRY(graph_weight(run, k->module, 0, &a));
    return compute_gemm_transposed(c, run->rows, w, w, run->dy, a, run->f);
}

static int backward_gelu(struct workload_run *run, const struct graph_kept *k,
                         bool bias)
{
    struct compute *c = &run->compute;
    const uint64_t w = graph_width(run);
    float *d = NULL;

    if (bias) {
        FSDP_TRY(graph_gradient(run, k->module, 0, &d));
    }
    if (d) {
        FSDP_TRY(compute_column_sum(c, run->rows, w, run->dy, d));
    }
    FSDP_TRY(compute_upload(c, run->f, run->dy, run->rows * w));
    return compute_gelu_backward(c, run->rows * w, k->x, run->f);
}

static int backward_mlp(struct workload_run *run, const struct graph_kept *k)
{
    struct compute *c = &run->compute;
    const uint64_t rows = run->rows;
    const uint64_t w = graph_width(run);
    const uint64_t h = run->model->graph.module[k->module].hidden;
    const float *a;
    float *d;

    FSDP_TRY(graph_gradient(run, k->module, 2, &d));
    if (d) {
        FSDP_TRY(compute_gemm_grad(c, h, w, rows, k->act, run->dy, d));
    }
    FSDP_TRY(graph_weight(run, k->module, 2, &a));
    FSDP_TRY(compute_gemm_transposed(c, rows, h, w, run->dy, a, run->wide));
    FSDP_TRY(compute_relu_backward(c, rows * h, k->pre, run->wide));
    FSDP_TRY(graph_gradient(run, k->module, 1, &d));
    if (d) {
        FSDP_TRY(compute_column_sum(c, rows, h, run->wide, d));
    }
    FSDP_TRY(graph_gradient(run, k->module, 0, &d));
    if (d) {
        FSDP_TRY(compute_gemm_grad(c, w, h, rows, k->x, run->wide, d));
    }
    FSDP_TRY(graph_weight(run, k->module, 0, &a));
    return compute_gemm_transposed(c, rows, w, h, run->wide, a, run->f);
}

static int backward_norm(struct workload_run *run, const struct graph_kept *k)
{
    struct compute *c = &run->compute;
    const uint64_t w = graph_width(run);
    const float *gamma;
    float *dgamma;
    float *dbeta;

    FSDP_TRY(graph_gradient(run, k->module, 0, &dgamma));
    FSDP_TRY(graph_gradient(run, k->module, 1, &dbeta));
    if (dgamma || dbeta) {
        FSDP_TRY(compute_norm_grad(c, run->rows, w, k->x, k->stat, run->dy,
                                   dgamma ? dgamma : run->scrap,
                                   dbeta ? dbeta : run->scrap));
    }
    FSDP_TRY(graph_weight(run, k->module, 0, &gamma));
    return compute_norm_backward(c, run->rows, w, k->x, gamma, k->stat, run->dy,
                                 run->f);
}

int graph_derive(struct workload_run *run, const struct graph_kept *k)
{
    switch (run->model->graph.module[k->module].kind) {
    case GRAPH_LINEAR:
        return backward_linear(run, k);
    case GRAPH_BIAS:
        return backward_gelu(run, k, true);
    case GRAPH_MLP:
        return backward_mlp(run, k);
    case GRAPH_NORM:
        return backward_norm(run, k);
    default:
        return backward_gelu(run, k, false);
    }
}
