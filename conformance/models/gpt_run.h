/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpt_run.h - what a run of gpt has on its device, and the layers that it goes
 * through. Private to gpt_compute.c and gpt_layers.c.
 */
#ifndef FSDP_CTS_GPT_RUN_H
#define FSDP_CTS_GPT_RUN_H

#include "gpt.h"

struct block {
    float *n1, *stat1; /* norm1 */
    float *qkv, *o, *stat_o;
    float *mid;        /* the residual stream behind attention */
    float *n2, *stat2; /* norm2 */
    float *up, *act;   /* before and behind GELU */
    float *end;        /* the residual stream behind the block */
};

struct workload_run {
    const struct gpt_model *model;
    struct compute compute;
    struct compute_attention attention;
    struct compute_embedding embedding;
    uint64_t rows, width;
    int32_t *host; /* ids, then targets */
    int32_t *id, *target;
    float *start; /* the residual stream in front of the first block */
    struct block *block;
    float *n, *stat; /* the last norm */
    float *logits, *row_loss;
    float *dh, *dn, *d_norm, *d_wide;
    /* lora: the value between its two matrices, the gradient there, and what
     * the two add to the output. */
    float *low, *d_low, *beside;
};

/* y = x W + b, where x has rows of n_in and y rows of n_out. The bias is the
 * parameter behind the weight. */
int gpt_affine(struct workload_run *run, uint32_t weight, uint64_t n_in,
               uint64_t n_out, const float *x, float *y);
/* dx, and the gradients of weight and bias where these are trained. */
int gpt_affine_backward(struct workload_run *run, uint32_t weight,
                        uint64_t n_in, uint64_t n_out, const float *x,
                        const float *dy, float *dx);

/* beta is the parameter behind gamma. */
int gpt_norm(struct workload_run *run, uint32_t gamma, const float *x, float *y,
             float *stat);
/* run->dn is the gradient of the norm's output; dx its input's. */
int gpt_norm_backward(struct workload_run *run, uint32_t gamma, const float *x,
                      const float *stat, float *dx);
/* A norm inside a block: the gradient of its input is added to that of the
 * residual stream. */
int gpt_inner_norm_backward(struct workload_run *run, uint32_t gamma,
                            const float *x, const float *stat);

/* The gradients of two parameters that one operator computes together. Either
 * both are frozen (NULL), or neither is. */
int gpt_both_grads(struct compute *c, uint32_t p, uint32_t q, float **dp,
                   float **dq);

#endif
