/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_sums_test.c - the operators that add up down a matrix or along k, bit for
 * bit against op.h taken literally: GEMM, GEMM_GRAD, COLUMN_SUM, NORM_GRAD,
 * EMBEDDING, EMBEDDING_GRAD. And that a wrong order would be seen.
 */
#include "op_literal_test.h"
#include "ops_test.h"

static const uint64_t sizes[] = {0, 1, 31, 32, 33, 65};
static const uint64_t grain_counts[] = {1, 2, 3, 4, 5, 8, 64};
enum {
    N_SIZES = 6,
    N_GRAIN_COUNTS = 7
};

/* Compares GEMM with its element-wise meaning; counts what differs. */
static uint64_t gemm_differences(const struct trial *t,
                                 enum literal_order order)
{
    uint64_t m = t->op.dim[0];
    uint64_t n = t->op.dim[1];
    uint64_t k = t->op.dim[2];
    bool turned = t->op.flags == FSDP_OP_TRANSPOSE_B;
    uint64_t count = 0;

    for (uint64_t i = 0; i < m; i++) {
        for (uint64_t j = 0; j < n; j++) {
            float want =
                literal_chain(order, k, t->in[0] + i * k, 1,
                              t->in[1] + (turned ? j * k : j), turned ? 1 : n);

            count += !same_bits(t->out[0][i * n + j], want);
        }
    }
    return count;
}

UNIT_TEST(gemm_is_a_chain)
{
    for (uint32_t i = 0; i < N_SIZES * N_SIZES * N_SIZES; i++) {
        for (uint32_t flags = 0; flags <= FSDP_OP_TRANSPOSE_B; flags++) {
            struct trial t;

            trial_open(&t, FSDP_OP_GEMM, sizes[i % N_SIZES],
                       sizes[i / N_SIZES % N_SIZES],
                       sizes[i / N_SIZES / N_SIZES], 0, 0);
            t.op.flags = flags;

            assert_int_equal(trial_run(&t), FSDP_OK);

            assert_int_equal(gemm_differences(&t, LITERAL_FORWARD), 0);
            if (t.op.dim[0] * t.op.dim[1] >= 31 && t.op.dim[2] >= 31) {
                assert_true(gemm_differences(&t, LITERAL_BACKWARD) > 0);
            }
            trial_close(&t);
        }
    }
}

UNIT_TEST(gemm_sees_nan_and_infinity)
{
    struct trial t;

    for (uint32_t flags = 0; flags <= FSDP_OP_TRANSPOSE_B; flags++) {
        trial_open(&t, FSDP_OP_GEMM, 3, 65, 33, 0, 0);
        t.op.flags = flags;
        t.in[0][0 * 33 + 7] = NAN;
        t.in[0][1 * 33 + 7] = INFINITY;
        memset(t.in[1], 0, t.op.in[1].bytes);

        assert_int_equal(trial_run(&t), FSDP_OK);

        for (uint64_t j = 0; j < 65; j++) {
            assert_true(isnan(t.out[0][j]));
            assert_true(isnan(t.out[0][65 + j])); /* infinity times 0 */
            assert_true(same_bits(t.out[0][130 + j], 0.0f));
        }
        trial_close(&t);
    }
}

static uint64_t gemm_grad_differences(const struct trial *t,
                                      enum literal_order order)
{
    uint64_t m = t->op.dim[0];
    uint64_t n = t->op.dim[1];
    uint64_t grains = t->op.dim[3];
    uint64_t rows = t->op.dim[2] / grains;
    uint64_t count = 0;

    for (uint64_t i = 0; i < m; i++) {
        for (uint64_t j = 0; j < n; j++) {
            float part[64];

            for (uint64_t g = 0; g < grains; g++) {
                part[g] =
                    literal_chain(order, rows, t->in[0] + g * rows * m + i, m,
                                  t->in[1] + g * rows * n + j, n);
            }
            count +=
                !same_bits(t->out[0][i * n + j], literal_tree(part, grains));
        }
    }
    return count;
}

