/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_embedding.c - EMBEDDING and EMBEDDING_GRAD.
 *
 * The gradient sorts the rows by the entry of the table that they belong to,
 * keeping their order, so that each entry is summed once, in place, and what
 * it costs does not depend on vocabulary times rows.
 */
#include "operators.h"

#include <assert.h>
#include <string.h>

int HOST_NAME(host_embedding)(const struct fsdp_op *op, struct workspace *ws)
{
    uint64_t n = op->dim[1];
    uint64_t period = op->dim[2];
    const int32_t *id = op->in[0].p;

    (void)ws;
    for (uint64_t r = 0; r < op->dim[0]; r++) {
        const float *restrict table =
            (const float *)op->in[1].p + (uint64_t)id[r] * n;
        const float *restrict position =
            (const float *)op->in[2].p + r % period * n;
        float *restrict y = (float *)op->out[0].p + r * n;

        for (uint64_t j = 0; j < n; j++) {
            y[j] = table[j] + position[j];
        }
    }
    return FSDP_OK;
}

/* The rows of dy that belong to one entry, ascending. */
struct entry {
    const float *dy;
    uint64_t n;
    const uint64_t *row;
    uint64_t rows;
    uint64_t grain_rows;
};

static void add_to(float *restrict sum, const float *restrict x, uint64_t n)
{
    for (uint64_t j = 0; j < n; j++) {
        sum[j] = sum[j] + x[j];
    }
}

/*
 * tree() over the grains from `first`; `right` has room for a row for each
 * level of the tree. A grain without a row is +0; adding that changes nothing,
 * because a sum from +0 is never -0, and is left out. The specification is
 * recursive. NOLINTNEXTLINE(misc-no-recursion) */
static void entry_tree(const struct entry *e, uint64_t first, uint64_t grains,
                       float *sum, float *right)
{
    uint64_t left = (grains + 1) / 2;
    struct entry low = *e;
    struct entry high = *e;
    uint64_t cut = 0;

    if (grains == 1 || e->rows == 0) {
        memset(sum, 0, e->n * sizeof(float));
        for (uint64_t i = 0; i < e->rows; i++) {
            add_to(sum, e->dy + e->row[i] * e->n, e->n);
        }
        return;
    }
    while (cut < e->rows && e->row[cut] < (first + left) * e->grain_rows) {
        cut++;
    }
    low.rows = cut;
    high.row += cut;
    high.rows -= cut;
    entry_tree(&low, first, left, sum, right);
    if (high.rows > 0) {
        entry_tree(&high, first + left, grains - left, right, right + e->n);
        add_to(sum, right, e->n);
    }
}

/* The first row of each entry in `order`, which gets the rows sorted by id. */
static void sort_rows(const int32_t *id, uint64_t rows, uint64_t vocabulary,
                      uint64_t *start, uint64_t *order)
{
    memset(start, 0, (vocabulary + 2) * sizeof(*start));
    for (uint64_t r = 0; r < rows; r++) {
        start[id[r] + 2]++;
    }
    for (uint64_t v = 0; v < vocabulary; v++) {
        start[v + 2] += start[v + 1];
    }
    /* start[id + 1] moves from the entry's first row to the next entry's. */
    for (uint64_t r = 0; r < rows; r++) {
        order[start[id[r] + 1]++] = r;
    }
    assert(start[vocabulary] == rows);
}

/* The gradients of both tables; `order` has room for all rows. */
static void grads(const struct fsdp_op *op, uint64_t *start, uint64_t *order,
                  float *right)
{
    uint64_t rows = op->dim[0];
    uint64_t n = op->dim[1];
    uint64_t period = op->dim[2];
    uint64_t vocabulary = op->dim[3];
    uint64_t grains = op->dim[4];
    struct entry e = {
        .dy = op->in[1].p, .n = n, .row = order, .grain_rows = rows / grains};

    sort_rows(op->in[0].p, rows, vocabulary, start, order);
    for (uint64_t v = 0; v < vocabulary; v++) {
        e.row = order + start[v];
        e.rows = start[v + 1] - start[v];
        entry_tree(&e, 0, grains, (float *)op->out[0].p + v * n, right);
    }
    e.row = order;
    for (uint64_t p = 0; p < period; p++) {
        e.rows = 0;
        for (uint64_t r = p; r < rows; r += period) {
            order[e.rows++] = r;
        }
        entry_tree(&e, 0, grains, (float *)op->out[1].p + p * n, right);
    }
}

int HOST_NAME(host_embedding_grad)(const struct fsdp_op *op,
                                   struct workspace *ws)
{
    enum {
        LEVELS = 6 /* of a tree of FSDP_MAX_GRAINS */
    };
    uint64_t words = op->dim[3] + 2 + op->dim[0]; /* of start and order */
    uint64_t *start;

    if (op->dim[1] == 0) {
        return FSDP_OK; /* and the tables may have any number of rows */
    }
    start = workspace_get(ws, words + LEVELS * op->dim[1], sizeof(uint64_t));
    if (!start) {
        return FSDP_ERR_NOMEM;
    }
    grads(op, start, start + op->dim[3] + 2, (float *)(start + words));
    return FSDP_OK;
}
