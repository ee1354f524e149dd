/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_attention.c - causal self-attention.
 *
 * One head of one sequence at a time, QUERIES queries side by side in vectors:
 * scores are kept as s[key][query], so that the maximum, the sum and the
 * chains over keys all run down the keys, each in its own order, and their
 * latencies overlap. The last QUERIES keys of a block are ragged: not every
 * query has come to them yet.
 */
#include "attention.h"
#include "maximum.h"
#include "operators.h"

/* The maximum of each query's scores, subtracted; `m` keeps it. */
static void subtract_maximum(float *s, uint64_t keys, float m[QUERIES])
{
    int32_t key[QUERIES];
    int32_t nan[QUERIES];

    for (int q = 0; q < QUERIES; q++) {
        key[q] = maximum_start().key;
        nan[q] = maximum_start().nan;
    }
    for (uint64_t j = 0; j < keys; j++) {
        for (int q = 0; q < QUERIES; q++) {
            struct maximum so_far = {key[q], nan[q]};

            so_far = maximum_take(so_far, s[j * QUERIES + (uint64_t)q]);
            key[q] = so_far.key;
            nan[q] = so_far.nan;
        }
    }
    for (int q = 0; q < QUERIES; q++) {
        m[q] = maximum_end((struct maximum){key[q], nan[q]});
    }
    for (uint64_t j = 0; j < keys; j++) {
        for (int q = 0; q < QUERIES; q++) {
            s[j * QUERIES + (uint64_t)q] = s[j * QUERIES + (uint64_t)q] - m[q];
        }
    }
}

/* Gives the keys that queries of the block at i0 do not see a value. */
static void blank(float *s, uint64_t i0, uint64_t keys, float value)
{
    for (uint64_t j = i0 + 1; j < keys; j++) {
        for (uint64_t q = 0; q < j - i0; q++) {
            s[j * QUERIES + q] = value;
        }
    }
}

static void sum_over_keys(const float *e, uint64_t keys, float l[QUERIES])
{
    for (int q = 0; q < QUERIES; q++) {
        l[q] = 0.0f;
    }
    for (uint64_t j = 0; j < keys; j++) {
        for (int q = 0; q < QUERIES; q++) {
            l[q] = l[q] + e[j * QUERIES + (uint64_t)q];
        }
    }
}

/* The block of queries that begins at i0. */
static void attend(const struct head *h, const struct scratch *x, uint64_t i0,
                   float *o, float *stat)
{
    uint64_t keys = head_keys(h, i0);
    uint64_t queries = head_queries(h, i0);
    float m[QUERIES];
    float l[QUERIES];

    head_turn(x->turned, x->q + i0 * h->padded, h);
    head_products(x->s, x->k, x->turned, h, keys);
    for (uint64_t j = 0; j < keys * QUERIES; j++) {
        x->s[j] = x->s[j] * h->scale;
    }
    blank(x->s, i0, keys, -__builtin_inff());
    subtract_maximum(x->s, keys, m);
    head_exp(x->s, keys);
    /* +0 changes no sum; -infinity would not do: -infinity minus itself. */
    blank(x->s, i0, keys, 0.0f);
    sum_over_keys(x->s, keys, l);
    head_chains_over_keys(x->sums, x->s, x->v, h, i0);
    for (uint64_t d = 0; d < h->head_dim; d++) {
        for (uint64_t q = 0; q < QUERIES; q++) {
            x->sums[d * QUERIES + q] = x->sums[d * QUERIES + q] / l[q];
        }
    }
    transpose(o + i0 * h->o_stride, h->o_stride, x->sums, QUERIES, h->head_dim,
              queries);
    for (uint64_t q = 0; q < queries; q++) {
        stat[(i0 + q) * h->stat_stride] = m[q];
        stat[(i0 + q) * h->stat_stride + 1] = l[q];
    }
}

int HOST_NAME(host_attention)(const struct fsdp_op *op, struct workspace *ws)
{
    struct scratch x;

    if (op->out[1].bytes == 0) {
        return FSDP_OK;
    }
    FSDP_TRY(scratch_get(&x, op, ws));
    for (uint64_t i = 0; i < op->dim[0] * op->dim[2]; i++) {
        struct head h = head_of(op, i / op->dim[2], i % op->dim[2]);
        const float *qkv = (const float *)op->in[0].p + h.qkv_at;

        head_copy(x.q, qkv, h.qkv_stride, &h);
        head_copy(x.k, qkv + h.o_stride, h.qkv_stride, &h);
        head_copy(x.v, qkv + 2 * h.o_stride, h.qkv_stride, &h);
        for (uint64_t i0 = 0; i0 < h.time; i0 += QUERIES) {
            attend(&h, &x, i0, (float *)op->out[0].p + h.o_at,
                   (float *)op->out[1].p + h.stat_at);
        }
    }
    return FSDP_OK;
}
