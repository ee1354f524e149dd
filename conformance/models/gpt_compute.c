/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpt_compute.c - gpt's forward and backward, module by module.
 *
 * Every module reads its input from where its predecessor left it and leaves
 * its own for its successor, so that composites have nothing to do. Backward,
 * `dh` is the gradient of the residual stream, which a norm adds to, and `dn`
 * that of what lies between a norm and it.
 */
#include "gpt_run.h"

#include <math.h>
#include <stdlib.h>

static int allocate_attention(struct workload_run *run, struct block *b)
{
    struct compute *c = &run->compute;
    const uint64_t n = run->rows * run->width;

    FSDP_TRY(compute_alloc(c, n, &b->n1));
    FSDP_TRY(compute_alloc(c, 2 * run->rows, &b->stat1));
    FSDP_TRY(compute_alloc(c, 3 * n, &b->qkv));
    FSDP_TRY(compute_alloc(c, n, &b->o));
    FSDP_TRY(
        compute_alloc(c, 2 * run->rows * run->attention.heads, &b->stat_o));
    return compute_alloc(c, n, &b->mid);
}

static int allocate_block(struct workload_run *run, struct block *b)
{
    struct compute *c = &run->compute;
    const uint64_t n = run->rows * run->width;

    FSDP_TRY(allocate_attention(run, b));
    FSDP_TRY(compute_alloc(c, n, &b->n2));
    FSDP_TRY(compute_alloc(c, 2 * run->rows, &b->stat2));
    FSDP_TRY(compute_alloc(c, GPT_WIDEN * n, &b->up));
    return compute_alloc(c, GPT_WIDEN * n, &b->act);
}

/* The checkpoint that block i is in; 0: it keeps what it computes. */
static uint32_t checkpoint_of(const struct workload_run *run, uint32_t i)
{
    return workload_checkpoint(run->model->base.config.recompute, i);
}

/* The output of an activation checkpoint is kept, and not recomputed. */
static int allocate_blocks(struct workload_run *run)
{
    struct compute *c = &run->compute;
    const uint32_t blocks = run->model->size.blocks;

    for (uint32_t i = 0; i < blocks; i++) {
        c->checkpoint = checkpoint_of(run, i);
        FSDP_TRY(allocate_block(run, &run->block[i]));
        c->checkpoint = workload_leaves(run->model->base.config.recompute, i,
                                        run->model->size.blocks) != 0
                            ? 0
                            : c->checkpoint;
        FSDP_TRY(compute_alloc(c, run->rows * run->width, &run->block[i].end));
    }
    c->checkpoint = 0;
    return FSDP_OK;
}

/* The activations behind the last block, and memory for the gradients there. */
static int allocate_head(struct workload_run *run)
{
    struct compute *c = &run->compute;
    const uint64_t n = run->rows * run->width;

    FSDP_TRY(compute_alloc(c, n, &run->n));
    FSDP_TRY(compute_alloc(c, 2 * run->rows, &run->stat));
    FSDP_TRY(compute_alloc(c, run->rows * GPT_VOCABULARY, &run->logits));
    FSDP_TRY(compute_alloc(c, run->rows, &run->row_loss));
    FSDP_TRY(compute_alloc(c, n, &run->dh));
    FSDP_TRY(compute_alloc(c, n, &run->dn));
    FSDP_TRY(compute_alloc(c, n, &run->d_norm));
    if (run->model->rank > 0) {
        FSDP_TRY(compute_alloc(c, run->rows * run->model->rank, &run->low));
        FSDP_TRY(compute_alloc(c, run->rows * run->model->rank, &run->d_low));
        FSDP_TRY(compute_alloc(c, GPT_WIDEN * n, &run->beside));
    }
    return compute_alloc(c, GPT_WIDEN * n, &run->d_wide);
}

