/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_large_test.c - operators on more than 2^32 elements, where an index or a
 * grid of 32 bits would wrap. A few rows of a large matrix, at both ends and in
 * the middle, are compared with what the same operator makes of these rows
 * alone. Where there is too little memory, above all under the emulation,
 * matrices are small, and only this file is tested.
 */
#include "cuda_testing.h"

#define ROOM ((uint64_t)60 << 30) /* bytes that the large ones take */

enum {
    PLACES = 4, /* rows that are looked at */
    TIME = 64,
};

static uint64_t rows, width; /* of the matrices */
static uint64_t batches, heads, dim;
static float *large, *other, *row, *kept[PLACES];
static float *host[2]; /* of 16 rows, as `row` */

static uint64_t place(int i)
{
    const uint64_t at[PLACES] = {0, rows / 2 - 1, rows / 2, rows - 1};

    return at[i];
}

static float *take(uint64_t n)
{
    void *p = NULL;

    assert_int_equal(
        cuda_env.device->alloc(cuda_env.device->self, n * sizeof(float), &p),
        FSDP_OK);
    return p;
}

static void give(float *p)
{
    cuda_env.device->free(cuda_env.device->self, p);
}

static void copy(void *to, const void *from, uint64_t n)
{
    assert_int_equal(cuda_env.device->copy(cuda_env.device->self, NULL, to,
                                           from, n * sizeof(float)),
                     FSDP_OK);
}

/* An operator whose ranges are counted in floats, up to the first that is
 * NULL. */
static void run(struct fsdp_op op)
{
    op.size = sizeof(op);
    while (op.n_in < FSDP_OP_MAX_IN && op.in[op.n_in].p) {
        op.in[op.n_in++].bytes *= sizeof(float);
    }
    while (op.n_out < FSDP_OP_MAX_OUT && op.out[op.n_out].p) {
        op.out[op.n_out++].bytes *= sizeof(float);
    }
    assert_int_equal(cuda_env.device->run(cuda_env.device->self, NULL, &op),
                     FSDP_OK);
}

static void fill_with(float *x, uint64_t n, float value)
{
    run((struct fsdp_op){
        .kind = FSDP_OP_FILL, .dim = {n}, .f = {value}, .out = {{x, n}}});
}

/* n random numbers, of which 16 rows have room. */
static void bring(float *to, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        host[0][i] = random_value(DATA_PLAIN);
    }
    copy(to, host[0], n);
}

static void same(const float *a, const float *b, uint64_t n)
{
    copy(host[0], a, n);
    copy(host[1], b, n);
    assert_memory_equal(host[0], host[1], n * sizeof(float));
}

static int open_matrices(void **state)
{
    size_t left = 0;
    size_t all = 0;
    bool full;

    open_device(state);
    assert_int_equal(cudaMemGetInfo(&left, &all), cudaSuccess);
    full = left >= ROOM;
    printf("%s\n", full ? "more than 2^32 elements"
                        : "small: there is too little memory");
    rows = full ? 65664 : 128;
    width = full ? 65536 : 128;
    batches = full ? 21850 : 5;
    heads = full ? 16 : 2;
    dim = full ? 64 : 8;
    large = take(rows * width);
    other = take(rows * width);
    row = take(16 * width);
    for (int i = 0; i < PLACES; i++) {
        kept[i] = take(width);
    }
    for (int i = 0; i < 2; i++) {
        host[i] = malloc(16 * width * sizeof(float));
        assert_non_null(host[i]);
    }
    return 0;
}

static int close_matrices(void **state)
{
    give(large);
    give(other);
    give(row);
    for (int i = 0; i < PLACES; i++) {
        give(kept[i]);
    }
    free(host[0]);
    free(host[1]);
    return close_device(state);
}

/* ---- Products ---------------------------------------------------------- */

static void try_gemm(uint64_t k, uint32_t flags, const float *a, const float *b)
{
    fill_with(large, rows * width, -7.0f);
    run((struct fsdp_op){.kind = FSDP_OP_GEMM,
                         .flags = flags,
                         .dim = {rows, width, k},
                         .in = {{a, rows * k}, {b, k * width}},
                         .out = {{large, rows * width}}});
    for (int i = 0; i < PLACES; i++) {
        run((struct fsdp_op){.kind = FSDP_OP_GEMM,
                             .flags = flags,
                             .dim = {1, width, k},
                             .in = {{a + place(i) * k, k}, {b, k * width}},
                             .out = {{row, width}}});
        same(large + place(i) * width, row, width);
    }
}

