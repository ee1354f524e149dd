/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_gemm.c - GEMM and GEMM_GRAD, blocked for the caches.
 *
 * Both factors are copied to panels in the order in which the tile reads
 * them. Depth is cut into blocks; a tile of C is loaded back before each block
 * but the first, so every element is one chain over all of the depth.
 */
#include "operators.h"
#include "tile.h"
#include "transpose.h"

enum {
#if VEC_WIDTH == 16
    TILE_ROWS = 14, /* 28 sums, 2 vectors of B and an element of A: 31 */
#elif VEC_WIDTH == 8
    TILE_ROWS = 6, /* 12 sums, 2 vectors of B and an element of A: 15 */
#else
    TILE_ROWS = 4,
#endif
    TILE_VECS = 2,
    TILE_COLUMNS = TILE_VECS * VEC_WIDTH,
    /* Blocks: a panel of each factor in the first cache, the block of A in
     * the second. */
    BLOCK_DEPTH = 384,
    BLOCK_ROWS = TILE_ROWS * (VEC_WIDTH == 16 ? 12 : 28),
    BLOCK_COLUMNS = 2048,
    PACKED_A = BLOCK_ROWS * BLOCK_DEPTH,
    PACKED_B = BLOCK_COLUMNS * BLOCK_DEPTH,
};

/* C[m,n] = A B; an element of A or B is found by its two strides. */
struct gemm {
    uint64_t m, n, depth;
    const float *a;
    uint64_t a_row, a_step;
    const float *b;
    uint64_t b_column, b_step;
    float *c;
    uint64_t c_row;
    float *packed_a, *packed_b;
};

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* to[k, i] = from[i * across + k * step] for i < count; +0 up to `width`. */
static void pack_panel(float *to, uint64_t width, uint64_t count,
                       uint64_t depth, const float *from, uint64_t across,
                       uint64_t step)
{
    if (step == 1) {
        transpose(to, width, from, across, count, depth);
    } else if (count == width) {
        for (uint64_t k = 0; k < depth; k++) {
            memcpy(to + k * width, from + k * step, width * sizeof(float));
        }
        return;
    } else {
        for (uint64_t k = 0; k < depth; k++) {
            memcpy(to + k * width, from + k * step, count * sizeof(float));
        }
    }
    for (uint64_t k = 0; k < depth && count < width; k++) {
        memset(to + k * width + count, 0, (width - count) * sizeof(float));
    }
}

/* Panels of `width`, one after the other. */
HOST_INLINE void pack(float *to, const uint64_t width, uint64_t count,
                      uint64_t depth, const float *from, uint64_t across,
                      uint64_t step)
{
    for (uint64_t i = 0; i < count; i += width) {
        pack_panel(to + i * depth, width, smaller(width, count - i), depth,
                   from + i * across, across, step);
    }
}

/* One function for each height of a tile, since the last tile of a column is
 * short. The strides are constants in it. */
#define TILE(rows)                                                          \
    __attribute__((noinline)) static void tile_##rows(const struct tile *t, \
                                                      bool fresh)           \
    {                                                                       \
        struct tile panels = {t->depth, t->a,         1,    TILE_ROWS,      \
                              t->b,     TILE_COLUMNS, t->c, t->c_stride};   \
                                                                            \
        tile_chains(rows, TILE_VECS, &panels, fresh);                       \
    }
TILE(1)
TILE(2)
TILE(3)
TILE(4)
#if VEC_WIDTH >= 8
TILE(5)
TILE(6)
#endif
#if VEC_WIDTH >= 16
TILE(7)
TILE(8)
TILE(9)
TILE(10)
TILE(11)
TILE(12)
TILE(13)
TILE(14)
#endif

static void (*const tiles[TILE_ROWS])(const struct tile *t, bool fresh) = {
    tile_1, tile_2, tile_3, tile_4,
#if VEC_WIDTH >= 8
    tile_5, tile_6,
#endif
#if VEC_WIDTH >= 16
    tile_7, tile_8, tile_9, tile_10, tile_11, tile_12, tile_13, tile_14,
#endif
};

/* A tile that is wider than what is left of C works on a copy. */
static void narrow_tile(struct tile t, uint64_t rows, uint64_t columns,
                        bool fresh)
{
    float copy[TILE_ROWS * TILE_COLUMNS] = {0.0f};
    float *c = t.c;
    uint64_t bytes = columns * sizeof(float);

    for (uint64_t r = 0; r < rows && !fresh; r++) {
        memcpy(copy + r * TILE_COLUMNS, c + r * t.c_stride, bytes);
    }
    t.c = copy;
    /* There are 1 to TILE_ROWS rows.
     * NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage) */
    tiles[rows - 1](&(struct tile){t.depth, t.a, t.row, t.step, t.b, t.b_stride,
                                   copy, TILE_COLUMNS},
                    fresh);
    for (uint64_t r = 0; r < rows; r++) {
        memcpy(c + r * t.c_stride, copy + r * TILE_COLUMNS, bytes);
    }
}