static int allocate(struct workload_run *run)
{
    struct compute *c = &run->compute;
    const uint32_t blocks = run->model->size.blocks;
    const uint64_t n = run->rows * run->width;

    run->host = calloc(2 * run->rows, sizeof(*run->host));
    run->block = calloc(blocks, sizeof(*run->block));
    if (!run->host || !run->block) {
        return batch_fail(c->error, FSDP_ERR_NOMEM, "gpt",
                          "no memory for a run");
    }
    FSDP_TRY(compute_alloc(c, run->rows, &run->id));
    FSDP_TRY(compute_alloc(c, run->rows, &run->target));
    FSDP_TRY(compute_alloc(c, n, &run->start));
    FSDP_TRY(allocate_blocks(run));
    return allocate_head(run);
}

int gpt_open(const struct workload_model *model,
             const struct fsdp_device *device, struct fsdp_stream *stream,
             const struct workload_access *access, struct fsdp_error *error,
             struct workload_run **out)
{
    struct workload_run *run = calloc(1, sizeof(*run));
    const struct gpt_model *m = model->self;
    const struct gpt_size *size = &m->size;

    *out = run;
    if (!run) {
        return batch_fail(error, FSDP_ERR_NOMEM, "gpt", "no memory for a run");
    }
    run->model = m;
    run->rows = m->batch.samples * size->time;
    run->width = size->width;
    run->attention.batch = m->batch.samples;
    run->attention.time = size->time;
    run->attention.heads = size->heads;
    run->attention.head_dim = size->width / size->heads;
    run->attention.scale = 1.0f / sqrtf((float)run->attention.head_dim);
    run->embedding.rows = run->rows;
    run->embedding.n = size->width;
    run->embedding.period = size->time;
    run->embedding.vocabulary = GPT_VOCABULARY;
    FSDP_TRY(compute_open(&run->compute, &model->model, device, stream, access,
                          m->batch.grains, error));
    return allocate(run);
}

void gpt_close(struct workload_run *run)
{
    if (run) {
        compute_close(&run->compute);
        free(run->host);
        free(run->block);
        free(run);
    }
}

int gpt_begin(struct workload_run *run, uint32_t rank, uint32_t step,
              uint32_t microbatch)
{
    const struct gpt_model *m = run->model;

    FSDP_TRY(compute_begin(&run->compute));
    gpt_draw(m, step,
             batch_first(&m->base.config, &m->batch, rank, microbatch, 0),
             m->batch.samples, run->host, run->host + run->rows);
    FSDP_TRY(compute_upload(&run->compute, run->id, run->host, run->rows));
    return compute_upload(&run->compute, run->target, run->host + run->rows,
                          run->rows);
}

int gpt_end(struct workload_run *run, float *out_loss)
{
    return compute_end(&run->compute, out_loss);
}

static int attention(struct workload_run *run, uint32_t i, const float *x)
{
    struct compute *c = &run->compute;
    struct block *b = &run->block[i];
    const uint64_t d = run->width;

    FSDP_TRY(gpt_affine(run, gpt_parameter(run->model, i, GPT_QKV), d, 3 * d,
                        b->n1, b->qkv));
    FSDP_TRY(compute_attention(c, &run->attention, b->qkv, b->o, b->stat_o));
    FSDP_TRY(gpt_affine(run, gpt_parameter(run->model, i, GPT_PROJECT), d, d,
                        b->o, b->mid));
    return compute_add(c, run->rows * d, b->mid, x, b->mid);
}

static int attention_backward(struct workload_run *run, uint32_t i)
{
    struct block *b = &run->block[i];
    const uint64_t d = run->width;

    FSDP_TRY(gpt_affine_backward(run, gpt_parameter(run->model, i, GPT_PROJECT),
                                 d, d, b->o, run->dh, run->dn));
    FSDP_TRY(compute_attention_backward(&run->compute, &run->attention, b->qkv,
                                        b->o, b->stat_o, run->dn, run->d_wide));
    return gpt_affine_backward(run, gpt_parameter(run->model, i, GPT_QKV), d,
                               3 * d, b->n1, run->d_wide, run->dn);
}

