/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention.h - what attention and its backward share: the place of a head in
 * its matrices, its copies in scratch memory, and chains for a block of
 * queries.
 */
#ifndef FSDP_CTS_ATTENTION_H
#define FSDP_CTS_ATTENTION_H

#include "host_arith.h"
#include "tile.h"
#include "transpose.h"
#include "workspace.h"

#include <fsdp/op.h>
#include <stddef.h>

enum {
    QUERIES = 16, /* of a block: whole vectors at every level of instructions */
    QUERY_VECS = QUERIES / VEC_WIDTH,
    HEAD_ROWS = VEC_WIDTH / 2, /* of a tile: 8 sums */
};

/* One head of one sequence; its rows in qkv, o and stat are a stride apart. */
struct head {
    uint64_t time, head_dim;
    uint64_t padded; /* head_dim, up to whole vectors */
    uint64_t qkv_stride, o_stride, stat_stride;
    uint64_t qkv_at, o_at, stat_at;
    float scale;
};

/* For one head: copies of its matrices, with rows `padded` apart and as many
 * rows as a block of queries or a tile reads; and the room that one block of
 * queries needs. */
struct scratch {
    float *q, *k, *v, *d_o, *dk, *dv;
    float *s, *ds;                    /* [time][QUERIES] */
    float *turned, *turned_do, *sums; /* [padded][QUERIES] */
};

