/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefetch_test.c - exercise 16.5.3: the closed form is what the simulation
 * takes, and its best unit is what a search finds, in each of its regimes.
 */
#include "testing/unit_testing.h"
#include "tools/plan/prefetch.h"

#include <math.h>

/* Hidden from few units on; gathers are longer until units are large; never
 * hidden. */
static const struct prefetch regimes[] = {
    {8e9, 32.2e-6, 4.1e-11, 5e-12},
    {8e9, 5e-3, 2e-11, 8e-12},
    {8e9, 300e-6, 1e-11, 2e-11},
};

UNIT_TEST(simulated)
{
    static const uint32_t units[] = {1, 2, 7, 32, 100};

    for (size_t r = 0; r < sizeof(regimes) / sizeof(regimes[0]); r++) {
        for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
            const double want =
                prefetch_seconds(&regimes[r], regimes[r].elements / units[i]);
            double got = 0.0;
            struct fsdp_error error = {0};

            assert_int_equal(
                prefetch_simulated(&regimes[r], units[i], &got, &error),
                FSDP_OK);
            assert_true(fabs(got / want - 1.0) < 1e-9);
        }
    }
}

UNIT_TEST(the_best_unit)
{
    for (size_t r = 0; r < sizeof(regimes) / sizeof(regimes[0]); r++) {
        const struct prefetch *const p = &regimes[r];
        const double least = prefetch_seconds(p, prefetch_best(p));

        for (double m = p->elements; m > 1.0; m /= 1.01) {
            assert_true(prefetch_seconds(p, m) >= least * (1 - 1e-12));
        }
    }
    /* Where it is hidden: from alpha / (f - b) on. */
    assert_true(fabs(prefetch_hidden_from(&regimes[0]) / 894444.0 - 1) < 1e-3);
    assert_true(isinf(prefetch_hidden_from(&regimes[2])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simulated),
        cmocka_unit_test(the_best_unit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
