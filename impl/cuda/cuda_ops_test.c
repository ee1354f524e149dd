/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_ops_test.c - every operator on the CUDA device gives the bits of the
 * plain device: sizes around those of warps, tiles and blocks, places in
 * memory aligned to no vector, data with NaN, infinities, subnormals and zeros
 * of both signs; and refuses what is none.
 */
#include "cuda_testing.h"

static const float sgd[8] = {0.1f, 0.01f};
static const float no_decay[8] = {0.1f, 0.0f, 0.9f};
static const float momentum[8] = {0.1f, 0.01f, 0.9f};
static const float adamw[8] = {1e-3f, 0.1f, 0.9f, 0.999f, 1e-8f, 0.9f, 0.999f};
static const float eps[8] = {1e-5f};

static const uint64_t lengths[] = {0, 1, 3, 31, 32, 65, 257, 5003};
static const uint64_t widths[] = {0, 1, 2, 31, 33, 64, 100};
enum {
    N_LENGTHS = sizeof(lengths) / sizeof(lengths[0]),
    N_WIDTHS = sizeof(widths) / sizeof(widths[0]),
};

UNIT_TEST(test_elementwise)
{
    for (int i = 0; i < N_LENGTHS; i++) {
        uint64_t n = lengths[i];

        TRY(FSDP_OP_FILL, "| a", no_f, n);
        TRY(FSDP_OP_SCALE, "a | =0", no_f, n);
        TRY(FSDP_OP_ADD, "a a | a", no_f, n);
        TRY(FSDP_OP_ADD, "a a | =0", no_f, n);
        TRY(FSDP_OP_ADD, "a a | =1", no_f, n);
        TRY(FSDP_OP_RELU, "a | a", no_f, n);
        TRY(FSDP_OP_RELU, "a | =0", no_f, n);
        TRY(FSDP_OP_RELU_BACKWARD, "a a | a", no_f, n);
        TRY(FSDP_OP_RELU_BACKWARD, "a a | =1", no_f, n);
        TRY(FSDP_OP_GELU, "a | a", no_f, n);
        TRY(FSDP_OP_GELU_BACKWARD, "a a | a", no_f, n);
        TRY(FSDP_OP_GELU_BACKWARD, "a a | =1", no_f, n);
        TRY(FSDP_OP_SGD, "a a | =0", sgd, n);
        TRY(FSDP_OP_SGD, "a a | =0", no_decay, n);
        TRY(FSDP_OP_MOMENTUM, "a a a | =0 =2", momentum, n);
        TRY(FSDP_OP_MOMENTUM, "a a a | =0 =2", no_decay, n);
        TRY(FSDP_OP_ADAMW, "a a a a | =0 =2 =3", adamw, n);
    }
}

UNIT_TEST(test_rows)
{
    for (int i = 0; i < N_WIDTHS; i++) {
        uint64_t rows = widths[(i * 3 + 2) % N_WIDTHS];
        uint64_t n = widths[i];

        TRY(FSDP_OP_BIAS, "ab b | ab", no_f, rows, n);
        TRY(FSDP_OP_BIAS, "ab b | =0", no_f, rows, n);
        TRY(FSDP_OP_NORM, "ab b b | ab a2", eps, rows, n);
        TRY(FSDP_OP_NORM_BACKWARD, "ab b a2 ab | ab", no_f, rows, n);
        TRY(FSDP_OP_MSE, "ab ab | a ab", no_f, rows, n);
        TRY(FSDP_OP_LINEAR_LOSS, "ab ab | a ab", no_f, rows, n);
        TRY(FSDP_OP_EMBEDDING, "#a db cb | ab", no_f, rows, n, 3, 9);
        if (n > 0 || rows == 0) {
            TRY(FSDP_OP_CROSS_ENTROPY, "ab #a | a ab", no_f, rows, n);
            TRY(FSDP_OP_CROSS_ENTROPY, "ab #a | a =0", no_f, rows, n);
        }
    }
    TRY(FSDP_OP_CROSS_ENTROPY, "ab #a | a =0", no_f, 3, 1000);
    /* Rows that stay in registers. */
    for (uint64_t n = 256; n <= 1024; n += 256) {
        TRY(FSDP_OP_NORM, "ab b b | ab a2", eps, 9, n);
        TRY(FSDP_OP_NORM_BACKWARD, "ab b a2 ab | ab", no_f, 9, n);
        TRY(FSDP_OP_MSE, "ab ab | a ab", no_f, 9, n);
        TRY(FSDP_OP_LINEAR_LOSS, "ab ab | a ab", no_f, 9, n);
        TRY(FSDP_OP_CROSS_ENTROPY, "ab #a | a ab", no_f, 9, n);
        TRY(FSDP_OP_CROSS_ENTROPY, "ab #a | a =0", no_f, 9, n);
        TRY(FSDP_OP_EMBEDDING, "#a db cb | ab", no_f, 20, n, 3, 9);
    }
    TRY(FSDP_OP_EMBEDDING, "#a db cb | ab", no_f, 257, 5, 64, 9);
    TRY(FSDP_OP_EMBEDDING, "#a db cb | ab", no_f, 700, 3, 1, 9);
}