static int mlp(struct workload_run *run, uint32_t i)
{
    struct compute *c = &run->compute;
    struct block *b = &run->block[i];
    const uint64_t d = run->width;
    const uint64_t wide = GPT_WIDEN * d;

    FSDP_TRY(gpt_affine(run, gpt_parameter(run->model, i, GPT_UP), d, wide,
                        b->n2, b->up));
    FSDP_TRY(compute_gelu(c, run->rows * wide, b->up, b->act));
    FSDP_TRY(gpt_affine(run, gpt_parameter(run->model, i, GPT_DOWN), wide, d,
                        b->act, b->end));
    return compute_add(c, run->rows * d, b->end, b->mid, b->end);
}

static int mlp_backward(struct workload_run *run, uint32_t i)
{
    struct block *b = &run->block[i];
    const uint64_t d = run->width;
    const uint64_t wide = GPT_WIDEN * d;

    FSDP_TRY(gpt_affine_backward(run, gpt_parameter(run->model, i, GPT_DOWN),
                                 wide, d, b->act, run->dh, run->d_wide));
    FSDP_TRY(compute_gelu_backward(&run->compute, run->rows * wide, b->up,
                                   run->d_wide));
    return gpt_affine_backward(run, gpt_parameter(run->model, i, GPT_UP), d,
                               wide, b->n2, run->d_wide, run->dn);
}

/* The head's weight is [width, vocabulary], or the embedding's [vocabulary,
 * width]. */
static int head(struct workload_run *run)
{
    struct compute *c = &run->compute;
    const float scale = 1.0f / (float)run->rows;
    const float *w;

    FSDP_TRY(compute_param(c, gpt_last_parameters(run->model) + 2, &w));
    FSDP_TRY(run->model->size.tied
                 ? compute_gemm_transposed(c, run->rows, GPT_VOCABULARY,
                                           run->width, run->n, w, run->logits)
                 : compute_gemm(c, run->rows, GPT_VOCABULARY, run->width,
                                run->n, w, run->logits));
    FSDP_TRY(compute_cross_entropy(c, run->rows, GPT_VOCABULARY, scale,
                                   run->logits, run->target, run->row_loss));
    return compute_loss(c, run->row_loss, run->rows, scale);
}

static int head_backward(struct workload_run *run)
{
    struct compute *c = &run->compute;
    const uint32_t weight = gpt_last_parameters(run->model) + 2;
    const float *w;
    float *dw;

    FSDP_TRY(compute_param(c, weight, &w));
    FSDP_TRY(compute_grad(c, weight, &dw));
    if (dw && run->model->size.tied) {
        FSDP_TRY(compute_gemm_grad(c, GPT_VOCABULARY, run->width, run->rows,
                                   run->logits, run->n, dw));
    } else if (dw) {
        FSDP_TRY(compute_gemm_grad(c, run->width, GPT_VOCABULARY, run->rows,
                                   run->n, run->logits, dw));
    }
    return run->model->size.tied
               ? compute_gemm(c, run->rows, run->width, GPT_VOCABULARY,
                              run->logits, w, run->dn)
               : compute_gemm_transposed(c, run->rows, run->width,
                                         GPT_VOCABULARY, run->logits, w,
                                         run->dn);
}

static int embed(struct workload_run *run)
{
    const float *wte;
    const float *wpe;

    FSDP_TRY(compute_param(&run->compute, GPT_WTE, &wte));
    FSDP_TRY(compute_param(&run->compute, GPT_WPE, &wpe));
    return compute_embedding(&run->compute, &run->embedding, run->id, wte, wpe,
                             run->start);
}

