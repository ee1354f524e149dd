/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_ops_test.c - every operator at every level gives the bits of the plain
 * device, for odd sizes, places in memory that are aligned to no vector, and
 * data with NaN, infinities, subnormals and zeros of both signs.
 */
#include "host_ops_testing.h"

UNIT_TEST(test_elementwise)
{
    const float sgd[8] = {0.1f, 0.01f};
    const float no_decay[8] = {0.1f, 0.0f, 0.9f};
    const float momentum[8] = {0.1f, 0.01f, 0.9f};
    const float adamw[8] = {1e-3f, 0.1f, 0.9f, 0.999f, 1e-8f, 0.9f, 0.999f};

    for (int i = 0; i < N_SIZES; i++) {
        uint64_t n = sizes[i] * 5 / 4;

        try_dims(FSDP_OP_FILL, "| a", n, 0, 0, 0, 0, no_f);
        try_dims(FSDP_OP_SCALE, "a | =0", n, 0, 0, 0, 0, no_f);
        try_dims(FSDP_OP_ADD, "a a | a", n, 0, 0, 0, 0, no_f);
        try_dims(FSDP_OP_ADD, "a a | =0", n, 0, 0, 0, 0, no_f);
        try_dims(FSDP_OP_ADD, "a a | =1", n, 0, 0, 0, 0, no_f);
        try_dims(FSDP_OP_RELU, "a | a", n, 0, 0, 0, 0, no_f);
        try_dims(FSDP_OP_RELU, "a | =0", n, 0, 0, 0, 0, no_f);
        try_dims(FSDP_OP_RELU_BACKWARD, "a a | a", n, 0, 0, 0, 0, no_f);
        try_dims(FSDP_OP_RELU_BACKWARD, "a a | =1", n, 0, 0, 0, 0, no_f);
        try_dims(FSDP_OP_GELU, "a | a", n, 0, 0, 0, 0, no_f);
        try_dims(FSDP_OP_GELU_BACKWARD, "a a | a", n, 0, 0, 0, 0, no_f);
        try_dims(FSDP_OP_GELU_BACKWARD, "a a | =1", n, 0, 0, 0, 0, no_f);
        try_dims(FSDP_OP_SGD, "a a | =0", n, 0, 0, 0, 0, sgd);
        try_dims(FSDP_OP_SGD, "a a | =0", n, 0, 0, 0, 0, no_decay);
        try_dims(FSDP_OP_MOMENTUM, "a a a | =0 =2", n, 0, 0, 0, 0, momentum);
        try_dims(FSDP_OP_MOMENTUM, "a a a | =0 =2", n, 0, 0, 0, 0, no_decay);
        try_dims(FSDP_OP_ADAMW, "a a a a | =0 =2 =3", n, 0, 0, 0, 0, adamw);
    }
}

static const uint32_t floats[] = {FSDP_DTYPE_F32, FSDP_DTYPE_BF16,
                                  FSDP_DTYPE_F16};

enum {
    N_HALF = 70001
};

/* Runs an operator whose output is `bytes` long on the plain device and at each
 * level, and compares bits, so that NaN counts. In place if its output is
 * in[0]. */
static void try_half(struct fsdp_op op, uint64_t bytes)
{
    static uint32_t memory[2][N_HALF];
    const void *first = op.in[0].p;
    bool in_place = op.out[0].p == first;
    struct fsdp_device plain;

    assert_int_equal(ref_device_open(&plain), FSDP_OK);
    for (int level = -1; level < SIMD_N_LEVELS; level++) {
        struct trial t = {.op = op};
        uint32_t *out = memory[level < 0 ? 0 : 1];

        if (level >= 0 && !simd_has((enum simd_level)level)) {
            continue;
        }
        if (in_place) {
            memcpy(out, first, bytes);
            t.op.in[0].p = out;
        }
        t.op.out[0] = (struct fsdp_out){out, bytes};
        if (level < 0) {
            assert_int_equal(plain.run(plain.self, NULL, &t.op), FSDP_OK);
        } else {
            run_level(&t, (enum simd_level)level);
            assert_memory_equal(memory[1], memory[0], bytes);
        }
    }
}

/* Operators on float32 or 16 bits: among the numbers are all values of 16 bits,
 * and all exponents. */
UNIT_TEST(test_halves)
{
    static uint32_t x[N_HALF];
    static uint32_t y[N_HALF];

    for (uint32_t i = 0; i < N_HALF; i++) {
        x[i] = i < 66000 ? i << 16 | (i % 3) << 14 | (i & 1) : random_bits();
        y[i] = (random_bits() & ~0x7f800000u) | (random_bits() % 256) << 23;
    }
    for (uint32_t k = 0; k < 9; k++) {
        uint32_t a = floats[k / 3];
        uint32_t b = floats[k % 3];
        uint64_t a_bytes = N_HALF * fsdp_dtype_bytes(a);
        uint64_t b_bytes = N_HALF * fsdp_dtype_bytes(b);
        struct fsdp_op op = {.size = sizeof(op),
                             .kind = FSDP_OP_CAST,
                             .aux = {a, b},
                             .dim = {N_HALF},
                             .n_in = 1,
                             .n_out = 1,
                             .in = {{x, a_bytes}, {y, b_bytes}}};

        try_half(op, b_bytes);
        op.kind = FSDP_OP_SCALE;
        op.f[0] = 0.37f;
        op.out[0].p = x;
        try_half(op, a_bytes);
        op.kind = FSDP_OP_FILL;
        op.out[0].p = NULL;
        op.n_in = 0;
        try_half(op, a_bytes);
    }
}

