/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_attention.c - causal self-attention, and its backward.
 *
 * Scores are computed where they are needed, twice forward and once more
 * backward, rather than kept: there is no scratch memory, and the same bits
 * come out each time.
 */
#include "ops.h"

#include <fsdp/arith/exp.h>

/* One head of one sequence. A step in time is `qkv_stride` floats of qkv,
 * `o_stride` of o and `stat_stride` of stat. */
struct head {
    uint64_t time, head_dim;
    uint64_t qkv_stride, o_stride, stat_stride;
    uint64_t qkv_at, o_at, stat_at; /* where it begins */
    float scale;
};

static struct head head_of(const struct fsdp_op *op, uint64_t sequence,
                           uint64_t h)
{
    uint64_t time = op->dim[1];
    uint64_t heads = op->dim[2];
    uint64_t head_dim = op->dim[3];
    uint64_t row = sequence * time;
    struct head head = {
        .time = time,
        .head_dim = head_dim,
        .qkv_stride = 3 * heads * head_dim,
        .o_stride = heads * head_dim,
        .stat_stride = heads * 2,
        .qkv_at = row * 3 * heads * head_dim + h * head_dim,
        .o_at = row * heads * head_dim + h * head_dim,
        .stat_at = (row * heads + h) * 2,
        .scale = op->f[0],
    };

    return head;
}

/* Where the query of time i is in qkv; the key and the value follow, each as
 * far on as a row of o is long. */
static uint64_t query_at(const struct head *head, uint64_t i)
{
    return head->qkv_at + i * head->qkv_stride;
}

static uint64_t key_at(const struct head *head, uint64_t j)
{
    return query_at(head, j) + head->o_stride;
}

static uint64_t value_at(const struct head *head, uint64_t j)
{
    return query_at(head, j) + 2 * head->o_stride;
}

/* out[j] = chain(d; a[d], b_j[d]) for some rows b_j, `stride` apart. The
 * chains run side by side: alone, each would wait for its own last step. */
static void chains(float *restrict out, const float *a, const float *b,
                   uint64_t stride, uint64_t rows, uint64_t n)
{
    ref_zero(out, rows);
    for (uint64_t d = 0; d < n; d++) {
        for (uint64_t j = 0; j < rows; j++) {
            out[j] = ref_fma(a[d], b[j * stride + d], out[j]);
        }
    }
}

/* s_ij for the keys j0, ..., j0 + keys - 1. */
static void scores(const struct head *head, const float *qkv, uint64_t i,
                   uint64_t j0, uint64_t keys, float *s)
{
    chains(s, qkv + query_at(head, i), qkv + key_at(head, j0), head->qkv_stride,
           keys, head->head_dim);
    for (uint64_t j = 0; j < keys; j++) {
        s[j] = s[j] * head->scale;
    }
}

static void attend(const struct head *head, const float *qkv, uint64_t i,
                   float *o, float *stat)
{
    float s[REF_COLUMNS];
    float m = -__builtin_inff();
    float l = 0.0f;

    for (uint64_t j0 = 0; j0 <= i; j0 += REF_COLUMNS) {
        uint64_t keys = ref_block(j0, i + 1);

        scores(head, qkv, i, j0, keys, s);
        for (uint64_t j = 0; j < keys; j++) {
            m = ref_maximum(m, s[j]);
        }
    }
    ref_zero(o, head->head_dim);
    for (uint64_t j0 = 0; j0 <= i; j0 += REF_COLUMNS) {
        uint64_t keys = ref_block(j0, i + 1);

        scores(head, qkv, i, j0, keys, s);
        for (uint64_t j = 0; j < keys; j++) {
            float e = fsdp_expf(s[j] - m);

            l = l + e;
            ref_chain_step(o, e, qkv + value_at(head, j0 + j), head->head_dim);
        }
    }
    for (uint64_t d = 0; d < head->head_dim; d++) {
        o[d] = o[d] / l;
    }
    stat[0] = m;
    stat[1] = l;
}

static uint64_t rows_of(const struct fsdp_op *op)
{
    return ref_times(op->dim[0], op->dim[1]);
}