/* A row of the gradient is a column of x. */
static void try_gemm_grad(uint64_t k, uint64_t grains, const float *x,
                          const float *g)
{
    fill_with(large, rows * width, -7.0f);
    run((struct fsdp_op){.kind = FSDP_OP_GEMM_GRAD,
                         .dim = {rows, width, k, grains},
                         .in = {{x, k * rows}, {g, k * width}},
                         .out = {{large, rows * width}}});
    for (int i = 0; i < PLACES; i++) {
        for (uint64_t r = 0; r < k; r++) {
            copy(kept[0] + r, x + r * rows + place(i), 1);
        }
        run((struct fsdp_op){.kind = FSDP_OP_GEMM_GRAD,
                             .dim = {1, width, k, grains},
                             .in = {{kept[0], k}, {g, k * width}},
                             .out = {{row, width}}});
        same(large + place(i) * width, row, width);
    }
}

/* With 8 terms tiles are whole, with 10 not. */
UNIT_TEST(test_products)
{
    float *a = take(10 * rows);
    float *b = take(10 * width);

    bring(a, 10 * rows);
    bring(b, 10 * width);
    for (uint64_t k = 8; k <= 10; k += 2) {
        try_gemm(k, 0, a, b);
        try_gemm(k, FSDP_OP_TRANSPOSE_B, a, b);
        try_gemm_grad(k, 1, a, b);
    }
    try_gemm_grad(8, 2, a, b);
    give(a);
    give(b);
}

/* ---- Rows -------------------------------------------------------------- */

/* A few rows of `large` that are like no others; they are kept, too. */
static void bring_rows(void)
{
    fill_with(large, rows * width, 0.5f);
    for (int i = 0; i < PLACES; i++) {
        bring(kept[i], width);
        copy(large + place(i) * width, kept[i], width);
    }
}

UNIT_TEST(test_elements)
{
    float *b = take(width);

    bring(b, width);
    bring_rows();
    run((struct fsdp_op){.kind = FSDP_OP_SCALE,
                         .dim = {rows * width},
                         .f = {3.0f},
                         .in = {{large, rows * width}},
                         .out = {{large, rows * width}}});
    run((struct fsdp_op){.kind = FSDP_OP_BIAS,
                         .dim = {rows, width},
                         .in = {{large, rows * width}, {b, width}},
                         .out = {{large, rows * width}}});
    for (int i = 0; i < PLACES; i++) {
        run((struct fsdp_op){.kind = FSDP_OP_SCALE,
                             .dim = {width},
                             .f = {3.0f},
                             .in = {{kept[i], width}},
                             .out = {{kept[i], width}}});
        run((struct fsdp_op){.kind = FSDP_OP_BIAS,
                             .dim = {1, width},
                             .in = {{kept[i], width}, {b, width}},
                             .out = {{kept[i], width}}});
        same(large + place(i) * width, kept[i], width);
    }
    give(b);
}

UNIT_TEST(test_losses)
{
    float *ids = take(rows);
    float *losses = take(rows);

    fill_with(ids, rows, 0.0f); /* the bits of the id 0 */
    bring_rows();
    run((struct fsdp_op){.kind = FSDP_OP_CROSS_ENTROPY,
                         .dim = {rows, width},
                         .f = {0.25f},
                         .in = {{large, rows * width}, {ids, rows}},
                         .out = {{losses, rows}, {large, rows * width}}});
    for (int i = 0; i < PLACES; i++) {
        run((struct fsdp_op){.kind = FSDP_OP_CROSS_ENTROPY,
                             .dim = {1, width},
                             .f = {0.25f},
                             .in = {{kept[i], width}, {ids, 1}},
                             .out = {{row, 1}, {kept[i], width}}});
        same(losses + place(i), row, 1);
        same(large + place(i) * width, kept[i], width);
    }
    give(ids);
    give(losses);
}

/* All rows but the last are +0. */
UNIT_TEST(test_column_sums)
{
    fill_with(large, rows * width, 0.0f);
    bring(kept[0], width);
    copy(large + (rows - 1) * width, kept[0], width);
    run((struct fsdp_op){.kind = FSDP_OP_COLUMN_SUM,
                         .dim = {rows, width, 1},
                         .in = {{large, rows * width}},
                         .out = {{row, width}}});
    same(row, kept[0], width);
}

/* The matrix is a table; and the gradient of one. */
UNIT_TEST(test_tables)
{
    const uint64_t n = PLACES * width;
    float *ids = take(PLACES);
    float *none = take(n);
    int32_t id[PLACES];

    for (int i = 0; i < PLACES; i++) {
        id[i] = (int32_t)place(i);
    }
    copy(ids, id, PLACES);
    fill_with(none, n, 0.0f);
    bring_rows();
    run((struct fsdp_op){
        .kind = FSDP_OP_EMBEDDING,
        .dim = {PLACES, width, PLACES, rows},
        .in = {{ids, PLACES}, {large, rows * width}, {none, n}},
        .out = {{row, n}}});
    fill_with(large, rows * width, -7.0f);
    run((struct fsdp_op){.kind = FSDP_OP_EMBEDDING_GRAD,
                         .dim = {PLACES, width, PLACES, rows, 1},
                         .in = {{ids, PLACES}, {row, n}},
                         .out = {{large, rows * width}, {none, n}}});
    for (int i = 0; i < PLACES; i++) {
        same(row + (uint64_t)i * width, kept[i], width);
        same(large + place(i) * width, kept[i], width);
        same(none + (uint64_t)i * width, kept[i], width);
    }
    give(ids);
    give(none);
}

