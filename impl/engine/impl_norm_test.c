/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_norm_test.c - the norm that ranks add up: what is known, what is half
 * way between two float32, and the edges of the range.
 */
#include "impl_norm.h"

#include <float.h>
#include <math.h>

#include "testing/unit_testing.h"

/* The first `cut` elements are one rank's, the others another's. */
static float norm_of(float p, const float *x, uint64_t n, uint64_t cut)
{
    struct impl_norm a = {.largest = 0.0f}, b = {.largest = 0.0f};
    struct impl_norm_bins bins = {.n = 0};

    impl_norm_add(&a, &bins, p, x, cut);
    impl_norm_settle(&a, &bins, p);
    impl_norm_add(&b, &bins, p, x + cut, n - cut);
    impl_norm_settle(&b, &bins, p);
    impl_norm_merge(&a, &b);
    return impl_norm_root(&a, p);
}

UNIT_TEST(known_norms)
{
    static const float x[] = {3.0f, -4.0f, 0.0f};
    static const float two[] = {1.0f, -1.0f};

    for (uint64_t cut = 0; cut <= 3; cut++) {
        assert_true(norm_of(2.0f, x, 3, cut) == 5.0f);
        assert_true(norm_of(1.0f, x, 3, cut) == 7.0f);
        assert_true(norm_of(INFINITY, x, 3, cut) == 4.0f);
    }
    assert_true(norm_of(2.0f, two, 2, 1) == 0x1.6a09e6p+0f);
    assert_true(norm_of(2.0f, x, 0, 0) == 0.0f);
}

/* 2^24 + 1 and 2^24 + 3 are half way; their squares are sums of squares. */
UNIT_TEST(rounds_once_to_even)
{
    static const float up[] = {0x1p24f, 0x1p12f, 0x1p12f, 1.0f, 0x1p-149f};
    static const float odd[] = {0x1p24f, 2.0f, 1.0f};

    for (uint64_t cut = 0; cut <= 4; cut++) {
        assert_true(norm_of(2.0f, up, 4, cut) == 0x1p24f);
        assert_true(norm_of(2.0f, up, 5, cut) == 0x1p24f + 2.0f);
    }
    assert_true(norm_of(1.0f, odd, 3, 1) == 0x1p24f + 4.0f);
}

UNIT_TEST(edges_of_the_range)
{
    static const float large[] = {FLT_MAX, FLT_MAX};
    static const float small[] = {0x1p-149f, 0x1p-149f, 0x1p-149f};
    static const float odd[] = {1.0f, INFINITY, NAN};

    assert_true(isinf(norm_of(1.0f, large, 2, 1)));
    assert_true(isinf(norm_of(2.0f, large, 2, 1)));
    assert_true(norm_of(2.0f, large, 1, 0) == FLT_MAX);
    assert_true(norm_of(1.0f, large, 1, 0) == FLT_MAX);
    assert_true(norm_of(2.0f, small, 2, 1) == 0x1p-149f);
    assert_true(norm_of(2.0f, small, 3, 1) == 0x1p-148f);
    assert_true(norm_of(1.0f, small, 2, 1) == 0x1p-148f);
    assert_true(isinf(norm_of(2.0f, odd, 2, 1)));
    assert_true(isnan(norm_of(2.0f, odd, 3, 1)));
    assert_true(isnan(norm_of(INFINITY, odd, 3, 2)));
}

/* Words that are full carry over into the next. */
UNIT_TEST(carries_go_all_the_way)
{
    float x[200];
    float back[200];

    for (int i = 0; i < 200; i++) {
        x[i] = ldexpf(0x1.fffffep0f, i - 100);
        back[199 - i] = x[i];
    }
    for (uint64_t cut = 0; cut <= 200; cut += 25) {
        assert_true(norm_of(2.0f, x, 200, cut) ==
                    norm_of(2.0f, back, 200, 200 - cut));
        assert_true(norm_of(1.0f, x, 200, cut) == 0x1.fffffep100f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_norms),
        cmocka_unit_test(rounds_once_to_even),
        cmocka_unit_test(edges_of_the_range),
        cmocka_unit_test(carries_go_all_the_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