UNIT_TEST(test_grains)
{
    static const uint64_t grains[] = {1, 2, 3, 7, 8, 64};
    static const uint64_t rows[] = {0, 1, 5, 64, 65, 600};

    for (int g = 0; g < 6; g++) {
        for (int r = 0; r < 6; r++) {
            uint64_t many = rows[r] * grains[g];
            uint64_t n = widths[(g + r) % N_WIDTHS];

            if (many > 1300) {
                continue;
            }
            TRY(FSDP_OP_COLUMN_SUM, "ab | b", no_f, many, n, grains[g]);
            TRY(FSDP_OP_NORM_GRAD, "ab a2 ab | b b", no_f, many, n, grains[g]);
            TRY(FSDP_OP_GEMM_GRAD, "ca cb | ab", no_f, n, 35, many, grains[g]);
            TRY(FSDP_OP_EMBEDDING_GRAD, "#a ab | db cb", no_f, many, n, 5, 11,
                grains[g]);
            TRY(FSDP_OP_EMBEDDING_GRAD, "#a ab | db cb", no_f, many, n, 64, 70,
                grains[g]);
        }
    }
    TRY(FSDP_OP_EMBEDDING_GRAD, "#a ab | db cb", no_f, 0, 33, 0, 11, 1);
    TRY(FSDP_OP_EMBEDDING, "#a db cb | ab", no_f, 0, 33, 0, 11);
    /* More rows than a block has at once. */
    TRY(FSDP_OP_COLUMN_SUM, "ab | b", no_f, 16500, 9, 1);
    TRY(FSDP_OP_COLUMN_SUM, "ab | b", no_f, 16640, 3, 2);
    TRY(FSDP_OP_NORM_GRAD, "ab a2 ab | b b", no_f, 8257, 9, 1);
}

/* All three sizes of tiles, with and without edges. */
UNIT_TEST(test_gemm)
{
    for (int i = 0; i < N_WIDTHS; i++) {
        for (int j = 0; j < N_WIDTHS; j++) {
            TRY(FSDP_OP_GEMM, "ac cb | ab", no_f, widths[i], widths[j],
                widths[(i * 5 + j * 3) % N_WIDTHS]);
        }
    }
    TRY(FSDP_OP_GEMM, "ac cb | ab", no_f, 128, 256, 48);
    TRY(FSDP_OP_GEMM, "ac cb | ab", no_f, 130, 257, 61);
    TRY(FSDP_OP_GEMM, "ac cb | ab", no_f, 65, 129, 1201);
    TRY(FSDP_OP_GEMM_GRAD, "ca cb | ab", no_f, 130, 129, 77, 1);
    TRY(FSDP_OP_GEMM_GRAD, "ca cb | ab", no_f, 31, 45, 1201, 1);
}

