/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exact_norm_test.c - norms that are known, those that are half way between
 * two float32, and the edges of the range.
 */
#include "judge/replay/exact_norm.h"

#include "testing/norm_testing.h"

static float norm_of(float p, const float *x, uint64_t n, uint64_t cut)
{
    struct exact_norm norm;

    (void)cut;
    exact_norm_begin(&norm, p);
    for (uint64_t i = 0; i < n; i++) {
        exact_norm_add(&norm, x[i]);
    }
    return exact_norm_end(&norm);
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
    assert_true(norm_of(2.0f, up, 96, 0) == norm_of(2.0f, down, 96, 0));
    assert_true(norm_of(1.0f, up, 96, 0) == norm_of(1.0f, down, 96, 0));
    assert_true(norm_of(2.0f, up, 96, 0) > up[95]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NORM_TESTS,
        cmocka_unit_test(order_does_not_matter),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