/* Rows of an odd number of bytes, as many as there are words elsewhere. */
UNIT_TEST(test_bytes)
{
    const uint64_t bytes = rows * width + 1;
    struct fsdp_op op = {.size = sizeof(op),
                         .kind = FSDP_OP_COPY_2D,
                         .dim = {3, bytes, bytes + 1, bytes},
                         .n_in = 1,
                         .n_out = 1,
                         .in = {{large, 3 * bytes}},
                         .out = {{other, 3 * bytes + 2}}};
    const unsigned char *from = (const unsigned char *)large;
    const unsigned char *to = (const unsigned char *)other;

    bring_rows();
    fill_with(other, rows * width, -7.0f);
    assert_int_equal(cuda_env.device->run(cuda_env.device->self, NULL, &op),
                     FSDP_OK);
    for (uint64_t r = 0; r < 3; r++) {
        same((const void *)(to + r * (bytes + 1)),
             (const void *)(from + r * bytes), 64);
        same((const void *)(to + r * (bytes + 1) + bytes - 256),
             (const void *)(from + (r + 1) * bytes - 256), 64);
    }
}

/* ---- Attention --------------------------------------------------------- */

/* The last sequence by itself. */
UNIT_TEST(test_attention)
{
    const uint64_t steps = batches * TIME;
    const uint64_t n = heads * dim;
    const uint64_t at = (batches - 1) * TIME;
    float *o = take(steps * n);
    float *d_o = take(steps * n);
    float *stat = take(steps * heads * 2);
    float *small_o = take(TIME * n);
    float *small_stat = take(TIME * heads * 2);
    float *small = take(TIME * n * 3);

    fill_with(large, steps * n * 3, 0.5f);
    fill_with(d_o, steps * n, 0.5f);
    for (uint64_t t = 0; t < TIME; t++) {
        bring(large + (at + t) * n * 3, n * 3);
        bring(d_o + (at + t) * n, n);
    }
    run((struct fsdp_op){.kind = FSDP_OP_ATTENTION,
                         .dim = {batches, TIME, heads, dim},
                         .f = {0.125f},
                         .in = {{large, steps * n * 3}},
                         .out = {{o, steps * n}, {stat, steps * heads * 2}}});
    run((struct fsdp_op){
        .kind = FSDP_OP_ATTENTION,
        .dim = {1, TIME, heads, dim},
        .f = {0.125f},
        .in = {{large + at * n * 3, TIME * n * 3}},
        .out = {{small_o, TIME * n}, {small_stat, TIME * heads * 2}}});
    run((struct fsdp_op){.kind = FSDP_OP_ATTENTION_BACKWARD,
                         .dim = {batches, TIME, heads, dim},
                         .f = {0.125f},
                         .in = {{large, steps * n * 3},
                                {o, steps * n},
                                {stat, steps * heads * 2},
                                {d_o, steps * n}},
                         .out = {{other, steps * n * 3}}});
    run((struct fsdp_op){.kind = FSDP_OP_ATTENTION_BACKWARD,
                         .dim = {1, TIME, heads, dim},
                         .f = {0.125f},
                         .in = {{large + at * n * 3, TIME * n * 3},
                                {small_o, TIME * n},
                                {small_stat, TIME * heads * 2},
                                {d_o + at * n, TIME * n}},
                         .out = {{small, TIME * n * 3}}});
    for (uint64_t t = 0; t < TIME; t++) {
        same(o + (at + t) * n, small_o + t * n, n);
        same(stat + (at + t) * heads * 2, small_stat + t * heads * 2,
             heads * 2);
        same(other + (at + t) * n * 3, small + t * n * 3, n * 3);
    }
    give(o);
    give(d_o);
    give(stat);
    give(small_o);
    give(small_stat);
    give(small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),  cmocka_unit_test(test_elements),
        cmocka_unit_test(test_losses),    cmocka_unit_test(test_column_sums),
        cmocka_unit_test(test_tables),    cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_attention),
    };
    int skip = skip_without_gpu();

    return skip != 0 ? skip
                     : cmocka_run_group_tests(tests, open_matrices,
                                              close_matrices) != 0;
}