UNIT_TEST(test_attention)
{
    static const uint64_t times[] = {0, 1, 15, 17, 64, 65};
    static const uint64_t dims[] = {0, 1, 8, 17, 64, 70};
    static const float scale[8] = {0.25f};

    for (int i = 0; i < 6; i++) {
        for (int t = 0; t < 6; t++) {
            uint64_t heads = 1 + (uint64_t)t % 3;

            TRY(FSDP_OP_ATTENTION, "abcd3 | abcd abc2", scale, 2, times[t],
                heads, dims[i]);
            TRY(FSDP_OP_ATTENTION_BACKWARD, "abcd3 abcd abc2 abcd | abcd3",
                scale, 2, times[t], heads, dims[i]);
        }
    }
    TRY(FSDP_OP_ATTENTION, "abcd3 | abcd abc2", scale, 0, 5, 3, 4);
    TRY(FSDP_OP_ATTENTION, "abcd3 | abcd abc2", scale, 1, 130, 1, 8);
    TRY(FSDP_OP_ATTENTION_BACKWARD, "abcd3 abcd abc2 abcd | abcd3", scale, 1,
        130, 1, 8);
}

/* Shapes that tiles divide, at places that vectors may have: two tiles and
 * more of each kind, for the few multiprocessors of the emulation and for the
 * many of a GPU. */
UNIT_TEST(test_whole_tiles)
{
    static const float scale[8] = {0.25f};

    TRY_ALIGNED(FSDP_OP_GEMM, "ac cb | ab", no_f, 256, 128, 48);
    TRY_ALIGNED(FSDP_OP_GEMM, "ac cb | ab", no_f, 384, 256, 16);
    TRY_ALIGNED(FSDP_OP_GEMM, "ac cb | ab", no_f, 96, 96, 32);
    TRY_ALIGNED(FSDP_OP_GEMM, "ac cb | ab", no_f, 192, 144, 64);
    TRY_ALIGNED(FSDP_OP_GEMM, "ac cb | ab", no_f, 32, 64, 48);
    TRY_ALIGNED(FSDP_OP_GEMM, "ac cb | ab", no_f, 256, 128, 41);
    TRY_ALIGNED(FSDP_OP_GEMM, "ac cb | ab", no_f, 256, 128, 0);
    TRY_ALIGNED(FSDP_OP_GEMM, "ac cb | ab", no_f, 32, 64, 0);
    TRY_ALIGNED(FSDP_OP_GEMM_GRAD, "ca cb | ab", no_f, 256, 128, 0, 1);
    TRY_ALIGNED(FSDP_OP_GEMM_GRAD, "ca cb | ab", no_f, 96, 144, 0, 1);
    TRY_ALIGNED(FSDP_OP_GEMM_GRAD, "ca cb | ab", no_f, 256, 128, 48, 1);
    TRY_ALIGNED(FSDP_OP_GEMM_GRAD, "ca cb | ab", no_f, 96, 144, 64, 1);
    TRY_ALIGNED(FSDP_OP_GEMM_GRAD, "ca cb | ab", no_f, 64, 32, 16, 1);
    TRY_ALIGNED(FSDP_OP_ATTENTION, "abcd3 | abcd abc2", scale, 1, 128, 2, 64);
    TRY_ALIGNED(FSDP_OP_ATTENTION, "abcd3 | abcd abc2", scale, 2, 64, 1, 128);
    TRY_ALIGNED(FSDP_OP_ATTENTION_BACKWARD, "abcd3 abcd abc2 abcd | abcd3",
                scale, 1, 128, 2, 64);
    TRY_ALIGNED(FSDP_OP_ATTENTION_BACKWARD, "abcd3 abcd abc2 abcd | abcd3",
                scale, 2, 64, 1, 128);
    TRY_LARGE(FSDP_OP_GEMM, "ac cb | ab", no_f, 1408, 1536, 32);
    TRY_LARGE(FSDP_OP_GEMM_GRAD, "ca cb | ab", no_f, 768, 768, 48, 1);
    TRY_LARGE(FSDP_OP_ATTENTION, "abcd3 | abcd abc2", scale, 6, 128, 11, 64);
    TRY_LARGE(FSDP_OP_ATTENTION_BACKWARD, "abcd3 abcd abc2 abcd | abcd3", scale,
              6, 128, 11, 64);
}

enum {
    N_HALF = 40000
};

/* Runs an operator on two arrays, the second of which it reads if `adds`, and
 * writes an array of `bytes`; the plain device has the right bits. */
