/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arith_test.c - the shared arithmetic at its hard inputs, its edges and a
 * sample of everything, in a few seconds. arith_exhaustive leaves no gaps.
 */
#include "testing/unit_testing.h"

#include <stdio.h>

#include "arith_mpfr.h"
#include "philox.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* A prime, so that the sample meets all low bits: a million inputs each. */
#define SAMPLE_STRIDE 4099u

/*
 * Inputs whose logarithm lies within 2.5 units in the last place of a double
 * from the middle between two floats. A correct double logarithm is rounded
 * the wrong way at the first five.
 */
static const uint32_t hard_for_log[] = {
    0x3c413d3a, 0x41178feb, 0x4c5d65a5, 0x65d890d3, 0x6f31a8ec, 0x0dc8bba4,
    0x111c87f8, 0x1a8446cb, 0x1f116ab8, 0x28e3fa26, 0x29e6126b, 0x29fd22f8,
    0x2c4c24b7, 0x2e492984, 0x38dcbe38, 0x3bf86ef0, 0x464d5b2b, 0x4665a9a6,
    0x4d604ebe, 0x4e85f412, 0x5ee8984e, 0x66a8c860, 0x66abbd63, 0x79e7ec37};

/* The inputs nearest to such a middle for the exponential and 1/sqrt. */
static const uint32_t hard_for_others[] = {0xc16912cd, 0xbbf0edf1, 0x403a18e3};

/*
 * Where a formula, a piece of a table or a kind of number begins or ends; the
 * neighbours of each are tested with it.
 */
static const float edges[] = {
    0.0f,       0x1p-149f,   0x1p-126f,  0x1p-31f,  0x1p-25f,  0x1p-24f,
    0x1p-13f,   0x1p-12f,    0.17f,      0.25f,     0.34f,     0.34657359f,
    0.5f,       0.703125f,   0.9921875f, 1.0f,      1.015625f, 1.40625f,
    1.5f,       2.0f,        2.5f,       3.0f,      3.5f,      3.9192059f,
    4.0f,       9.010913f,   10.0f,      87.33655f, 88.72284f, 89.0f,
    103.27893f, 103.972084f, 104.0f,     0x1p127f};

static uint32_t computed(const struct arith_function *function, uint32_t x)
{
    return fsdp_f32_bits(function->compute(fsdp_f32_from_bits(x)));
}

/* Compares one input with MPFR; the message names it. */
static void assert_exact(struct arith_mpfr *mpfr,
                         const struct arith_function *function, uint32_t x)
{
    uint32_t got = computed(function, x);
    uint32_t want = arith_mpfr_bits(mpfr, function, x);

    if (got != want) {
        fail_msg("%s(%08x): got %08x, want %08x", function->name, x, got, want);
    }
}

static void for_all_assert_exact(struct arith_mpfr *mpfr, uint32_t x)
{
    for (size_t i = 0; i < ARITH_N_ELEMENTARY; i++) {
        if (i == ARITH_RSQRT && x == FSDP_F32_SIGN) {
            continue; /* MPFR differs from IEEE 754 at -0. */
        }
        assert_exact(mpfr, &arith_functions[i], x);
    }
}

UNIT_TEST(test_hard_inputs_are_correctly_rounded)
{
    struct arith_mpfr mpfr;

    arith_mpfr_init(&mpfr);
    for (size_t i = 0; i < LENGTH(hard_for_log); i++) {
        for_all_assert_exact(&mpfr, hard_for_log[i]);
    }
    for (size_t i = 0; i < LENGTH(hard_for_others); i++) {
        for_all_assert_exact(&mpfr, hard_for_others[i]);
    }
    arith_mpfr_fini(&mpfr);
}

UNIT_TEST(test_edges_are_correctly_rounded)
{
    struct arith_mpfr mpfr;

    arith_mpfr_init(&mpfr);
    for (size_t i = 0; i < LENGTH(edges); i++) {
        uint32_t edge = fsdp_f32_bits(edges[i]);
        uint32_t first = edge < 64 ? 0 : edge - 64;

        for (uint32_t x = first; x <= edge + 64; x++) {
            for_all_assert_exact(&mpfr, x);
            for_all_assert_exact(&mpfr, x | FSDP_F32_SIGN);
        }
    }
    arith_mpfr_fini(&mpfr);
}

