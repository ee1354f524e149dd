/* SPDX-License-Identifier: Apache-2.0 */
/*
 * norm_testing.h - what every norm comes to, whoever computes it: norms that
 * are known, those that are half way between two float32, and the edges of the
 * range. Who includes it defines norm_of, and lists NORM_TESTS. Test only.
 */
#ifndef FSDP_CTS_NORM_TESTING_H
#define FSDP_CTS_NORM_TESTING_H

#include "testing/unit_testing.h"

#include <float.h>
#include <math.h>

/* The p-norm of n elements; the first `cut` are one rank's, the others
 * another's, where ranks matter. */
static float norm_of(float p, const float *x, uint64_t n, uint64_t cut);

enum {
    NORM_MOST = 5,
    NORM_MANY = 200
};

struct norm_row {
    float p, want; /* NAN: any NaN */
    uint64_t n;
    float x[NORM_MOST];
};

/* Wherever the elements are cut. */
static inline void norm_check(const struct norm_row *row, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (uint64_t cut = 0; cut <= row[i].n; cut++) {
            const float got = norm_of(row[i].p, row[i].x, row[i].n, cut);

            assert_true(isnan(row[i].want) ? isnan(got) : got == row[i].want);
        }
    }
}

#define NORM_CHECK(rows) norm_check(rows, sizeof(rows) / sizeof((rows)[0]))

UNIT_TEST(known_norms)
{
    static const struct norm_row rows[] = {
        {2.0f, 5.0f, 3, {3.0f, -4.0f, 0.0f}},
        {1.0f, 7.0f, 3, {3.0f, -4.0f, 0.0f}},
        {INFINITY, 4.0f, 3, {3.0f, -4.0f, 0.0f}},
        {2.0f, 0x1.6a09e6p+0f, 2, {1.0f, -1.0f}}, /* the root of 2 */
        {2.0f, 0.0f, 2, {0.0f, -0.0f}},
        {2.0f, 0.0f, 0, {3.0f}},
    };

    NORM_CHECK(rows);
}

/* 2^24 + 1 and 2^24 + 3 are half way between two float32. */
UNIT_TEST(rounds_once_to_even)
{
    static const struct norm_row rows[] = {
        {1.0f, 0x1p24f, 2, {0x1p24f, 1.0f}},
        {1.0f, 0x1p24f + 2.0f, 3, {0x1p24f, 1.0f, 0x1p-149f}},
        {1.0f, 0x1p24f + 4.0f, 3, {0x1p24f, 2.0f, 1.0f}},
        /* The square of 2^24 + 1 is 2^48 + 2^25 + 1. */
        {2.0f, 0x1p24f, 4, {0x1p24f, 0x1p12f, 0x1p12f, 1.0f}},
        {2.0f, 0x1p24f + 2.0f, 5, {0x1p24f, 0x1p12f, 0x1p12f, 1.0f, 0x1p-149f}},
        {2.0f, 0x1p24f, 3, {0x1p24f, 0x1p12f, 0x1p12f}},
    };

    NORM_CHECK(rows);
}

UNIT_TEST(edges_of_the_range)
{
    static const struct norm_row rows[] = {
        {1.0f, INFINITY, 2, {FLT_MAX, FLT_MAX}},
        {2.0f, INFINITY, 2, {FLT_MAX, FLT_MAX}},
        {2.0f, FLT_MAX, 1, {FLT_MAX}},
        {1.0f, FLT_MAX, 1, {FLT_MAX}},
        {2.0f, FLT_MAX, 2, {FLT_MAX, 1.0f}},
        {2.0f, 0x1p-149f, 1, {0x1p-149f}},
        /* Below half of the least there is, nothing is lost on the way up. */
        {1.0f, 0x1p-148f, 2, {0x1p-149f, 0x1p-149f}},
        {2.0f, 0x1p-149f, 2, {0x1p-149f, 0x1p-149f}},
        {2.0f, 0x1p-148f, 3, {0x1p-149f, 0x1p-149f, 0x1p-149f}},
        {2.0f, INFINITY, 2, {1.0f, -INFINITY}},
        {2.0f, NAN, 3, {1.0f, INFINITY, NAN}},
        {INFINITY, NAN, 3, {1.0f, INFINITY, NAN}},
        {INFINITY, NAN, 2, {NAN, 1.0f}},
    };

    NORM_CHECK(rows);
}

/* Words that are full carry over into the next. */
UNIT_TEST(carries_go_all_the_way)
{
    float x[NORM_MANY];
    float back[NORM_MANY];

    for (int i = 0; i < NORM_MANY; i++) {
        x[i] = ldexpf(0x1.fffffep0f, i - 100);
        back[NORM_MANY - 1 - i] = x[i];
    }
    for (uint64_t cut = 0; cut <= NORM_MANY; cut += 25) {
        assert_true(norm_of(2.0f, x, NORM_MANY, cut) ==
                    norm_of(2.0f, back, NORM_MANY, NORM_MANY - cut));
        assert_true(norm_of(1.0f, x, NORM_MANY, cut) == 0x1.fffffep100f);
    }
    /* 2^24 + 2 and halves of halves, the last one twice: 2^24 + 3, half way. */
    for (int i = 0; i < 149; i++) {
        x[i] = ldexpf(0.5f, -i);
    }
    x[149] = x[148];
    x[150] = 0x1p24f;
    x[151] = 2.0f;
    for (uint64_t cut = 0; cut <= 152; cut++) {
        assert_true(norm_of(1.0f, x, 152, cut) == 0x1p24f + 4.0f);
    }
}

#define NORM_TESTS                                                        \
    cmocka_unit_test(known_norms), cmocka_unit_test(rounds_once_to_even), \
        cmocka_unit_test(edges_of_the_range),                             \
        cmocka_unit_test(carries_go_all_the_way)

#endif
