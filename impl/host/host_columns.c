/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_columns.c - COLUMN_SUM and NORM_GRAD: sums down the columns of a matrix,
 * in blocks of rows, for each grain, and then up the tree.
 *
 * A strip of columns is summed in registers for a block of rows.
 */
#include "operators.h"
#include "vec.h"

enum {
    SUM_ROWS = 64, /* of a block (op.h) */
    STRIP_VECS = 8,
    STRIP = STRIP_VECS * VEC_WIDTH,
};

/* Strips of the matrices and of the sums. Where x is NULL, dy alone is
 * summed. */
struct columns {
    const float *x, *stat, *dy;
    uint64_t stride, width;
    uint64_t grain_rows;
};

/* The sums of a strip; dgamma is used where x is not NULL. */
struct strip {
    float dgamma[STRIP], dbeta[STRIP];
};

/* One block of rows of a whole strip. `vecs` is a constant. */
HOST_INLINE void block_sum(const struct columns *s, const int vecs, uint64_t at,
                           uint64_t r0, uint64_t end, struct strip *total)
{
    vec dgamma[STRIP_VECS];
    vec dbeta[STRIP_VECS];

    HOST_UNROLL
    for (int v = 0; v < vecs; v++) {
        dgamma[v] = dbeta[v] = vec_splat(0.0f);
    }
    for (uint64_t r = r0; r < end; r++) {
        HOST_UNROLL
        for (int v = 0; v < vecs; v++) {
            uint64_t i = r * s->stride + at + (uint64_t)v * VEC_WIDTH;
            vec dy = vec_load(s->dy + i);

            if (s->x) {
                vec h = (vec_load(s->x + i) - vec_splat(s->stat[r * 2])) *
                        vec_splat(s->stat[r * 2 + 1]);

                dgamma[v] = vec_fma(dy, h, dgamma[v]);
            }
            dbeta[v] = dbeta[v] + dy;
        }
    }
    HOST_UNROLL
    for (int v = 0; v < vecs; v++) {
        float *g = total->dgamma + at + (uint64_t)v * VEC_WIDTH;
        float *b = total->dbeta + at + (uint64_t)v * VEC_WIDTH;

        vec_store(g, vec_load(g) + dgamma[v]);
        vec_store(b, vec_load(b) + dbeta[v]);
    }
}

/* The same for one column. */
static void block_sum_1(const struct columns *s, uint64_t at, uint64_t r0,
                        uint64_t end, struct strip *total)
{
    float dgamma = 0.0f;
    float dbeta = 0.0f;

    for (uint64_t r = r0; r < end; r++) {
        float dy = s->dy[r * s->stride + at];

        if (s->x) {
            float h = (s->x[r * s->stride + at] - s->stat[r * 2]) *
                      s->stat[r * 2 + 1];

            dgamma = host_fmaf(dy, h, dgamma);
        }
        dbeta = dbeta + dy;
    }
    total->dgamma[at] = total->dgamma[at] + dgamma;
    total->dbeta[at] = total->dbeta[at] + dbeta;
}

static void grain_sum(const struct columns *s, uint64_t grain,
                      struct strip *total)
{
    uint64_t r0 = grain * s->grain_rows;
    uint64_t last = r0 + s->grain_rows;

    memset(total, 0, sizeof(*total));
    for (uint64_t r = r0; r < last; r += SUM_ROWS) {
        uint64_t end = last - r < SUM_ROWS ? last : r + SUM_ROWS;
        uint64_t at = 0;

        if (s->width == STRIP && !s->x) {
            block_sum(s, STRIP_VECS, 0, r, end, total);
            continue;
        }
        for (; at + UINT64_C(4) * VEC_WIDTH <= s->width;
             at += UINT64_C(4) * VEC_WIDTH) {
            block_sum(s, 4, at, r, end, total);
        }
        for (; at + VEC_WIDTH <= s->width; at += VEC_WIDTH) {
            block_sum(s, 1, at, r, end, total);
        }
        for (; at < s->width; at++) {
            block_sum_1(s, at, r, end, total);
        }
    }
}

/* tree() over `grains` grains from `first`; the specification is recursive.
 * NOLINTNEXTLINE(misc-no-recursion) */
static void tree_sum(const struct columns *s, uint64_t first, uint64_t grains,
                     struct strip *sum)
{
    uint64_t left = (grains + 1) / 2;
    struct strip right;

    if (grains == 1) {
        grain_sum(s, first, sum);
        return;
    }
    tree_sum(s, first, left, sum);
    tree_sum(s, first + left, grains - left, &right);
    for (uint64_t j = 0; j < STRIP; j++) {
        sum->dgamma[j] = sum->dgamma[j] + right.dgamma[j];
        sum->dbeta[j] = sum->dbeta[j] + right.dbeta[j];
    }
}

/* The strip of `s` from column j. */
static struct columns strip_at(const struct columns *s, uint64_t j)
{
    struct columns strip = *s;

    strip.x = s->x ? s->x + j : NULL;
    strip.dy = s->dy + j;
    strip.width = s->stride - j < STRIP ? s->stride - j : STRIP;
    return strip;
}

int HOST_NAME(host_column_sum)(const struct fsdp_op *op, struct workspace *ws)
{
    uint64_t n = op->dim[1];
    struct columns all = {
        .dy = op->in[0].p, .stride = n, .grain_rows = op->dim[0] / op->dim[2]};

    (void)ws;
    for (uint64_t j = 0; j < n; j += STRIP) {
        struct columns strip = strip_at(&all, j);
        struct strip sum;

        tree_sum(&strip, 0, op->dim[2], &sum);
        memcpy((float *)op->out[0].p + j, sum.dbeta,
               strip.width * sizeof(float));
    }
    return FSDP_OK;
}

int HOST_NAME(host_norm_grad)(const struct fsdp_op *op, struct workspace *ws)
{
    uint64_t n = op->dim[1];
    struct columns all = {.x = op->in[0].p,
                          .stat = op->in[1].p,
                          .dy = op->in[2].p,
                          .stride = n,
                          .grain_rows = op->dim[0] / op->dim[2]};

    (void)ws;
    for (uint64_t j = 0; j < n; j += STRIP) {
        struct columns strip = strip_at(&all, j);
        struct strip sum;

        tree_sum(&strip, 0, op->dim[2], &sum);
        memcpy((float *)op->out[0].p + j, sum.dgamma,
               strip.width * sizeof(float));
        memcpy((float *)op->out[1].p + j, sum.dbeta,
               strip.width * sizeof(float));
    }
    return FSDP_OK;
}