static void try_half(uint32_t kind, uint32_t a, uint32_t b, bool adds,
                     uint32_t y)
{
    static uint32_t memory[3 * N_HALF];
    static uint32_t want[3 * N_HALF];
    struct trial t = {.op = {.size = sizeof(t.op),
                             .kind = kind,
                             .aux = {a, b},
                             .dim = {N_HALF},
                             .f = {0.37f},
                             .n_in = adds                   ? 2
                                     : kind == FSDP_OP_FILL ? 0
                                                            : 1,
                             .n_out = 1}};
    uint64_t at = kind == FSDP_OP_SCALE ? 0 : (uint64_t)2 * N_HALF;
    union {
        uint32_t *bits;
        float *x;
    } there = {memory};

    /* Sums are never NaN, which could be any: no exponent is all ones. */
    for (uint32_t i = 0; i < 3 * N_HALF; i++) {
        uint32_t special = i % 5 == 0 ? 0x7f800000u : 0;

        want[i] = adds ? random_bits() & 0xf3fff3ffu : random_bits() | special;
    }
    memcpy(memory, want, sizeof(want));
    t.op.in[0] = (struct fsdp_in){want, N_HALF * fsdp_dtype_bytes(a)};
    t.op.in[1] = (struct fsdp_in){want + N_HALF, N_HALF * fsdp_dtype_bytes(b)};
    t.op.out[0] = (struct fsdp_out){want + at, N_HALF * fsdp_dtype_bytes(y)};
    run_plain(&t);
    t.op.in[0].p = memory;
    t.op.in[1].p = memory + N_HALF;
    t.op.out[0].p = memory + at;
    assert_int_equal(run_on_device(&t, there.x, 3 * N_HALF), FSDP_OK);
    assert_memory_equal(memory, want, sizeof(want));
}

/* Bits, so that NaN counts: a cast keeps its sign and payload. */
UNIT_TEST(test_halves)
{
    static const uint32_t floats[] = {FSDP_DTYPE_F32, FSDP_DTYPE_BF16,
                                      FSDP_DTYPE_F16};

    for (int a = 0; a < 3; a++) {
        for (int b = 0; b < 3; b++) {
            try_half(FSDP_OP_CAST, floats[a], floats[b], false, floats[b]);
            try_half(FSDP_OP_ADD, floats[a], floats[b], true, floats[a]);
        }
        try_half(FSDP_OP_SCALE, floats[a], 0, false, floats[a]);
        try_half(FSDP_OP_FILL, floats[a], 0, false, floats[a]);
    }
}

static void try_copy(uint64_t rows, uint64_t bytes, uint64_t to, uint64_t from,
                     uint64_t shift)
{
    static unsigned char memory[4096];
    static unsigned char want[4096];
    struct trial t = {.op = {.size = sizeof(t.op),
                             .kind = FSDP_OP_COPY_2D,
                             .dim = {rows, bytes, to, from},
                             .n_in = 1,
                             .n_out = 1,
                             .in = {{want, (rows - 1) * from + bytes}},
                             .out = {{want + 2048, (rows - 1) * to + bytes}}}};
    const struct fsdp_device *d = cuda_env.device;
    unsigned char *there;
    void *p = NULL;

    for (int i = 0; i < 4096; i++) {
        memory[i] = (unsigned char)random_bits();
    }
    memcpy(want, memory, sizeof(want));
    t.op.in[0].p = want + shift;
    run_plain(&t);
    assert_int_equal(d->alloc(d->self, sizeof(memory), &p), FSDP_OK);
    there = p;
    assert_int_equal(d->copy(d->self, NULL, p, memory, sizeof(memory)), 0);
    t.op.in[0].p = there + shift;
    t.op.out[0].p = there + 2048;
    assert_int_equal(d->run(d->self, NULL, &t.op), FSDP_OK);
    assert_int_equal(d->copy(d->self, NULL, memory, p, sizeof(memory)), 0);
    assert_memory_equal(memory, want, sizeof(want));
    d->free(d->self, p);
}