UNIT_TEST(test_a_sample_is_correctly_rounded)
{
    struct arith_mpfr mpfr;

    arith_mpfr_init(&mpfr);
    for (uint64_t x = 0; x <= UINT32_MAX; x += SAMPLE_STRIDE) {
        for_all_assert_exact(&mpfr, (uint32_t)x);
    }
    arith_mpfr_fini(&mpfr);
}

/* Known bits that do not come from MPFR, so that the oracle has a check too. */
UNIT_TEST(test_known_values)
{
    static const struct {
        int function;
        uint32_t x;
        uint32_t y;
    } known[] = {
        {ARITH_EXP, 0x00000000, 0x3f800000},   /* e^0 = 1 */
        {ARITH_EXP, 0x3f800000, 0x402df854},   /* e */
        {ARITH_EXP, 0x42b17218, 0x7f800000},   /* overflow */
        {ARITH_EXP, 0xc2cff1b4, 0x00000001},   /* least subnormal */
        {ARITH_EXP, 0xc2cff1b5, 0x00000000},   /* underflow */
        {ARITH_LOG, 0x3f800000, 0x00000000},   /* ln 1 = +0 */
        {ARITH_LOG, 0x40000000, 0x3f317218},   /* ln 2 */
        {ARITH_LOG, 0x41178feb, 0x400fe5e7},   /* not 400fe5e8 */
        {ARITH_LOG, 0x00000001, 0xc2ce8ed0},   /* -149 ln 2 */
        {ARITH_TANH, 0x3f800000, 0x3f42f7d6},  /* tanh 1 */
        {ARITH_TANH, 0x80000001, 0x80000001},  /* least subnormal */
        {ARITH_RSQRT, 0x40800000, 0x3f000000}, /* 1/2 */
        {ARITH_RSQRT, 0x40000000, 0x3f3504f3}, /* 1/sqrt 2 */
        {ARITH_RSQRT, 0x00000001, 0x64b504f3}, /* 2^74 sqrt 2 */
    };

    for (size_t i = 0; i < LENGTH(known); i++) {
        const struct arith_function *function =
            &arith_functions[known[i].function];
        uint32_t got = computed(function, known[i].x);

        if (got != known[i].y) {
            fail_msg("%s(%08x): got %08x, want %08x", function->name,
                     known[i].x, got, known[i].y);
        }
    }
}

UNIT_TEST(test_zeros_and_infinities)
{
    const uint32_t inf = FSDP_F32_INFINITY;
    const uint32_t minus = FSDP_F32_SIGN;
    const uint32_t nan = FSDP_F32_NAN;
    const uint32_t one = FSDP_F32_ONE;
    const uint32_t inputs[4] = {0, minus, inf, minus | inf};
    const uint32_t want[ARITH_N_ELEMENTARY][4] = {
        [ARITH_EXP] = {one, one, inf, 0},
        [ARITH_LOG] = {minus | inf, minus | inf, inf, nan},
        [ARITH_TANH] = {0, minus, one, minus | one},
        [ARITH_RSQRT] = {inf, minus | inf, 0, nan},
    };

    for (size_t f = 0; f < ARITH_N_ELEMENTARY; f++) {
        for (size_t i = 0; i < LENGTH(inputs); i++) {
            assert_int_equal(computed(&arith_functions[f], inputs[i]),
                             want[f][i]);
        }
    }
}

UNIT_TEST(test_every_nan_becomes_the_one_nan)
{
    static const uint32_t nans[] = {0x7f800001, 0x7fc00000, 0x7fffffff,
                                    0xff800001, 0xffc00000, 0xffffffff};

    for (size_t f = 0; f < ARITH_N_ELEMENTARY; f++) {
        for (size_t i = 0; i < LENGTH(nans); i++) {
            assert_int_equal(computed(&arith_functions[f], nans[i]),
                             FSDP_F32_NAN);
        }
    }
}