/* A sum that is NaN may be any NaN, so there are none in here. */
UNIT_TEST(test_sums_of_halves)
{
    static uint32_t x[N_HALF];
    static uint32_t y[N_HALF];

    for (uint32_t i = 0; i < N_HALF; i++) {
        x[i] = random_bits() & 0xf7fff7ffu;
        y[i] = random_bits() & 0xf3fff3ffu;
    }
    for (uint32_t k = 0; k < 9; k++) {
        uint32_t a = floats[k / 3];
        uint32_t b = floats[k % 3];
        struct fsdp_op op = {.size = sizeof(op),
                             .kind = FSDP_OP_ADD,
                             .aux = {a, b},
                             .dim = {N_HALF},
                             .n_in = 2,
                             .n_out = 1,
                             .in = {{x, N_HALF * fsdp_dtype_bytes(a)},
                                    {y, N_HALF * fsdp_dtype_bytes(b)}}};

        try_half(op, N_HALF * fsdp_dtype_bytes(a));
        op.out[0].p = x;
        try_half(op, N_HALF * fsdp_dtype_bytes(a));
    }
}

UNIT_TEST(test_copy_2d)
{
    unsigned char from[64];
    unsigned char to[64];

    for (unsigned char i = 0; i < 64; i++) {
        from[i] = i;
    }
    for (unsigned int level = 0; level < SIMD_N_LEVELS; level++) {
        struct trial t = {.op = {.size = sizeof(t.op),
                                 .kind = FSDP_OP_COPY_2D,
                                 .dim = {3, 5, 7, 11},
                                 .n_in = 1,
                                 .n_out = 1,
                                 .in = {{from + 1, 27}},
                                 .out = {{to + 2, 19}}}};

        if (!simd_has((enum simd_level)level)) {
            continue;
        }
        memset(to, 0xee, sizeof(to));
        run_level(&t, (enum simd_level)level);
        for (int i = 0; i < 64; i++) {
            int at = i - 2;
            bool inside = at >= 0 && at < 19 && at % 7 < 5;

            assert_int_equal(to[i], inside ? 1 + at / 7 * 11 + at % 7 : 0xee);
        }
    }
}

static void try_rows(uint64_t rows, uint64_t n, uint64_t grains)
{
    uint64_t many = rows * grains;

    try_dims(FSDP_OP_COLUMN_SUM, "ab | b", many, n, grains, 0, 0, no_f);
    try_dims(FSDP_OP_NORM_GRAD, "ab a2 ab | b b", many, n, grains, 0, 0, no_f);
    try_dims(FSDP_OP_GEMM_GRAD, "ca cb | ab", n, 257 - n, many, grains, 0,
             no_f);
    try_dims(FSDP_OP_GEMM_GRAD, "ca cb | ab", 19, n, many, grains, 0, no_f);
    try_dims(FSDP_OP_EMBEDDING_GRAD, "#a ab | db cb", many, n, 5, 11, grains,
             no_f);
    try_dims(FSDP_OP_EMBEDDING_GRAD, "#a ab | db cb", many, n, 64, 300, grains,
             no_f);
}

UNIT_TEST(test_grains)
{
    static const uint64_t grains[] = {1, 2, 3, 4, 7, 8, 64};

    for (int i = 0; i < N_SIZES; i++) {
        for (unsigned int g = 0; g < sizeof(grains) / sizeof(grains[0]); g++) {
            if (sizes[i] * grains[g] <= 600) {
                try_rows(sizes[i], sizes[N_SIZES - 1 - i], grains[g]);
                try_rows(sizes[i], 33, grains[g]);
            }
        }
    }
    try_dims(FSDP_OP_GEMM_GRAD, "ca cb | ab", 31, 1100, 12, 4, 0, no_f);
}

static void try_matrix(uint64_t rows, uint64_t n)
{
    static const float eps[8] = {1e-5f};

    try_dims(FSDP_OP_BIAS, "ab b | ab", rows, n, 0, 0, 0, no_f);
    try_dims(FSDP_OP_BIAS, "ab b | =0", rows, n, 0, 0, 0, no_f);
    try_dims(FSDP_OP_NORM, "ab b b | ab a2", rows, n, 0, 0, 0, eps);
    try_dims(FSDP_OP_NORM_BACKWARD, "ab b a2 ab | ab", rows, n, 0, 0, 0, no_f);
    try_dims(FSDP_OP_MSE, "ab ab | a ab", rows, n, 0, 0, 0, no_f);
    try_dims(FSDP_OP_LINEAR_LOSS, "ab ab | a ab", rows, n, 0, 0, 0, no_f);
    try_dims(FSDP_OP_EMBEDDING, "#a db cb | ab", rows, n, 3, 9, 0, no_f);
    if (n > 0 || rows == 0) {
        try_dims(FSDP_OP_CROSS_ENTROPY, "ab #a | a ab", rows, n, 0, 0, 0, no_f);
        try_dims(FSDP_OP_CROSS_ENTROPY, "ab #a | a =0", rows, n, 0, 0, 0, no_f);
    }
}

UNIT_TEST(test_rows)
{
    for (int i = 0; i < N_SIZES; i++) {
        try_matrix(3, sizes[i]);
        try_matrix(sizes[i], 37);
    }
    try_matrix(2, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elementwise),    cmocka_unit_test(test_halves),
        cmocka_unit_test(test_sums_of_halves), cmocka_unit_test(test_copy_2d),
        cmocka_unit_test(test_rows),           cmocka_unit_test(test_grains),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
