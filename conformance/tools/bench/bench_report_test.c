/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_report_test.c - quantiles and ratios of samples, and what is written
 * when something is missing.
 */
#include "tools/bench/bench.h"
#include "tools/bench/bench_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "testing/unit_testing.h"

UNIT_TEST(quantiles_lie_between_samples)
{
    static const double sample[] = {5.0, 1.0, 3.0, 2.0, 4.0};

    assert_float_equal(bench_quantile(sample, 5, 0.0), 1.0, 0.0);
    assert_float_equal(bench_quantile(sample, 5, 0.5), 3.0, 0.0);
    assert_float_equal(bench_quantile(sample, 5, 1.0), 5.0, 0.0);
    assert_float_equal(bench_quantile(sample, 5, 0.1), 1.4, 1e-12);
    assert_float_equal(bench_quantile(sample, 4, 0.5), 2.5, 1e-12);
    assert_float_equal(bench_quantile(sample, 1, 0.9), 5.0, 0.0);
}

/* Of pairs: the medians' own ratio would be 1. */
UNIT_TEST(a_ratio_is_the_median_of_pairs)
{
    static const double own[] = {2.0, 1.0, 3.0};
    static const double base[] = {1.0, 2.0, 1.5};
    struct bench_report report = {.samples = 3};

    bench_add(&report, "a", "GB/s", own, 3, base, "b");
    bench_add(&report, "b", "us", own, 3, NULL, NULL);
    bench_add(&report, "c", "MiB", own, 3, NULL, NULL);
    assert_int_equal(report.n, 3);
    assert_float_equal(report.result[0].ratio, 2.0, 0.0);
    assert_true(report.result[0].higher);
    assert_true(isnan(report.result[1].ratio));
    assert_false(report.result[1].higher);
    assert_false(report.result[2].higher);
    bench_release(&report);
    assert_int_equal(report.n, 0);
}

UNIT_TEST(a_filter_is_a_part_of_a_name)
{
    struct bench_report report = {.filter = NULL};

    assert_true(bench_wants(&report, "step.gpt"));
    report.filter = "gpt";
    assert_true(bench_wants(&report, "step.gpt"));
    assert_false(bench_wants(&report, "step.mlp"));
    report.without = "largest";
    assert_true(bench_wants(&report, "gpu.gpt-1b"));
    assert_false(bench_wants(&report, "gpu.gpt-largest"));
    report.filter = NULL;
    assert_true(bench_wants(&report, "step.mlp"));
    assert_false(bench_wants(&report, "gpu.gpt-largest"));
}

UNIT_TEST(the_first_failure_is_told)
{
    struct bench_plan plan = {.error = {.message = "nobody's"}};
    struct bench_failure failure = {0};

    bench_failed(&plan, &failure, FSDP_OK);
    assert_int_equal(bench_first_failure(&plan, &failure), FSDP_OK);
    snprintf(plan.error.message, sizeof(plan.error.message), "one");
    bench_failed(&plan, &failure, FSDP_ERR_DEVICE);
    assert_string_equal(plan.error.message, "");
    snprintf(plan.error.message, sizeof(plan.error.message), "two");
    bench_failed(&plan, &failure, FSDP_ERR_NOMEM);
    bench_failed(&plan, &failure, FSDP_OK);
    assert_int_equal(bench_first_failure(&plan, &failure), FSDP_ERR_DEVICE);
    assert_string_equal(plan.error.message, "one");
}

UNIT_TEST(what_cannot_be_written_is_an_error)
{
    struct bench_report report = {.n = 0};
    struct fsdp_error error = {0};

    assert_int_equal(bench_write(&report, NULL, "c", &error), FSDP_OK);
    assert_int_equal(bench_write(&report, "/no/such/folder", "c", &error),
                     FSDP_ERR_IO);
    assert_non_null(strstr(error.message, "/no/such/folder"));
    report.out_of_memory = true;
    assert_int_equal(bench_write(&report, NULL, "c", &error), FSDP_ERR_NOMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_lie_between_samples),
        cmocka_unit_test(a_ratio_is_the_median_of_pairs),
        cmocka_unit_test(a_filter_is_a_part_of_a_name),
        cmocka_unit_test(the_first_failure_is_told),
        cmocka_unit_test(what_cannot_be_written_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
