/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compute_op.c - the operators of op.h as calls: every operand's extent
 * follows from the dimensions, and is written here once.
 */
#include "compute.h"

#include "batch.h"

static struct fsdp_op start(uint32_t kind)
{
    const struct fsdp_op op = {
        .size = sizeof(op), .kind = kind, .unit = FSDP_NO_UNIT};

    return op;
}

/* Operands have elements of 4 bytes: float32, or int32 for ids. */
static void in(struct fsdp_op *op, const void *p, uint64_t n)
{
    op->in[op->n_in].p = p;
    op->in[op->n_in].bytes = n * 4;
    op->n_in++;
}

static void out(struct fsdp_op *op, void *p, uint64_t n)
{
    op->out[op->n_out].p = p;
    op->out[op->n_out].bytes = n * 4;
    op->n_out++;
}

static int run_op(struct compute *c, const struct fsdp_op *op)
{
    const int status = c->device->run(c->device->self, c->stream, op);

    if (status != FSDP_OK) {
        return batch_fail(c->error, status, "workload", "operator %u: %s",
                          (unsigned)op->kind, fsdp_status_text(status));
    }
    return FSDP_OK;
}

int compute_scale(struct compute *c, uint64_t n, float factor, float *x)
{
    struct fsdp_op op = start(FSDP_OP_SCALE);

    op.dim[0] = n;
    op.f[0] = factor;
    in(&op, x, n);
    out(&op, x, n);
    return run_op(c, &op);
}

int compute_cast(struct compute *c, uint64_t n, uint32_t from, const void *x,
                 uint32_t to, void *y)
{
    struct fsdp_op op = start(FSDP_OP_CAST);

    op.aux[0] = from;
    op.aux[1] = to;
    op.dim[0] = n;
    op.n_in = 1;
    op.in[0] = (struct fsdp_in){x, n * fsdp_dtype_bytes(from)};
    op.n_out = 1;
    op.out[0] = (struct fsdp_out){y, n * fsdp_dtype_bytes(to)};
    return run_op(c, &op);
}

int compute_add(struct compute *c, uint64_t n, const float *a, const float *b,
                float *y)
{
    struct fsdp_op op = start(FSDP_OP_ADD);

    op.dim[0] = n;
    in(&op, a, n);
    in(&op, b, n);
    out(&op, y, n);
    return run_op(c, &op);
}

static int gemm(struct compute *c, uint32_t flags, uint64_t m, uint64_t n,
                uint64_t k, const float *a, const float *b, float *y)
{
    struct fsdp_op op = start(FSDP_OP_GEMM);

    op.flags = flags;
    op.dim[0] = m;
    op.dim[1] = n;
    op.dim[2] = k;
    in(&op, a, m * k);
    in(&op, b, k * n);
    out(&op, y, m * n);
    return run_op(c, &op);
}

int compute_gemm(struct compute *c, uint64_t m, uint64_t n, uint64_t k,
                 const float *a, const float *b, float *y)
{
    return gemm(c, 0, m, n, k, a, b, y);
}

int compute_gemm_transposed(struct compute *c, uint64_t m, uint64_t n,
                            uint64_t k, const float *a, const float *b,
                            float *y)
{
    return gemm(c, FSDP_OP_TRANSPOSE_B, m, n, k, a, b, y);
}

int compute_gemm_grad(struct compute *c, uint64_t m, uint64_t n, uint64_t rows,
                      const float *x, const float *g, float *w)
{
    struct fsdp_op op = start(FSDP_OP_GEMM_GRAD);

    op.dim[0] = m;
    op.dim[1] = n;
    op.dim[2] = rows;
    op.dim[3] = c->grains;
    in(&op, x, rows * m);
    in(&op, g, rows * n);
    out(&op, w, m * n);
    return run_op(c, &op);
}

int compute_bias(struct compute *c, uint64_t rows, uint64_t n, float *y,
                 const float *b)
{
    struct fsdp_op op = start(FSDP_OP_BIAS);

    op.dim[0] = rows;
    op.dim[1] = n;
    in(&op, y, rows * n);
    in(&op, b, n);
    out(&op, y, rows * n);
    return run_op(c, &op);
}