/* The known answers that the authors of Philox publish with Random123. */
UNIT_TEST(test_philox_known_answers)
{
    static const struct {
        uint32_t counter[4];
        uint32_t key[2];
        uint32_t out[4];
    } known[] = {
        {{0, 0, 0, 0},
         {0, 0},
         {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };

    for (size_t i = 0; i < LENGTH(known); i++) {
        struct fsdp_philox_out out =
            fsdp_philox4x32(known[i].key, known[i].counter);

        assert_memory_equal(out.word, known[i].out, sizeof(out.word));
    }
}

UNIT_TEST(test_random_bits_are_words_of_blocks)
{
    const uint64_t seed = 0x299f31d0a4093822u;
    const uint32_t stream = 0x13198a2e;
    const uint64_t block = 0x05a308d3243f6a88u;
    const uint32_t key[2] = {0xa4093822, 0x299f31d0};
    const uint32_t counter[4] = {0x243f6a88, 0x05a308d3, 0x13198a2e, 0};
    struct fsdp_philox_out want = fsdp_philox4x32(key, counter);
    struct fsdp_philox_out got = fsdp_random_block(seed, stream, block);

    assert_memory_equal(got.word, want.word, sizeof(want.word));
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(fsdp_random_bits(seed, stream, 4 * block + i),
                         want.word[i]);
    }
    /* Seeds, streams and indices tell apart. */
    assert_int_not_equal(fsdp_random_bits(0, 0, 0), fsdp_random_bits(1, 0, 0));
    assert_int_not_equal(fsdp_random_bits(0, 0, 0), fsdp_random_bits(0, 1, 0));
    assert_int_not_equal(fsdp_random_bits(0, 0, 0), fsdp_random_bits(0, 0, 1));
    assert_int_not_equal(fsdp_random_bits(0, 0, 0),
                         fsdp_random_bits((uint64_t)1 << 32, 0, 0));
}

UNIT_TEST(test_uniform_lies_on_its_grid)
{
    double sum = 0.0;
    double squares = 0.0;
    const uint64_t count = 100000;

    assert_int_equal(fsdp_f32_bits(fsdp_uniform_from_bits(0)), 0xbf800000);
    assert_int_equal(fsdp_f32_bits(fsdp_uniform_from_bits(0x7fffffff)),
                     fsdp_f32_bits(-0x1p-23f));
    assert_int_equal(fsdp_f32_bits(fsdp_uniform_from_bits(0x80000000)), 0);
    assert_int_equal(fsdp_f32_bits(fsdp_uniform_from_bits(0xffffffff)),
                     0x3f7ffffe); /* 1 - 2^-23 */
    for (uint64_t i = 0; i < count; i++) {
        double u = (double)fsdp_random_uniform(7, 3, i);
        double steps = u * 0x1p23;

        assert_true(u >= -1.0 && u < 1.0 && steps == (double)(int32_t)steps);
        sum += u;
        squares += u * u;
    }
    /* Mean 0 and variance 1/3, each within five standard deviations. */
    assert_true(sum / (double)count < 0.0092);
    assert_true(sum / (double)count > -0.0092);
    assert_true(squares / (double)count - 1.0 / 3.0 < 0.0048);
    assert_true(squares / (double)count - 1.0 / 3.0 > -0.0048);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hard_inputs_are_correctly_rounded),
        cmocka_unit_test(test_edges_are_correctly_rounded),
        cmocka_unit_test(test_a_sample_is_correctly_rounded),
        cmocka_unit_test(test_known_values),
        cmocka_unit_test(test_zeros_and_infinities),
        cmocka_unit_test(test_every_nan_becomes_the_one_nan),
        cmocka_unit_test(test_philox_known_answers),
        cmocka_unit_test(test_random_bits_are_words_of_blocks),
        cmocka_unit_test(test_uniform_lies_on_its_grid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
