/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cluster_test.c - a ring's line through two sizes. The file is read by
 * `plan` in bench_test.sh.
 */
#include "testing/unit_testing.h"
#include "tools/bench/bench_cluster.h"

#include <math.h>

/* Four ranks: three quarters of the bytes cross a link. */
UNIT_TEST(a_line_through_two_sizes)
{
    const double bytes[2] = {1e4, 1e6};
    double seconds[2];
    struct bench_machines found = {.ranks = 4};

    for (int i = 0; i < 2; i++) {
        seconds[i] = 2e-5 + 0.75 * bytes[i] / 1e9;
    }
    assert_int_equal(bench_cluster_line(bytes, seconds, 4, &found), FSDP_OK);
    assert_true(fabs(found.bandwidth / 1e9 - 1.0) < 1e-9);
    assert_true(fabs(found.latency / 2e-5 - 1.0) < 1e-6);
    /* Noise: the small one took less than no time, or more than the large. */
    seconds[0] = 1e-9;
    assert_int_equal(bench_cluster_line(bytes, seconds, 4, &found), FSDP_OK);
    assert_true(found.latency == 0.0);
    seconds[0] = 2.0 * seconds[1];
    assert_int_equal(bench_cluster_line(bytes, seconds, 4, &found),
                     FSDP_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_through_two_sizes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