static int column_sum(struct compute *c, uint64_t rows, uint64_t n,
                      uint64_t grains, const float *x, float *s)
{
    struct fsdp_op op = start(FSDP_OP_COLUMN_SUM);

    op.dim[0] = rows;
    op.dim[1] = n;
    op.dim[2] = grains;
    in(&op, x, rows * n);
    out(&op, s, n);
    return run_op(c, &op);
}

int compute_column_sum(struct compute *c, uint64_t rows, uint64_t n,
                       const float *x, float *s)
{
    return column_sum(c, rows, n, c->grains, x, s);
}

int compute_column_mean(struct compute *c, uint64_t rows, uint64_t n,
                        const float *x, float *mean)
{
    FSDP_TRY(column_sum(c, rows, n, 1, x, mean));
    return compute_scale(c, n, 1.0f / (float)rows, mean);
}

int compute_loss(struct compute *c, float *row_loss, uint64_t rows, float scale)
{
    struct fsdp_op op = start(FSDP_OP_SCALE);

    op.dim[0] = rows;
    op.f[0] = scale;
    in(&op, row_loss, rows);
    out(&op, row_loss, rows);
    FSDP_TRY(run_op(c, &op));
    FSDP_TRY(compute_column_sum(c, rows, 1, row_loss, c->sum));
    c->have_loss = true;
    return FSDP_OK;
}

static int map(struct compute *c, uint32_t kind, uint64_t n, const float *x,
               float *y)
{
    struct fsdp_op op = start(kind);

    op.dim[0] = n;
    in(&op, x, n);
    out(&op, y, n);
    return run_op(c, &op);
}

static int map_backward(struct compute *c, uint32_t kind, uint64_t n,
                        const float *x, float *dy)
{
    struct fsdp_op op = start(kind);

    op.dim[0] = n;
    in(&op, x, n);
    in(&op, dy, n);
    out(&op, dy, n);
    return run_op(c, &op);
}

int compute_relu(struct compute *c, uint64_t n, const float *x, float *y)
{
    return map(c, FSDP_OP_RELU, n, x, y);
}

int compute_relu_backward(struct compute *c, uint64_t n, const float *x,
                          float *dy)
{
    return map_backward(c, FSDP_OP_RELU_BACKWARD, n, x, dy);
}

int compute_gelu(struct compute *c, uint64_t n, const float *x, float *y)
{
    return map(c, FSDP_OP_GELU, n, x, y);
}

int compute_gelu_backward(struct compute *c, uint64_t n, const float *x,
                          float *dy)
{
    return map_backward(c, FSDP_OP_GELU_BACKWARD, n, x, dy);
}

int compute_norm(struct compute *c, uint64_t rows, uint64_t n, float eps,
                 const float *x, const float *gamma, const float *beta,
                 float *y, float *stat)
{
    struct fsdp_op op = start(FSDP_OP_NORM);

    op.dim[0] = rows;
    op.dim[1] = n;
    op.f[0] = eps;
    in(&op, x, rows * n);
    in(&op, gamma, n);
    in(&op, beta, n);
    out(&op, y, rows * n);
    out(&op, stat, rows * 2);
    return run_op(c, &op);
}

int compute_norm_backward(struct compute *c, uint64_t rows, uint64_t n,
                          const float *x, const float *gamma, const float *stat,
                          const float *dy, float *dx)
{
    struct fsdp_op op = start(FSDP_OP_NORM_BACKWARD);

    op.dim[0] = rows;
    op.dim[1] = n;
    in(&op, x, rows * n);
    in(&op, gamma, n);
    in(&op, stat, rows * 2);
    in(&op, dy, rows * n);
    out(&op, dx, rows * n);
    return run_op(c, &op);
}

int compute_norm_grad(struct compute *c, uint64_t rows, uint64_t n,
                      const float *x, const float *stat, const float *dy,
                      float *dgamma, float *dbeta)
{
    struct fsdp_op op = start(FSDP_OP_NORM_GRAD);

    op.dim[0] = rows;
    op.dim[1] = n;
    op.dim[2] = c->grains;
    in(&op, x, rows * n);
    in(&op, stat, rows * 2);
    in(&op, dy, rows * n);
    out(&op, dgamma, n);
    out(&op, dbeta, n);
    return run_op(c, &op);
}

static struct fsdp_op
embedding(uint32_t kind, const struct compute_embedding *e, const int32_t *id)
{
    struct fsdp_op op = start(kind);

    op.dim[0] = e->rows;
    op.dim[1] = e->n;
    op.dim[2] = e->period;
    op.dim[3] = e->vocabulary;
    in(&op, id, e->rows);
    return op;
}

