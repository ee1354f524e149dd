/* SPDX-License-Identifier: Apache-2.0 */
/*
 * norm_test.c - the sum that ranks share: what is added here, there, or on the
 * way, gives one norm, rounded once.
 */
#include "norm.h"

#include <float.h>
#include <math.h>

#include "testing/unit_testing.h"

/* The first `cut` elements are one rank's, the others another's. */
static float norm_of(float p, const float *x, uint64_t n, uint64_t cut)
{
    struct ref_sum a = {0}, b = {0};

    ref_sum_add(&a, p, 1.0f, x, cut);
    ref_sum_add(&b, p, 1.0f, x + cut, n - cut);
    ref_sum_merge(&a, &b);
    return ref_sum_root(&a, p);
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

/* The square of 2^24 + 1, which is no float32, and a little more. */
UNIT_TEST(rounds_once_to_even)
{
    static const float x[] = {0x1p24f, 0x1p12f, 0x1p12f, 1.0f, 0x1p-149f};

    for (uint64_t cut = 0; cut <= 4; cut++) {
        assert_true(norm_of(2.0f, x, 4, cut) == 0x1p24f);
        assert_true(norm_of(2.0f, x, 5, cut) == 0x1p24f + 2.0f);
    }
}

UNIT_TEST(edges_of_the_range)
{
    static const float large[] = {FLT_MAX, FLT_MAX};
    static const float small[] = {0x1p-149f, 0x1p-149f, 0x1p-149f};
    static const float odd[] = {1.0f, INFINITY, NAN};

    assert_true(isinf(norm_of(1.0f, large, 2, 1)));
    assert_true(isinf(norm_of(2.0f, large, 2, 1)));
    assert_true(norm_of(2.0f, large, 1, 0) == FLT_MAX);
    assert_true(norm_of(2.0f, small, 2, 1) == 0x1p-149f);
    assert_true(norm_of(2.0f, small, 3, 1) == 0x1p-148f);
    assert_true(isinf(norm_of(2.0f, odd, 2, 1)));
    assert_true(isnan(norm_of(2.0f, odd, 3, 1)));
    assert_true(isnan(norm_of(INFINITY, odd, 3, 2)));
}

UNIT_TEST(clips_only_what_is_beyond)
{
    struct fsdp_clip clip = {.max_norm = 2.0f, .p = 2.0f};
    float factor = 0.0f;

    assert_false(ref_clip_factor(&clip, 2.0f, &factor));
    assert_false(ref_clip_factor(&clip, NAN, &factor));
    assert_true(ref_clip_factor(&clip, 4.0f, &factor));
    assert_true(factor == 2.0f / (4.0f + 1e-6f));
    clip.max_norm = INFINITY;
    assert_false(ref_clip_factor(&clip, FLT_MAX, &factor));
}

UNIT_TEST(refuses_what_is_no_norm)
{
    static const float wrong[][2] = {
        {0.0f, 2.0f}, {-1.0f, 2.0f},     {NAN, 2.0f}, {1.0f, 0.0f},
        {1.0f, 3.0f}, {1.0f, -INFINITY}, {1.0f, NAN}};
    struct fsdp_error error = {0};
    struct fsdp_env env = {.error = &error};
    struct fsdp_clip clip = {.max_norm = INFINITY, .p = INFINITY};

    assert_int_equal(ref_check_clip(&env, &clip), FSDP_OK);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        clip.max_norm = wrong[i][0];
        clip.p = wrong[i][1];
        assert_int_equal(ref_check_clip(&env, &clip), FSDP_ERR_INVALID);
    }
    clip.error_if_nonfinite = 1;
    assert_int_equal(ref_check_norm(&env, &clip, NAN), FSDP_ERR_INVALID);
    assert_int_equal(ref_check_norm(&env, &clip, FLT_MAX), FSDP_OK);
    clip.error_if_nonfinite = 0;
    assert_int_equal(ref_check_norm(&env, &clip, INFINITY), FSDP_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_norms),
        cmocka_unit_test(rounds_once_to_even),
        cmocka_unit_test(edges_of_the_range),
        cmocka_unit_test(clips_only_what_is_beyond),
        cmocka_unit_test(refuses_what_is_no_norm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
