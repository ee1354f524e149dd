/* SPDX-License-Identifier: Apache-2.0 */
/*
 * norm_test.c - the sum that ranks share: what is added here, there, or on the
 * way, gives one norm, rounded once.
 */
#include "norm.h"

#include "testing/norm_testing.h"

static float norm_of(float p, const float *x, uint64_t n, uint64_t cut)
{
    struct ref_sum a = {0};
    struct ref_sum b = {0};

    ref_sum_add(&a, p, 1.0f, x, cut);
    ref_sum_add(&b, p, 1.0f, x + cut, n - cut);
    ref_sum_merge(&a, &b);
    return ref_sum_root(&a, p);
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
        NORM_TESTS,
        cmocka_unit_test(clips_only_what_is_beyond),
        cmocka_unit_test(refuses_what_is_no_norm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