static inline uint64_t head_round(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

static inline int scratch_get(struct scratch *x, const struct fsdp_op *op,
                              struct workspace *ws)
{
    uint64_t rows = head_round(op->dim[1], QUERIES);
    uint64_t columns = head_round(op->dim[3], QUERIES);
    uint64_t matrix = rows * columns;
    uint64_t words = 6 * matrix + 2 * rows * QUERIES + 3 * columns * QUERIES;
    float *p = workspace_get(ws, words, sizeof(float));

    if (!p) {
        return FSDP_ERR_NOMEM;
    }
    *x = (struct scratch){
        .q = p,
        .k = p + matrix,
        .v = p + 2 * matrix,
        .d_o = p + 3 * matrix,
        .dk = p + 4 * matrix,
        .dv = p + 5 * matrix,
        .s = p + 6 * matrix,
        .ds = p + 6 * matrix + rows * QUERIES,
        .turned = p + 6 * matrix + 2 * rows * QUERIES,
        .turned_do = p + 6 * matrix + 2 * rows * QUERIES + columns * QUERIES,
        .sums = p + 6 * matrix + 2 * rows * QUERIES + 2 * columns * QUERIES,
    };
    return FSDP_OK;
}

static inline struct head head_of(const struct fsdp_op *op, uint64_t sequence,
                                  uint64_t h)
{
    uint64_t time = op->dim[1];
    uint64_t heads = op->dim[2];
    uint64_t head_dim = op->dim[3];
    uint64_t row = sequence * time;

    return (struct head){
        .time = time,
        .head_dim = head_dim,
        .padded = head_round(head_dim, VEC_WIDTH),
        .qkv_stride = 3 * heads * head_dim,
        .o_stride = heads * head_dim,
        .stat_stride = heads * 2,
        .qkv_at = row * 3 * heads * head_dim + h * head_dim,
        .o_at = row * heads * head_dim + h * head_dim,
        .stat_at = (row * heads + h) * 2,
        .scale = op->f[0],
    };
}

/* The keys that the block at i0 sees, and its queries. */
static inline uint64_t head_keys(const struct head *h, uint64_t i0)
{
    return h->time - i0 < QUERIES ? h->time : i0 + QUERIES;
}

static inline uint64_t head_queries(const struct head *h, uint64_t i0)
{
    return head_keys(h, i0) - i0;
}

/* Copies a matrix of the head, whose rows are `stride` apart, to one of its
 * own, padded with +0. */
static inline void head_copy(float *to, const float *from, uint64_t stride,
                             const struct head *h)
{
    uint64_t rows = head_round(h->time, QUERIES);

    /* The rows are short: calls of memcpy would cost more than they copy. */
    for (uint64_t r = 0; r < h->time; r++) {
        float *row = to + r * h->padded;
        uint64_t d = 0;

        for (; d + VEC_WIDTH <= h->head_dim; d += VEC_WIDTH) {
            vec_store(row + d, vec_load(from + r * stride + d));
        }
        for (; d < h->padded; d++) {
            row[d] = d < h->head_dim ? from[r * stride + d] : 0.0f;
        }
    }
    memset(to + h->time * h->padded, 0,
           (rows - h->time) * h->padded * sizeof(float));
}

/* QUERIES rows of a copy, as [d][query]. */
static inline void head_turn(float *to, const float *from, const struct head *h)
{
    transpose(to, QUERIES, from, h->padded, QUERIES, h->head_dim);
}

/* out[j][query] = chain(d; rows[j][d], turned[d][query]) */
static inline void head_products(float *out, const float *rows,
                                 const float *turned, const struct head *h,
                                 uint64_t keys)
{
    for (uint64_t j = 0; j < keys; j += HEAD_ROWS) {
        tile_chains(HEAD_ROWS, QUERY_VECS,
                    &(struct tile){h->head_dim, rows + j * h->padded, h->padded,
                                   1, turned, QUERIES, out + j * QUERIES,
                                   QUERIES},
                    true);
    }
}

static inline void head_exp(float *s, uint64_t keys)
{
    for (uint64_t i = 0; i < keys * QUERIES; i++) {
        s[i] = host_expf(s[i]);
    }
}

/* One more step of the chains of a tile, for queries from `first` on. */
HOST_INLINE void head_ragged_step(vec acc[], const float *e, const float *row,
                                  uint64_t first)
{
    static const int32_t edge[2 * QUERIES] = {
        0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
        -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

    HOST_UNROLL
    for (int v = 0; v < QUERY_VECS; v++) {
        vec factor = vec_load(e + (uint64_t)v * VEC_WIDTH);
        vec_bits seen = *(const vec_bits_at *)(edge + QUERIES - first +
                                               (uint64_t)v * VEC_WIDTH);

        HOST_UNROLL
        for (int r = 0; r < HEAD_ROWS; r++) {
            vec *sum = &acc[r * QUERY_VECS + v];

            *sum = vec_select(seen, vec_fma(factor, vec_splat(row[r]), *sum),
                              *sum);
        }
    }
}

/*
 * sums[d][query] = chain(j = 0..query; e[j][query], rows[j][d]). Keys that not
 * all queries see are masked: a factor of +0 would not do, as a sum of -0 would
 * become +0.
 */
static inline void head_chains_over_keys(float *sums, const float *e,
                                         const float *rows,
                                         const struct head *h, uint64_t i0)
{
    uint64_t keys = head_keys(h, i0);

    for (uint64_t d = 0; d < h->padded; d += HEAD_ROWS) {
        vec acc[HEAD_ROWS * QUERY_VECS];

        tile_chains(HEAD_ROWS, QUERY_VECS,
                    &(struct tile){i0 + 1, rows + d, 1, h->padded, e, QUERIES,
                                   sums + d * QUERIES, QUERIES},
                    true);
        for (int r = 0; r < HEAD_ROWS * QUERY_VECS; r++) {
            acc[r] = vec_load(sums + d * QUERIES + (uint64_t)r * VEC_WIDTH);
        }
        for (uint64_t j = i0 + 1; j < keys; j++) {
            head_ragged_step(acc, e + j * QUERIES, rows + j * h->padded + d,
                             j - i0);
        }
        for (int r = 0; r < HEAD_ROWS * QUERY_VECS; r++) {
            vec_store(sums + d * QUERIES + (uint64_t)r * VEC_WIDTH, acc[r]);
        }
    }
}

#endif