static int embed_backward(struct workload_run *run)
{
    float *dwte;
    float *dwpe;

    FSDP_TRY(gpt_both_grads(&run->compute, GPT_WTE, GPT_WPE, &dwte, &dwpe));
    return !dwte || !dwpe
               ? FSDP_OK
               : compute_embedding_grad(&run->compute, &run->embedding, run->id,
                                        run->dh, dwte, dwpe);
}

/* The residual stream in front of block i. */
static const float *stream_before(const struct workload_run *run, uint32_t i)
{
    return i == 0 ? run->start : run->block[i - 1].end;
}

static int block_part(struct workload_run *run, bool back, uint32_t i,
                      uint32_t part)
{
    struct block *b = &run->block[i];
    const float *x = stream_before(run, i);
    const uint32_t gamma1 = gpt_parameter(run->model, i, GPT_GAMMA1);
    const uint32_t gamma2 = gpt_parameter(run->model, i, GPT_GAMMA2);

    switch (part) {
    case GPT_NORM1:
        return back ? gpt_inner_norm_backward(run, gamma1, x, b->stat1)
                    : gpt_norm(run, gamma1, x, b->n1, b->stat1);
    case GPT_ATTENTION:
        return back ? attention_backward(run, i) : attention(run, i, x);
    case GPT_NORM2:
        return back ? gpt_inner_norm_backward(run, gamma2, b->mid, b->stat2)
                    : gpt_norm(run, gamma2, b->mid, b->n2, b->stat2);
    case GPT_MLP:
        return back ? mlp_backward(run, i) : mlp(run, i);
    default:
        return FSDP_OK;
    }
}

/* Computes a part of a block, with the storage of its checkpoint live from the
 * first part to the last. */
static int checkpointed_part(struct workload_run *run, uint32_t point,
                             uint32_t i, uint32_t part)
{
    const uint32_t checkpoint = checkpoint_of(run, i);
    const bool back = point == FSDP_PRE_BACKWARD;
    const bool begins =
        part == GPT_NORM1 &&
        workload_enters(run->model->base.config.recompute, i) != 0;
    const bool ends =
        part == GPT_MLP && workload_leaves(run->model->base.config.recompute, i,
                                           run->model->size.blocks) != 0;

    if (begins && !back) {
        compute_enter(&run->compute, checkpoint);
    }
    FSDP_TRY(block_part(run, back, i, part));
    if (back ? begins : ends && point == FSDP_PRE_FORWARD) {
        compute_leave(&run->compute, checkpoint);
    }
    return FSDP_OK;
}

static int compute_module(struct workload_run *run, uint32_t point,
                          uint32_t module)
{
    const uint32_t blocks = run->model->size.blocks;
    const uint32_t last = gpt_last_modules(run->model);
    const uint32_t gamma = gpt_last_parameters(run->model);
    const bool back = point == FSDP_PRE_BACKWARD;
    const float *x = stream_before(run, blocks);

    if (!back && point != FSDP_PRE_FORWARD && point != FSDP_PRE_RECOMPUTE) {
        return FSDP_OK;
    }
    if (module == GPT_EMBED) {
        return back ? embed_backward(run) : embed(run);
    }
    if (module >= GPT_FIRST_BLOCK && module < last) {
        const uint32_t at = module - GPT_FIRST_BLOCK;

        return checkpointed_part(run, point, at / GPT_MODULES_A_BLOCK,
                                 at % GPT_MODULES_A_BLOCK);
    }
    if (module == last) {
        return back ? gpt_norm_backward(run, gamma, x, run->stat, run->dh)
                    : gpt_norm(run, gamma, x, run->n, run->stat);
    }
    if (module == last + 1) {
        return back ? head_backward(run) : head(run);
    }
    return FSDP_OK;
}

int gpt_compute(struct workload_run *run, uint32_t point, uint32_t module)
{
    FSDP_TRY(compute_module(run, point, module));
    return compute_lent_back(&run->compute);
}