int compute_embedding(struct compute *c, const struct compute_embedding *e,
                      const int32_t *id, const float *table,
                      const float *position, float *y)
{
    struct fsdp_op op = embedding(FSDP_OP_EMBEDDING, e, id);

    in(&op, table, e->vocabulary * e->n);
    in(&op, position, e->period * e->n);
    out(&op, y, e->rows * e->n);
    return run_op(c, &op);
}

int compute_embedding_grad(struct compute *c, const struct compute_embedding *e,
                           const int32_t *id, const float *dy, float *dtable,
                           float *dposition)
{
    struct fsdp_op op = embedding(FSDP_OP_EMBEDDING_GRAD, e, id);

    op.dim[4] = c->grains;
    in(&op, dy, e->rows * e->n);
    out(&op, dtable, e->vocabulary * e->n);
    out(&op, dposition, e->period * e->n);
    return run_op(c, &op);
}

/* qkv is the first operand of both directions. */
static struct fsdp_op
attention(uint32_t kind, const struct compute_attention *a, const float *qkv)
{
    struct fsdp_op op = start(kind);

    op.dim[0] = a->batch;
    op.dim[1] = a->time;
    op.dim[2] = a->heads;
    op.dim[3] = a->head_dim;
    op.f[0] = a->scale;
    in(&op, qkv, a->batch * a->time * 3 * a->heads * a->head_dim);
    return op;
}

int compute_attention(struct compute *c, const struct compute_attention *a,
                      const float *qkv, float *o, float *stat)
{
    struct fsdp_op op = attention(FSDP_OP_ATTENTION, a, qkv);
    const uint64_t heads = a->batch * a->time * a->heads;

    out(&op, o, heads * a->head_dim);
    out(&op, stat, heads * 2);
    return run_op(c, &op);
}

int compute_attention_backward(struct compute *c,
                               const struct compute_attention *a,
                               const float *qkv, const float *o,
                               const float *stat, const float *d_o, float *dqkv)
{
    struct fsdp_op op = attention(FSDP_OP_ATTENTION_BACKWARD, a, qkv);
    const uint64_t heads = a->batch * a->time * a->heads;

    in(&op, o, heads * a->head_dim);
    in(&op, stat, heads * 2);
    in(&op, d_o, heads * a->head_dim);
    out(&op, dqkv, heads * 3 * a->head_dim);
    return run_op(c, &op);
}

/* The factor by which an operator of a loss multiplies its gradient. */
static float gradient_scale(const struct compute *c, float scale)
{
    return c->access.loss_scale ? scale * *c->access.loss_scale : scale;
}

static int loss(struct compute *c, uint32_t kind, uint64_t rows, uint64_t n,
                float scale, const float *y, const float *other,
                float *row_loss, float *dy)
{
    struct fsdp_op op = start(kind);

    op.dim[0] = rows;
    op.dim[1] = n;
    op.f[0] = gradient_scale(c, scale);
    in(&op, y, rows * n);
    in(&op, other, rows * n);
    out(&op, row_loss, rows);
    out(&op, dy, rows * n);
    return run_op(c, &op);
}

int compute_mse(struct compute *c, uint64_t rows, uint64_t n, float scale,
                const float *y, const float *target, float *row_loss, float *dy)
{
    return loss(c, FSDP_OP_MSE, rows, n, scale, y, target, row_loss, dy);
}

int compute_linear_loss(struct compute *c, uint64_t rows, uint64_t n,
                        float scale, const float *y, const float *coefficient,
                        float *row_loss, float *dy)
{
    return loss(c, FSDP_OP_LINEAR_LOSS, rows, n, scale, y, coefficient,
                row_loss, dy);
}

int compute_cross_entropy(struct compute *c, uint64_t rows, uint64_t n,
                          float scale, float *logits, const int32_t *id,
                          float *row_loss)
{
    struct fsdp_op op = start(FSDP_OP_CROSS_ENTROPY);

    op.dim[0] = rows;
    op.dim[1] = n;
    op.f[0] = gradient_scale(c, scale);
    in(&op, logits, rows * n);
    in(&op, id, rows);
    out(&op, row_loss, rows);
    out(&op, logits, rows * n);
    return run_op(c, &op);
}
