/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpt_layers.c - the layers that gpt's blocks are made of: y = x W + b, with
 * lora's two matrices beside it, and the norm; forward and backward.
 */
#include "gpt_run.h"

static const float norm_eps = 1e-5f;

/* y += (x down) up, with lora's two matrices, which are the parameters behind
 * the bias. */
static int add_beside(struct workload_run *run, uint32_t weight, uint64_t n_in,
                      uint64_t n_out, const float *x, float *y)
{
    struct compute *c = &run->compute;
    const uint64_t rank = run->model->rank;
    const float *down;
    const float *up;

    FSDP_TRY(compute_param(c, weight + GPT_BESIDE, &down));
    FSDP_TRY(compute_param(c, weight + GPT_BESIDE + 1, &up));
    FSDP_TRY(compute_gemm(c, run->rows, rank, n_in, x, down, run->low));
    FSDP_TRY(
        compute_gemm(c, run->rows, n_out, rank, run->low, up, run->beside));
    return compute_add(c, run->rows * n_out, y, run->beside, y);
}

/* The value between lora's two matrices is computed again, not kept. */
static int beside_backward(struct workload_run *run, uint32_t weight,
                           uint64_t n_in, uint64_t n_out, const float *x,
                           const float *dy, float *dx)
{
    struct compute *c = &run->compute;
    const uint64_t rank = run->model->rank;
    const float *down;
    const float *up;
    float *d_down;
    float *d_up;

    FSDP_TRY(compute_param(c, weight + GPT_BESIDE, &down));
    FSDP_TRY(compute_param(c, weight + GPT_BESIDE + 1, &up));
    FSDP_TRY(compute_grad(c, weight + GPT_BESIDE, &d_down));
    FSDP_TRY(compute_grad(c, weight + GPT_BESIDE + 1, &d_up));
    FSDP_TRY(compute_gemm(c, run->rows, rank, n_in, x, down, run->low));
    if (d_up) {
        FSDP_TRY(
            compute_gemm_grad(c, rank, n_out, run->rows, run->low, dy, d_up));
    }
    FSDP_TRY(
        compute_gemm_transposed(c, run->rows, rank, n_out, dy, up, run->d_low));
    if (d_down) {
        FSDP_TRY(
            compute_gemm_grad(c, n_in, rank, run->rows, x, run->d_low, d_down));
    }
    FSDP_TRY(compute_gemm_transposed(c, run->rows, n_in, rank, run->d_low, down,
                                     run->beside));
    return compute_add(c, run->rows * n_in, dx, run->beside, dx);
}

int gpt_affine(struct workload_run *run, uint32_t weight, uint64_t n_in,
               uint64_t n_out, const float *x, float *y)
{
    struct compute *c = &run->compute;
    const float *w;
    const float *bias;

    FSDP_TRY(compute_param(c, weight, &w));
    FSDP_TRY(compute_param(c, weight + 1, &bias));
    FSDP_TRY(compute_gemm(c, run->rows, n_out, n_in, x, w, y));
    FSDP_TRY(compute_bias(c, run->rows, n_out, y, bias));
    return run->model->rank > 0 ? add_beside(run, weight, n_in, n_out, x, y)
                                : FSDP_OK;
}

int gpt_affine_backward(struct workload_run *run, uint32_t weight,
                        uint64_t n_in, uint64_t n_out, const float *x,
                        const float *dy, float *dx)
{
    struct compute *c = &run->compute;
    const float *w;
    float *dw;
    float *dbias;

    FSDP_TRY(compute_param(c, weight, &w));
    FSDP_TRY(compute_grad(c, weight, &dw));
    FSDP_TRY(compute_grad(c, weight + 1, &dbias));
    if (dbias) {
        FSDP_TRY(compute_column_sum(c, run->rows, n_out, dy, dbias));
    }
    if (dw) {
        FSDP_TRY(compute_gemm_grad(c, n_in, n_out, run->rows, x, dy, dw));
    }
    FSDP_TRY(compute_gemm_transposed(c, run->rows, n_in, n_out, dy, w, dx));
    return run->model->rank > 0
               ? beside_backward(run, weight, n_in, n_out, x, dy, dx)
               : FSDP_OK;
}

int gpt_norm(struct workload_run *run, uint32_t gamma, const float *x, float *y,
             float *stat)
{
    const float *g;
    const float *b;

    FSDP_TRY(compute_param(&run->compute, gamma, &g));
    FSDP_TRY(compute_param(&run->compute, gamma + 1, &b));
    return compute_norm(&run->compute, run->rows, run->width, norm_eps, x, g, b,
                        y, stat);
}

int gpt_both_grads(struct compute *c, uint32_t p, uint32_t q, float **dp,
                   float **dq)
{
    FSDP_TRY(compute_grad(c, p, dp));
    FSDP_TRY(compute_grad(c, q, dq));
    return !*dp == !*dq
               ? FSDP_OK
               : batch_fail(c->error, FSDP_ERR_INVALID, "gpt",
                            "%s and %s are frozen together, or not at all",
                            c->model->parameter_name[p],
                            c->model->parameter_name[q]);
}

int gpt_norm_backward(struct workload_run *run, uint32_t gamma, const float *x,
                      const float *stat, float *dx)
{
    struct compute *c = &run->compute;
    const float *g;
    float *dgamma;
    float *dbeta;

    FSDP_TRY(compute_param(c, gamma, &g));
    FSDP_TRY(gpt_both_grads(c, gamma, gamma + 1, &dgamma, &dbeta));
    if (dgamma && dbeta) {
        FSDP_TRY(compute_norm_grad(c, run->rows, run->width, x, stat, run->dn,
                                   dgamma, dbeta));
    }
    return compute_norm_backward(c, run->rows, run->width, x, g, stat, run->dn,
                                 dx);
}

int gpt_inner_norm_backward(struct workload_run *run, uint32_t gamma,
                            const float *x, const float *stat)
{
    FSDP_TRY(gpt_norm_backward(run, gamma, x, stat, run->d_norm));
    return compute_add(&run->compute, run->rows * run->width, run->dh,
                       run->d_norm, run->dh);
}
