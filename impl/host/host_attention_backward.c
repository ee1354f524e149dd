/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_attention_backward.c - the gradient of causal self-attention.
 *
 * Blocks of queries as in host_attention.c. dq is a chain over keys and is made
 * as o is; dk and dv are chains over queries, so they are kept for all keys and
 * take one block of queries after the other, vectors along head_dim.
 */
#include "attention.h"
#include "operators.h"

/* Some queries of a block, from `first` to before `end`. */
struct some_queries {
    const float *factor; /* [key][query] */
    const float *x;      /* rows of q or of do */
    uint64_t first, end;
};

/* Rows of `sum` go on with those queries. `rows` and `vecs` are constants. */
HOST_INLINE void take_queries(const int rows, const int vecs, float *sum,
                              const struct some_queries *s, uint64_t d,
                              uint64_t padded)
{
    tile_chains(rows, vecs,
                &(struct tile){s->end - s->first, s->factor + s->first, QUERIES,
                               1, s->x + s->first * padded + d, padded, sum + d,
                               padded},
                false);
}

/* All vectors of those rows. */
HOST_INLINE void take_rows(const int rows, float *sum,
                           const struct some_queries *s, uint64_t padded)
{
    uint64_t d = 0;

    for (; d + UINT64_C(4) * VEC_WIDTH <= padded;
         d += UINT64_C(4) * VEC_WIDTH) {
        take_queries(rows, 4, sum, s, d, padded);
    }
    for (; d + UINT64_C(2) * VEC_WIDTH <= padded;
         d += UINT64_C(2) * VEC_WIDTH) {
        take_queries(rows, 2, sum, s, d, padded);
    }
    for (; d < padded; d += VEC_WIDTH) {
        take_queries(rows, 1, sum, s, d, padded);
    }
}

enum {
    KEYS = VEC_WIDTH == 16 ? 4 : 2 /* of a tile: a divisor of QUERIES */
};

/*
 * Goes on with the chains sum[j] over factor[j][query], x[query], for the
 * queries of the block at i0 that see key j; x is the block's rows. In a tile
 * of ragged keys, each key first takes by itself the queries that the tile's
 * last key does not see.
 */
static void chains_over_queries(float *sum, const float *factor, const float *x,
                                const struct head *h, uint64_t i0)
{
    uint64_t keys = head_keys(h, i0);
    uint64_t queries = head_queries(h, i0);
    uint64_t padded = h->padded;
    uint64_t j = 0;

    for (; j + KEYS <= keys; j += KEYS) {
        struct some_queries s = {factor + j * QUERIES, x, 0, queries};

        if (j >= i0) {
            s.end = j - i0 + KEYS - 1;
            for (uint64_t r = 0; r < KEYS - 1; r++) {
                s.first = j - i0 + r;
                take_rows(1, sum + (j + r) * padded, &s, padded);
                s.factor += QUERIES;
            }
            s = (struct some_queries){factor + j * QUERIES, x, s.end, queries};
        }
        take_rows(KEYS, sum + j * padded, &s, padded);
    }
    for (; j < keys; j++) {
        struct some_queries s = {factor + j * QUERIES, x, j - i0, queries};

        take_rows(1, sum + j * padded, &s, padded);
    }
}

/* The values of the forward for a block of queries: m, l, and D. */
struct forward {
    float m[QUERIES], l[QUERIES], d[QUERIES];
};

/* Queries beyond the last get values that do no harm. */
static void forward_get(struct forward *f, const struct fsdp_op *op,
                        const struct head *h, uint64_t i0)
{
    const float *o = (const float *)op->in[1].p + h->o_at;
    const float *stat = (const float *)op->in[2].p + h->stat_at;
    const float *d_o = (const float *)op->in[3].p + h->o_at;

    for (uint64_t q = 0; q < QUERIES; q++) {
        f->m[q] = 0.0f;
        f->l[q] = 1.0f;
        f->d[q] = 0.0f;
    }
    for (uint64_t q = 0; q < head_queries(h, i0); q++) {
        f->m[q] = stat[(i0 + q) * h->stat_stride];
        f->l[q] = stat[(i0 + q) * h->stat_stride + 1];
    }
    /* The chains of four queries at once hide their latency. */
    for (uint64_t q = 0; q < head_queries(h, i0); q += 4) {
        uint64_t end =
            head_queries(h, i0) - q < 4 ? head_queries(h, i0) : q + 4;

        for (uint64_t d = 0; d < h->head_dim; d++) {
            for (uint64_t i = q; i < end; i++) {
                uint64_t at = (i0 + i) * h->o_stride + d;

                f->d[i] = host_fmaf(d_o[at], o[at], f->d[i]);
            }
        }
    }
}