/* The packed blocks: `rows` of A, `columns` of B, as deep as one block. */
static void multiply_block(const struct gemm *g, float *c, uint64_t rows,
                           uint64_t columns, uint64_t depth, bool fresh)
{
    for (uint64_t j = 0; j < columns; j += TILE_COLUMNS) {
        for (uint64_t i = 0; i < rows; i += TILE_ROWS) {
            uint64_t height = smaller(TILE_ROWS, rows - i);
            struct tile t = {depth,
                             g->packed_a + i * depth,
                             1,
                             TILE_ROWS,
                             g->packed_b + j * depth,
                             TILE_COLUMNS,
                             c + i * g->c_row + j,
                             g->c_row};

            if (columns - j < TILE_COLUMNS) {
                narrow_tile(t, height, columns - j, fresh);
            } else {
                tiles[height - 1](&t, fresh);
            }
        }
    }
}

static void multiply_columns(const struct gemm *g, uint64_t j0,
                             uint64_t columns)
{
    for (uint64_t k0 = 0; k0 < g->depth; k0 += BLOCK_DEPTH) {
        uint64_t depth = smaller(BLOCK_DEPTH, g->depth - k0);

        pack(g->packed_b, TILE_COLUMNS, columns, depth,
             g->b + j0 * g->b_column + k0 * g->b_step, g->b_column, g->b_step);
        for (uint64_t i0 = 0; i0 < g->m; i0 += BLOCK_ROWS) {
            uint64_t rows = smaller(BLOCK_ROWS, g->m - i0);

            pack(g->packed_a, TILE_ROWS, rows, depth,
                 g->a + i0 * g->a_row + k0 * g->a_step, g->a_row, g->a_step);
            multiply_block(g, g->c + i0 * g->c_row + j0, rows, columns, depth,
                           k0 == 0);
        }
    }
}

static void multiply(const struct gemm *g)
{
    if (g->depth == 0) {
        for (uint64_t i = 0; i < g->m; i++) {
            memset(g->c + i * g->c_row, 0, g->n * sizeof(float));
        }
        return;
    }
    for (uint64_t j0 = 0; j0 < g->n; j0 += BLOCK_COLUMNS) {
        multiply_columns(g, j0, smaller(BLOCK_COLUMNS, g->n - j0));
    }
}

int HOST_NAME(host_gemm)(const struct fsdp_op *op, struct workspace *ws)
{
    uint64_t n = op->dim[1];
    uint64_t k = op->dim[2];
    bool transposed = (op->flags & FSDP_OP_TRANSPOSE_B) != 0;
    float *packed = workspace_get(ws, PACKED_A + PACKED_B, sizeof(float));
    struct gemm g = {
        .m = op->dim[0],
        .n = n,
        .depth = k,
        .a = op->in[0].p,
        .a_row = k,
        .a_step = 1,
        .b = op->in[1].p,
        .b_column = transposed ? k : 1,
        .b_step = transposed ? 1 : n,
        .c = op->out[0].p,
        .c_row = n,
    };

    if (!packed) {
        return FSDP_ERR_NOMEM;
    }
    g.packed_a = packed;
    g.packed_b = packed + PACKED_A;
    if (g.m > 0 && n > 0) {
        multiply(&g);
    }
    return FSDP_OK;
}

/* tree() over `grains` grains of `rows` rows each; g has the first one's
 * gradients, and `right` has room for as many gradients as the tree is high.
 * The specification is recursive. NOLINTNEXTLINE(misc-no-recursion) */
static void grad_tree(const struct gemm *g, uint64_t grains, float *right)
{
    uint64_t left = (grains + 1) / 2;
    struct gemm rest = *g;

    if (grains == 1) {
        multiply(g);
        return;
    }
    grad_tree(g, left, right);
    rest.a += left * g->depth * g->a_step;
    rest.b += left * g->depth * g->b_step;
    rest.c = right;
    rest.c_row = g->n;
    grad_tree(&rest, grains - left, right + g->m * g->n);
    for (uint64_t i = 0; i < g->m; i++) {
        float *sum = g->c + i * g->c_row;

        HOST_INDEPENDENT
        for (uint64_t j = 0; j < g->n; j++) {
            sum[j] = sum[j] + right[i * g->n + j];
        }
    }
}

/* How many gradients a tree holds at once, beside the result. */
static uint64_t height(uint64_t grains)
{
    uint64_t levels = 0;

    for (; grains > 1; grains = (grains + 1) / 2) {
        levels++;
    }
    return levels;
}

int HOST_NAME(host_gemm_grad)(const struct fsdp_op *op, struct workspace *ws)
{
    uint64_t m = op->dim[0];
    uint64_t n = op->dim[1];
    uint64_t grains = op->dim[3];
    /* A tree is taken in strips, lest its right sides be as large as W. */
    uint64_t strip = grains > 1 ? smaller(n, UINT64_C(16) * TILE_COLUMNS) : n;
    uint64_t tree = grains > 1 ? m * strip * height(grains) : 0;
    float *packed =
        workspace_get(ws, PACKED_A + PACKED_B + tree, sizeof(float));

    if (!packed) {
        return FSDP_ERR_NOMEM;
    }
    for (uint64_t j0 = 0; m > 0 && j0 < n; j0 += strip) {
        struct gemm g = {
            .m = m,
            .n = smaller(strip, n - j0),
            .depth = op->dim[2] / grains,
            .a = op->in[0].p,
            .a_row = 1,
            .a_step = m,
            .b = (const float *)op->in[1].p + j0,
            .b_column = 1,
            .b_step = n,
            .c = (float *)op->out[0].p + j0,
            .c_row = n,
            .packed_a = packed,
            .packed_b = packed + PACKED_A,
        };

        grad_tree(&g, grains, packed + PACKED_A + PACKED_B);
    }
    return FSDP_OK;
}
