/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exact_norm_test.c - norms that are known, those that are half way between
 * two float32, and the edges of the range.
 */
#include "judge/replay/exact_norm.h"

#include <float.h>
#include <math.h>

#include "testing/unit_testing.h"

static float norm_of(float p, const float *x, uint32_t n)
{
    struct exact_norm norm;

    exact_norm_begin(&norm, p);
    for (uint32_t i = 0; i < n; i++) {
        exact_norm_add(&norm, x[i]);
    }
    return exact_norm_end(&norm);
}

#define NORM(p, ...)                           \
    norm_of((p), (const float[]){__VA_ARGS__}, \
            sizeof((const float[]){__VA_ARGS__}) / sizeof(float))
#define IS(p, want, ...) assert_true(NORM(p, __VA_ARGS__) == (want))

UNIT_TEST(known_norms)
{
    IS(2.0f, 5.0f, 3.0f, -4.0f);
    IS(1.0f, 7.0f, 3.0f, -4.0f);
    IS(INFINITY, 4.0f, 3.0f, -4.0f);
    IS(2.0f, 0.0f, 0.0f, -0.0f);
    IS(2.0f, 0x1p-149f, 0x1p-149f);
    IS(2.0f, FLT_MAX, FLT_MAX);
    IS(2.0f, 0x1.6a09e6p+0f, 1.0f, 1.0f); /* the root of 2 */
}

/* 2^24 + 1 is half way between 2^24 and 2^24 + 2. */
UNIT_TEST(rounds_once_to_even)
{
    IS(1.0f, 0x1p24f, 0x1p24f, 1.0f);
    IS(1.0f, 0x1p24f + 2.0f, 0x1p24f, 1.0f, 0x1p-149f);
    IS(1.0f, 0x1p24f + 4.0f, 0x1p24f, 2.0f, 1.0f);
    /* Its square is 2^48 + 2^25 + 1. */
    IS(2.0f, 0x1p24f, 0x1p24f, 0x1p12f, 0x1p12f, 1.0f);
    IS(2.0f, 0x1p24f + 2.0f, 0x1p24f, 0x1p12f, 0x1p12f, 1.0f, 0x1p-149f);
    IS(2.0f, 0x1p24f, 0x1p24f, 0x1p12f, 0x1p12f);
}

UNIT_TEST(edges_of_the_range)
{
    assert_true(isinf(NORM(1.0f, FLT_MAX, FLT_MAX)));
    assert_true(isinf(NORM(2.0f, 1.0f, -INFINITY)));
    assert_true(isnan(NORM(2.0f, INFINITY, NAN, 1.0f)));
    assert_true(isnan(NORM(INFINITY, NAN, 1.0f)));
    /* Below half of the least there is, nothing is lost on the way up. */
    IS(1.0f, 0x1p-148f, 0x1p-149f, 0x1p-149f);
    IS(2.0f, 0x1p-149f, 0x1p-149f, 0x1p-149f);
    IS(2.0f, 0x1p-148f, 0x1p-149f, 0x1p-149f, 0x1p-149f);
    IS(2.0f, FLT_MAX, FLT_MAX, 1.0f);
}

/* Whatever comes last: carries go all the way. */
UNIT_TEST(order_does_not_matter)
{
    float up[96];
    float down[96];

    for (uint32_t i = 0; i < 96; i++) {
        up[i] = ldexpf(1.9999999f, (int)i * 2 - 96);
        down[95 - i] = up[i];
    }
    assert_true(norm_of(2.0f, up, 96) == norm_of(2.0f, down, 96));
    assert_true(norm_of(1.0f, up, 96) == norm_of(1.0f, down, 96));
    assert_true(norm_of(2.0f, up, 96) > up[95]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_norms),
        cmocka_unit_test(rounds_once_to_even),
        cmocka_unit_test(edges_of_the_range),
        cmocka_unit_test(order_does_not_matter),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