UNIT_TEST(gemm_grad_is_a_tree_of_chains)
{
    for (uint32_t i = 0; i < N_SIZES * N_GRAIN_COUNTS; i++) {
        uint64_t grains = grain_counts[i / N_SIZES];
        struct trial t;

        trial_open(&t, FSDP_OP_GEMM_GRAD, sizes[i % N_SIZES],
                   sizes[(i + 3) % N_SIZES], sizes[(i + 1) % N_SIZES] * grains,
                   grains, 0);

        assert_int_equal(trial_run(&t), FSDP_OK);

        assert_int_equal(gemm_grad_differences(&t, LITERAL_FORWARD), 0);
        if (t.op.dim[0] * t.op.dim[1] >= 31 && t.op.dim[2] / grains >= 31) {
            assert_true(gemm_grad_differences(&t, LITERAL_BACKWARD) > 0);
        }
        trial_close(&t);
    }
}

/* Takes the terms of column j of grain g, as NORM_GRAD's dgamma has them. */
static void take_column(const struct trial *t, uint64_t g, uint64_t j, float *a,
                        float *h)
{
    uint64_t n = t->op.dim[1];
    uint64_t rows = t->op.dim[0] / t->op.dim[2];
    bool norm = t->op.kind == FSDP_OP_NORM_GRAD;

    for (uint64_t i = 0; i < rows; i++) {
        uint64_t r = g * rows + i;

        a[i] = t->in[norm ? 2 : 0][r * n + j];
        if (norm) {
            float centred = t->in[0][r * n + j] - t->in[1][2 * r];

            h[i] = centred * t->in[1][2 * r + 1];
        }
    }
}

static uint64_t column_differences(const struct trial *t,
                                   enum literal_order order)
{
    uint64_t grains = t->op.dim[2];
    uint64_t rows = t->op.dim[0] / grains;
    uint64_t count = 0;
    bool norm = t->op.kind == FSDP_OP_NORM_GRAD;

    for (uint64_t j = 0; j < t->op.dim[1]; j++) {
        float a[200];
        float h[200];
        float fused[64];
        float plain[64];

        for (uint64_t g = 0; g < grains; g++) {
            take_column(t, g, j, a, h);
            plain[g] = literal_blocks(order, rows, a, NULL);
            if (norm) {
                fused[g] = literal_blocks(order, rows, a, h);
            }
        }
        count +=
            !same_bits(t->out[t->op.n_out - 1][j], literal_tree(plain, grains));
        if (norm) {
            count += !same_bits(t->out[0][j], literal_tree(fused, grains));
        }
    }
    return count;
}

UNIT_TEST(columns_are_trees_of_blocks)
{
    static const uint64_t rows[] = {0, 1, 33, 63, 64, 65, 128, 200};

    for (uint32_t i = 0; i < 8 * N_GRAIN_COUNTS; i++) {
        for (uint32_t norm = 0; norm < 2; norm++) {
            uint64_t grains = grain_counts[i / 8];
            struct trial t;

            trial_open(&t, norm ? FSDP_OP_NORM_GRAD : FSDP_OP_COLUMN_SUM,
                       rows[i % 8] * grains, sizes[(i + i / 8) % N_SIZES],
                       grains, 0, 0);

            assert_int_equal(trial_run(&t), FSDP_OK);

            assert_int_equal(column_differences(&t, LITERAL_FORWARD), 0);
            if (t.op.dim[1] >= 31 && rows[i % 8] >= 33) {
                assert_true(column_differences(&t, LITERAL_BACKWARD) > 0);
            }
            trial_close(&t);
        }
    }
}

