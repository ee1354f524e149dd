/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_fold_test.c - compares the folds with bits written by hand. At 1e8 a
 * float32 has steps of 8 and at 2^24 of 2, so small summands are lost or kept
 * depending on what they are added to first: each order of the data below has a
 * sum of its own.
 */
#include "world_fold.h"

#include <fsdp/arith/cast.h>
#include <stdlib.h>
#include <string.h>

#include "testing/unit_testing.h"

enum {
    MOST = 8
};

static uint32_t bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof(u));
    return u;
}

/* The fold of one element. */
static float fold(uint32_t kind, uint32_t owner, const float *x, uint32_t n)
{
    const struct world_sum how = {kind, owner, FSDP_DTYPE_F32, FSDP_DTYPE_F32};
    const void *in[MOST];
    float out = -1.0f;
    for (uint32_t r = 0; r < n; r++) {
        in[r] = &x[r];
    }
    world_fold(&how, in, n, 1, &out);
    return out;
}

UNIT_TEST(one_input_is_returned_as_it_is)
{
    const float x[] = {-0.0f};

    for (uint32_t kind = 0; kind <= FSDP_FOLD_TREE; kind++) {
        assert_int_equal(bits(fold(kind, 0, x, 1)), 0x80000000);
    }
}

UNIT_TEST(rank_adds_from_the_left)
{
    const float x[] = {1e8f, 1, -1e8f, 1, 16777216, 1, 1, -16777216};
    /* 1e8 + 1 is 1e8; 2^24 + 1 is a tie and goes to the even 2^24. */
    const float want[] = {1e8f, 1e8f, 0, 1, 16777216, 16777216, 16777216, 0};

    for (uint32_t n = 1; n <= MOST; n++) {
        assert_int_equal(bits(fold(FSDP_FOLD_RANK, 0, x, n)),
                         bits(want[n - 1]));
    }
}

UNIT_TEST(ring_adds_the_owner_last)
{
    const float x[] = {1e8f, 1, -1e8f, 1};
    /* owner 0: ((1 + -1e8) + 1) + 1e8
     * owner 1: ((-1e8 + 1) + 1e8) + 1
     * owner 2: ((1 + 1e8) + 1) + -1e8
     * owner 3: ((1e8 + 1) + -1e8) + 1 */
    const float want[] = {0, 1, 0, 1};

    for (uint32_t owner = 0; owner < 4; owner++) {
        assert_int_equal(bits(fold(FSDP_FOLD_RING, owner, x, 4)),
                         bits(want[owner]));
    }
}

UNIT_TEST(ring_of_two_and_three)
{
    const float x[] = {16777216, 1, 1};

    /* Two: the order of one addition does not matter. */
    assert_int_equal(bits(fold(FSDP_FOLD_RING, 0, x, 2)), bits(16777216));
    assert_int_equal(bits(fold(FSDP_FOLD_RING, 1, x, 2)), bits(16777216));
    /* (1 + 1) + 2^24 keeps both; 2^24 anywhere else loses both. */
    assert_int_equal(bits(fold(FSDP_FOLD_RING, 0, x, 3)), bits(16777218));
    assert_int_equal(bits(fold(FSDP_FOLD_RING, 1, x, 3)), bits(16777216));
    assert_int_equal(bits(fold(FSDP_FOLD_RING, 2, x, 3)), bits(16777216));
}

UNIT_TEST(tree_is_balanced)
{
    static const struct {
        uint32_t n;
        float x[MOST];
        float want;
    } row[] = {
        {2, {16777216, 1}, 16777216},
        /* (x0 + x1) + x2: the bigger half is the left one. */
        {3, {1, 1, 16777216}, 16777218.0f},
        {3, {16777216, 1, 1}, 16777216},
        /* (x0 + x1) + (x2 + x3); RANK would lose the ones. */
        {4, {16777216, -16777216, 1, 1}, 2},
        {4, {16777216, 2, 1, 1}, 16777220.0f},
        {4, {16777216, 1, -16777216, 1}, 1},
        /* ((x0 + x1) + x2) + (x3 + x4) */
        {5, {1, 1, 16777216, 1, 1}, 16777220.0f},
        {5, {16777216, 1, 1, 1, 1}, 16777218.0f},
        /* ((x0 + x1) + x2) + ((x3 + x4) + x5) */
        {6, {16777216, 1, 1, 1, 1, 16777216}, 33554432.0f},
        {6, {16777216, 1, 1, 1, 1, 2}, 16777220.0f},
        {6, {-16777216, 0, 0, 1, 1, 16777216}, 2},
        /* ((x0 + x1) + (x2 + x3)) + ((x4 + x5) + x6) */
        {7, {16777216, 1, 1, 1, 1, 1, 2}, 16777222.0f},
        {7, {16777216, 1, 1, 1, 16777216, 1, -16777216}, 16777218.0f},
        /* ((x0 + x1) + (x2 + x3)) + ((x4 + x5) + (x6 + x7)) */
        {8, {16777216, 1, 1, 1, 1, 1, 1, 1}, 16777222.0f},
        {8, {16777216, 1, 1, 1, 16777216, 1, 1, 1}, 33554436.0f},
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        float got = fold(FSDP_FOLD_TREE, 0, row[i].x, row[i].n);
        if (bits(got) != bits(row[i].want)) {
            fail_msg("row %zu: got %.9g, want %.9g", i, (double)got,
                     (double)row[i].want);
        }
    }
}