static uint64_t width_of(const struct fsdp_op *op)
{
    return ref_times(op->dim[2], op->dim[3]);
}

int REF_NAME(ref_attention)(const struct fsdp_op *op)
{
    uint64_t rows = rows_of(op);
    uint64_t width = width_of(op);
    const float *qkv = op->in[0].p;
    float *o = op->out[0].p;
    float *stat = op->out[1].p;

    FSDP_TRY(ref_lengths(
        op, (uint64_t[]){ref_words(rows, ref_times(width, 3)),
                         ref_words(rows, width),
                         ref_words(rows, ref_times(op->dim[2], 2))}));
    for (uint64_t sequence = 0; sequence < op->dim[0]; sequence++) {
        for (uint64_t h = 0; h < op->dim[2]; h++) {
            struct head head = head_of(op, sequence, h);

            for (uint64_t i = 0; i < head.time; i++) {
                attend(&head, qkv, i, o + head.o_at + i * head.o_stride,
                       stat + head.stat_at + i * head.stat_stride);
            }
        }
    }
    return FSDP_OK;
}

/*
 * Adds what query i contributes to the gradients. It is called for i ascending,
 * on dqkv that was zero, so that dk_j and dv_j are chains over i, and dq_i is
 * one over j.
 */
static void attend_backward(const struct fsdp_op *op, const struct head *head,
                            uint64_t i)
{
    uint64_t n = head->head_dim;
    uint64_t query = query_at(head, i);
    uint64_t o_at = head->o_at + i * head->o_stride;
    const float *qkv = op->in[0].p;
    const float *o = (const float *)op->in[1].p + o_at;
    const float *stat =
        (const float *)op->in[2].p + head->stat_at + i * head->stat_stride;
    const float *do_i = (const float *)op->in[3].p + o_at;
    float *dqkv = op->out[0].p;
    float big_d = ref_chain(do_i, o, n);
    float s[REF_COLUMNS];
    float dp[REF_COLUMNS]; /* do_i times v_j */

    for (uint64_t j0 = 0; j0 <= i; j0 += REF_COLUMNS) {
        uint64_t keys = ref_block(j0, i + 1);

        scores(head, qkv, i, j0, keys, s);
        chains(dp, do_i, qkv + value_at(head, j0), head->qkv_stride, keys, n);
        for (uint64_t j = 0; j < keys; j++) {
            uint64_t key = key_at(head, j0 + j);
            uint64_t value = value_at(head, j0 + j);
            float p = fsdp_expf(s[j] - stat[0]) / stat[1];
            float ds = p * (dp[j] - big_d);

            ref_chain_step(dqkv + value, p, do_i, n);
            ref_chain_step(dqkv + query, ds, qkv + key, n);
            ref_chain_step(dqkv + key, ds, qkv + query, n);
        }
    }
}

/* The factor `scale` at the end of dq and dk. */
static void scale_dqk(const struct head *head, float *dqkv)
{
    for (uint64_t i = 0; i < head->time; i++) {
        for (uint64_t d = 0; d < head->head_dim; d++) {
            float *dq = dqkv + query_at(head, i) + d;
            float *dk = dqkv + key_at(head, i) + d;

            *dq = *dq * head->scale;
            *dk = *dk * head->scale;
        }
    }
}

int REF_NAME(ref_attention_backward)(const struct fsdp_op *op)
{
    uint64_t rows = rows_of(op);
    uint64_t width = width_of(op);
    float *dqkv = op->out[0].p;

    FSDP_TRY(ref_lengths(
        op, (uint64_t[]){
                ref_words(rows, ref_times(width, 3)), ref_words(rows, width),
                ref_words(rows, ref_times(op->dim[2], 2)),
                ref_words(rows, width), ref_words(rows, ref_times(width, 3))}));
    ref_zero(dqkv, rows * width * 3);
    for (uint64_t sequence = 0; sequence < op->dim[0]; sequence++) {
        for (uint64_t h = 0; h < op->dim[2]; h++) {
            struct head head = head_of(op, sequence, h);

            for (uint64_t i = 0; i < head.time; i++) {
                attend_backward(op, &head, i);
            }
            scale_dqk(&head, dqkv);
        }
    }
    return FSDP_OK;
}