UNIT_TEST(embedding_adds_two_rows)
{
    for (uint32_t i = 0; i < N_SIZES * N_SIZES; i++) {
        uint64_t n = sizes[i / N_SIZES];
        struct trial t;

        trial_open(&t, FSDP_OP_EMBEDDING, sizes[i % N_SIZES], n, 7, 11, 0);

        assert_int_equal(trial_run(&t), FSDP_OK);

        for (uint64_t r = 0; r < t.op.dim[0]; r++) {
            uint64_t id = (5 * r + r / 3) % 11;

            for (uint64_t j = 0; j < n; j++) {
                float want = t.in[1][id * n + j] + t.in[2][r % 7 * n + j];

                assert_true(same_bits(t.out[0][r * n + j], want));
            }
        }
        trial_close(&t);
    }
}

/* Element j of the gradient of one row of the table (o = 0, by id) or of the
 * positions (o = 1). */
static float literal_entry(const struct trial *t, enum literal_order order,
                           int o, uint64_t entry, uint64_t j)
{
    uint64_t n = t->op.dim[1];
    uint64_t grains = t->op.dim[4];
    uint64_t rows = t->op.dim[0] / grains;
    const int32_t *id = (const int32_t *)t->op.in[0].p;
    float part[64] = {0.0f};

    for (uint64_t g = 0; g < grains; g++) {
        for (uint64_t i = 0; i < rows; i++) {
            uint64_t at = order == LITERAL_FORWARD ? i : rows - 1 - i;
            uint64_t r = g * rows + at;

            if (entry == (o == 0 ? (uint64_t)id[r] : r % t->op.dim[2])) {
                part[g] = part[g] + t->in[1][r * n + j];
            }
        }
    }
    return literal_tree(part, grains);
}

static uint64_t entry_differences(const struct trial *t,
                                  enum literal_order order)
{
    uint64_t n = t->op.dim[1];
    uint64_t entries[2] = {t->op.dim[3], t->op.dim[2]};
    uint64_t count = 0;

    for (int o = 0; o < 2; o++) {
        for (uint64_t i = 0; i < entries[o] * n; i++) {
            float want = literal_entry(t, order, o, i / n, i % n);

            count += !same_bits(t->out[o][i], want);
        }
    }
    return count;
}

UNIT_TEST(embedding_grad_is_a_tree_of_scatters)
{
    for (uint32_t i = 0; i < N_SIZES * N_GRAIN_COUNTS; i++) {
        uint64_t grains = grain_counts[i / N_SIZES];
        struct trial t;

        trial_open(&t, FSDP_OP_EMBEDDING_GRAD, sizes[i % N_SIZES] * grains,
                   sizes[(i + i / N_SIZES) % N_SIZES], 5, 7, grains);

        assert_int_equal(trial_run(&t), FSDP_OK);

        assert_int_equal(entry_differences(&t, LITERAL_FORWARD), 0);
        if (sizes[i % N_SIZES] >= 31 && t.op.dim[1] >= 31) {
            assert_true(entry_differences(&t, LITERAL_BACKWARD) > 0);
        }
        trial_close(&t);
    }
}

/* The same rows in other grains are other bits: else nothing above would
 * notice a device that ignores the grains. */
UNIT_TEST(grains_show)
{
    float one[65];
    struct trial t;

    trial_open(&t, FSDP_OP_COLUMN_SUM, 128, 65, 1, 0, 0);
    assert_int_equal(trial_run(&t), FSDP_OK);
    memcpy(one, t.out[0], sizeof(one));
    for (uint64_t grains = 4; grains <= 64; grains *= 4) {
        t.op.dim[2] = grains;
        assert_int_equal(trial_run(&t), FSDP_OK);
        assert_memory_not_equal(one, t.out[0], sizeof(one));
    }
    trial_close(&t);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(gemm_is_a_chain),
        cmocka_unit_test(gemm_sees_nan_and_infinity),
        cmocka_unit_test(gemm_grad_is_a_tree_of_chains),
        cmocka_unit_test(columns_are_trees_of_blocks),
        cmocka_unit_test(embedding_adds_two_rows),
        cmocka_unit_test(embedding_grad_is_a_tree_of_scatters),
        cmocka_unit_test(grains_show),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