/* Many elements are folded as each of them alone, also in place. */
UNIT_TEST(blocks_do_not_change_a_bit)
{
    enum {
        N = 1000
    };
    static float x[MOST][N];
    static float out[N];
    uint32_t seed = 1;
    for (uint32_t r = 0; r < MOST; r++) {
        for (uint32_t i = 0; i < N; i++) {
            seed = seed * 1664525u + 1013904223u;
            x[r][i] = (float)((double)(seed >> 8) - 8e6) *
                      (seed & 512 ? 1e-3f : 1e3f);
        }
    }
    for (uint32_t n = 1; n <= MOST; n++) {
        const void *in[MOST];
        for (uint32_t r = 0; r < n; r++) {
            in[r] = x[r];
        }
        for (uint32_t kind = 0; kind <= FSDP_FOLD_TREE; kind++) {
            const struct world_sum how = {kind, n - 1, FSDP_DTYPE_F32,
                                          FSDP_DTYPE_F32};
            world_fold(&how, in, n, N, out);
            for (uint32_t i = 0; i < N; i++) {
                float one[MOST];
                for (uint32_t r = 0; r < n; r++) {
                    one[r] = x[r][i];
                }
                assert_int_equal(bits(out[i]), bits(fold(kind, n - 1, one, n)));
            }
            static float last[N];
            memcpy(last, x[n - 1], sizeof(last));
            in[n - 1] = last;
            world_fold(&how, in, n, N, last);
            assert_memory_equal(last, out, sizeof(last));
            in[n - 1] = x[n - 1];
        }
    }
}

/* Sums of 256, 1, 1 and -256 in bf16, whose steps at 256 are 2: if each
 * addition is rounded, ones are lost next to 256; if all are float32, none is.
 * f16 has steps of 1/4 there, and loses none either way. */
UNIT_TEST(sums_of_halves_round_as_they_are_told)
{
    static const struct {
        uint32_t fold, owner;
        uint16_t each, once; /* bf16 */
    } row[] = {
        /* ((256 + 1) + 1) - 256 */
        {FSDP_FOLD_RANK, 0, 0x0000, 0x4000},
        /* ((1 + 1) - 256) + 256, then with another owner last */
        {FSDP_FOLD_RING, 0, 0x4000, 0x4000},
        /* ((1 - 256) + 256) + 1: 1 - 256 = -255 is a value of bf16 */
        {FSDP_FOLD_RING, 1, 0x4000, 0x4000},
        /* ((-256 + 256) + 1) + 1 */
        {FSDP_FOLD_RING, 2, 0x4000, 0x4000},
        /* (256 + 1) + (1 - 256) */
        {FSDP_FOLD_TREE, 0, 0x3f80, 0x4000},
    };
    const float value[4] = {256, 1, 1, -256};
    static const uint32_t dtypes[] = {FSDP_DTYPE_BF16, FSDP_DTYPE_F16};

    for (int d = 0; d < 2; d++) {
        uint16_t x[4];
        const void *in[4] = {&x[0], &x[1], &x[2], &x[3]};

        for (uint64_t i = 0; i < 4; i++) {
            fsdp_store(dtypes[d], x, i, value[i]);
        }
        for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
            struct world_sum how = {row[i].fold, row[i].owner, dtypes[d],
                                    dtypes[d]};
            uint16_t out = 0xffff;

            world_fold(&how, in, 4, 1, &out);
            assert_int_equal(out, d == 0 ? row[i].each : 0x4000);
            how.sum_dtype = FSDP_DTYPE_F32;
            world_fold(&how, in, 4, 1, &out);
            assert_int_equal(out, d == 0 ? row[i].once : 0x4000);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_input_is_returned_as_it_is),
        cmocka_unit_test(rank_adds_from_the_left),
        cmocka_unit_test(ring_adds_the_owner_last),
        cmocka_unit_test(ring_of_two_and_three),
        cmocka_unit_test(tree_is_balanced),
        cmocka_unit_test(blocks_do_not_change_a_bit),
        cmocka_unit_test(sums_of_halves_round_as_they_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