/* s becomes p, and ds, which holds do times v, becomes ds. */
static void differentiate(float *restrict s, float *restrict ds, uint64_t keys,
                          const struct forward *f, float scale)
{
    for (uint64_t j = 0; j < keys; j++) {
        for (uint64_t q = 0; q < QUERIES; q++) {
            s[j * QUERIES + q] = s[j * QUERIES + q] * scale - f->m[q];
        }
    }
    head_exp(s, keys);
    for (uint64_t j = 0; j < keys; j++) {
        for (uint64_t q = 0; q < QUERIES; q++) {
            float p = s[j * QUERIES + q] / f->l[q];

            s[j * QUERIES + q] = p;
            ds[j * QUERIES + q] = p * (ds[j * QUERIES + q] - f->d[q]);
        }
    }
}

static void attend_backward(const struct fsdp_op *op, const struct head *h,
                            const struct scratch *x, uint64_t i0)
{
    uint64_t keys = head_keys(h, i0);
    const float *q = x->q + i0 * h->padded;
    const float *d_o = x->d_o + i0 * h->padded;
    float *dq = (float *)op->out[0].p + h->qkv_at + i0 * h->qkv_stride;
    struct forward f;

    forward_get(&f, op, h, i0);
    head_turn(x->turned, q, h);
    head_turn(x->turned_do, d_o, h);
    head_products(x->s, x->k, x->turned, h, keys);
    head_products(x->ds, x->v, x->turned_do, h, keys);
    differentiate(x->s, x->ds, keys, &f, h->scale);
    chains_over_queries(x->dv, x->s, d_o, h, i0);
    chains_over_queries(x->dk, x->ds, q, h, i0);
    head_chains_over_keys(x->sums, x->ds, x->k, h, i0);
    for (uint64_t i = 0; i < h->head_dim * QUERIES; i++) {
        x->sums[i] = x->sums[i] * h->scale;
    }
    transpose(dq, h->qkv_stride, x->sums, QUERIES, h->head_dim,
              head_queries(h, i0));
}

/* Writes dk and dv; dk is multiplied by `scale`. */
static void put_dk_dv(const struct head *h, const struct scratch *x,
                      float *dqkv)
{
    for (uint64_t j = 0; j < h->time; j++) {
        float *restrict dk = dqkv + j * h->qkv_stride + h->o_stride;
        const float *restrict sum = x->dk + j * h->padded;

        for (uint64_t d = 0; d < h->head_dim; d++) {
            dk[d] = sum[d] * h->scale;
        }
        memcpy(dk + h->o_stride, x->dv + j * h->padded,
               h->head_dim * sizeof(float));
    }
}

int HOST_NAME(host_attention_backward)(const struct fsdp_op *op,
                                       struct workspace *ws)
{
    struct scratch x;

    if (op->out[0].bytes == 0) {
        return FSDP_OK;
    }
    FSDP_TRY(scratch_get(&x, op, ws));
    for (uint64_t i = 0; i < op->dim[0] * op->dim[2]; i++) {
        struct head h = head_of(op, i / op->dim[2], i % op->dim[2]);
        const float *qkv = (const float *)op->in[0].p + h.qkv_at;
        uint64_t bytes = h.time * h.padded * sizeof(float);

        head_copy(x.q, qkv, h.qkv_stride, &h);
        head_copy(x.k, qkv + h.o_stride, h.qkv_stride, &h);
        head_copy(x.v, qkv + 2 * h.o_stride, h.qkv_stride, &h);
        head_copy(x.d_o, (const float *)op->in[3].p + h.o_at, h.o_stride, &h);
        memset(x.dk, 0, bytes);
        memset(x.dv, 0, bytes);
        for (uint64_t i0 = 0; i0 < h.time; i0 += QUERIES) {
            attend_backward(op, &h, &x, i0);
        }
        put_dk_dv(&h, &x, (float *)op->out[0].p + h.qkv_at);
    }
    return FSDP_OK;
}