UNIT_TEST(test_copy_2d)
{
    try_copy(1, 7, 0, 0, 1);
    try_copy(3, 5, 7, 11, 1);
    try_copy(4, 12, 16, 12, 4);
    try_copy(4, 12, 16, 12, 3);
    try_copy(5, 8, 8, 0, 0);
    try_copy(5, 48, 64, 96, 0); /* sixteen bytes at once */
}

/* An id is found on the device: the failure comes with the wait. */
UNIT_TEST(test_bad_id)
{
    static const int32_t bad[] = {-1, 9};

    for (int i = 0; i < 2; i++) {
        struct trial t = {.op = {.size = sizeof(t.op),
                                 .kind = FSDP_OP_EMBEDDING,
                                 .dim = {3, 4, 3, 9}},
                          .ranges = "#a db cb | ab"};
        float memory[1024] = {0};

        assert_true(lay_out(&t, memory, 0) < 1024);
        memcpy(memory + ((const float *)t.op.in[0].p - memory) + 1, &bad[i],
               sizeof(bad[i]));
        assert_int_equal(run_on_device(&t, memory, 1024), FSDP_ERR_INVALID);
        assert_string_equal(cuda_error.message,
                            "an operator: met an id that is out of range");
        cuda_close(&cuda_env);
        assert_int_equal(open_alone(), FSDP_OK);
    }
}

UNIT_TEST(test_refused)
{
    const struct fsdp_device *d = cuda_env.device;
    struct fsdp_op op = {.size = sizeof(op), .kind = FSDP_OP_ADD, .dim = {4}};

    assert_int_equal(d->run(d->self, NULL, &op), FSDP_ERR_INVALID);
    op.kind = FSDP_OP_NORM_SUM;
    assert_int_equal(d->run(d->self, NULL, &op), FSDP_ERR_UNSUPPORTED);
    op.kind = FSDP_N_OPS;
    assert_int_equal(d->run(d->self, NULL, &op), FSDP_ERR_UNSUPPORTED);
    op.kind = FSDP_OP_FILL;
    op.size = 8;
    assert_int_equal(d->run(d->self, NULL, &op), FSDP_ERR_INVALID);
}

/* Where no element can lie: the call says so, and the device works on. */
UNIT_TEST(test_misplaced)
{
    const struct fsdp_device *d = cuda_env.device;
    struct fsdp_op op = {.size = sizeof(op),
                         .kind = FSDP_OP_CAST,
                         .aux = {FSDP_DTYPE_F32, FSDP_DTYPE_BF16},
                         .dim = {4},
                         .n_in = 1,
                         .n_out = 1};
    unsigned char *there;
    void *p = NULL;

    assert_int_equal(d->alloc(d->self, 256, &p), FSDP_OK);
    there = p;
    for (uint32_t in = 0; in < 8; in++) {
        for (uint32_t out = 0; out < 8; out++) {
            int want = in % 4 == 0 && out % 2 == 0 ? FSDP_OK : FSDP_ERR_INVALID;

            op.in[0] = (struct fsdp_in){there + in, 16};
            op.out[0] = (struct fsdp_out){there + 128 + out, 8};
            assert_int_equal(d->run(d->self, NULL, &op), want);
        }
    }
    op.kind = FSDP_OP_RELU;
    op.out[0] = (struct fsdp_out){there + 130, 16};
    op.in[0] = (struct fsdp_in){there, 16};
    assert_int_equal(d->run(d->self, NULL, &op), FSDP_ERR_INVALID);
    op.dim[0] = 0; /* nothing lies there */
    op.in[0].bytes = op.out[0].bytes = 0;
    assert_int_equal(d->run(d->self, NULL, &op), FSDP_OK);
    d->free(d->self, p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elementwise), cmocka_unit_test(test_rows),
        cmocka_unit_test(test_grains),      cmocka_unit_test(test_gemm),
        cmocka_unit_test(test_attention),   cmocka_unit_test(test_whole_tiles),
        cmocka_unit_test(test_halves),      cmocka_unit_test(test_copy_2d),
        cmocka_unit_test(test_bad_id),      cmocka_unit_test(test_refused),
        cmocka_unit_test(test_misplaced),
    };
    int skip = skip_without_gpu();

    return skip != 0
               ? skip
               : cmocka_run_group_tests(tests, open_device, close_device) != 0;
}
