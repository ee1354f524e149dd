/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_norm_test.c - the norm that ranks add up: what is known, what is half
 * way between two float32, and the edges of the range.
 */
#include "impl_norm.h"

#include "testing/norm_testing.h"

static float norm_of(float p, const float *x, uint64_t n, uint64_t cut)
{
    struct impl_norm a = {.largest = 0.0f};
    struct impl_norm b = {.largest = 0.0f};
    struct impl_norm_bins bins = {.n = 0};

    impl_norm_add(&a, &bins, p, x, cut);
    impl_norm_settle(&a, &bins, p);
    impl_norm_add(&b, &bins, p, x + cut, n - cut);
    impl_norm_settle(&b, &bins, p);
    impl_norm_merge(&a, &b);
    return impl_norm_root(&a, p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NORM_TESTS,
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
