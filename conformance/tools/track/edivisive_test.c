/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edivisive_test.c - change points of series whose changes are known, and the
 * rates that docs/tracking.md promises.
 */
#include "testing/unit_testing.h"
#include "tools/track/median.h"
#include "tools/track/signed_rank.h"
#include "tools/track/simulate.h"
#include <fsdp/status.h>
#include <math.h>
#include <stdlib.h>

UNIT_TEST(quantiles)
{
    const double x[] = {5, 1, 4, 2, 3};

    assert_true(median_of(x, 5) == 3.0);
    assert_true(median_of(x, 4) == 3.0);
    assert_true(median_of(x, 1) == 5.0);
    assert_true(median_of(x, 0) == 0.0);
    assert_true(quantile_of(x, 5, 0.0) == 1.0);
    assert_true(quantile_of(x, 5, 1.0) == 5.0);
    assert_true(fabs(quantile_of(x, 5, 0.1) - 1.4) < 1e-12);
}

/* By hand: {0, 0 | 1, 1}: distances between are 1, within 0. */
UNIT_TEST(divergence_of_a_small_series)
{
    const double x[] = {0, 0, 1, 1};
    const double y[] = {0, 2, 1, 5};

    assert_true(fabs(edivisive_divergence(x, 4, 2) - 2.0) < 1e-12);
    /* Between: (1 + 5 + 1 + 3) / 4; within: 2 and 4. 1 * (5 - 6). */
    assert_true(fabs(edivisive_divergence(y, 4, 2) - -1.0) < 1e-12);
    /* 3 / 4 of 2 * 2 / 3 - 2 / 3. */
    assert_true(fabs(edivisive_divergence(x, 4, 1) - 0.5) < 1e-12);
}

static uint32_t changes(const double *x, uint32_t n,
                        struct edivisive_change first[2])
{
    struct edivisive_change *c = NULL;
    uint32_t found = 0;

    assert_int_equal(edivisive_changes(x, n, &edivisive_defaults, &c, &found),
                     FSDP_OK);
    for (uint32_t i = 0; i < found && i < 2; i++) {
        first[i] = c[i];
    }
    free(c);
    return found;
}

UNIT_TEST(a_clear_step)
{
    struct edivisive_change c[2];
    double x[60];

    for (uint32_t i = 0; i < 60; i++) {
        x[i] = 100.0 + 0.1 * (i % 7) - (i >= 30 ? 10.0 : 0.0);
    }
    assert_int_equal(changes(x, 60, c), 1);
    assert_int_equal(c[0].begin, 30);
    assert_int_equal(c[0].found, 31); /* two runs show 10 % */
    assert_true(c[0].after < c[0].before);
    /* A change that was called stays called when more runs come in, and is not
     * called earlier. */
    assert_int_equal(changes(x, 32, c), 1);
    assert_int_equal(c[0].begin, 30);
    assert_int_equal(changes(x, 31, c), 0);
    for (uint32_t i = 45; i < 60; i++) {
        x[i] += 10.0;
    }
    assert_int_equal(changes(x, 60, c), 2);
    assert_int_equal(c[1].begin, 45);
    assert_true(c[1].after > c[1].before);
}

UNIT_TEST(nothing_to_call)
{
    struct edivisive_change c[2];
    double x[60];

    for (uint32_t i = 0; i < 60; i++) {
        x[i] = 100.0;
    }
    assert_int_equal(changes(x, 60, c), 0); /* all are alike */
    x[59] = 50.0;
    assert_int_equal(changes(x, 60, c), 0); /* one number against another */
    for (uint32_t i = 0; i < 60; i++) {
        x[i] = 100.0 + 0.1 * (i % 7) - (i >= 30 ? 1.5 : 0.0);
    }
    assert_int_equal(changes(x, 60, c), 0); /* less than 2 % */
    assert_int_equal(changes(x, 0, c), 0);
    assert_int_equal(changes(x, 1, c), 0);
}

/* Few runs are enough for what is large; see the table in edivisive.c. */
UNIT_TEST(large_changes)
{
    struct edivisive_change c[2];
    double x[28];

    assert_int_equal(edivisive_earliest(&edivisive_defaults), 13);
    for (uint32_t i = 0; i < 28; i++) {
        x[i] = (i < 3 ? 100.0 : 50.0) + 0.1 * (i % 7);
    }
    assert_int_equal(changes(x, 3, c), 0);
    assert_int_equal(changes(x, 4, c), 1); /* a halving at run 4 of 28 */
    assert_true(c[0].large);
    assert_int_equal(c[0].begin, 3);
    assert_int_equal(c[0].found, 3);
    assert_int_equal(changes(x, 28, c), 1);
    assert_int_equal(changes(x + 2, 2, c), 1); /* from the second run on */
    for (uint32_t i = 0; i < 28; i++) {
        x[i] = (i < 3 ? 100.0 : 88.0) + 0.1 * (i % 7);
    }
    assert_int_equal(changes(x, 4, c), 0);
    assert_int_equal(changes(x, 5, c), 1); /* 12 %: two against three */
    assert_int_equal(c[0].begin, 3);
    x[0] = 93.0; /* a level that scatters so */
    assert_int_equal(changes(x, 5, c), 0);
    for (uint32_t i = 0; i < 28; i++) {
        x[i] = i < 20 ? 100.0 : 50.0;
    }
    assert_int_equal(changes(x, 21, c), 0); /* old enough to wait for two */
    assert_int_equal(changes(x, 22, c), 1);
}

UNIT_TEST(what_makes_no_sense)
{
    struct edivisive_options o = edivisive_defaults;
    struct edivisive_change *c = NULL;
    double x[] = {1, NAN, 2};
    uint32_t n = 0;

    assert_int_equal(edivisive_changes(x, 3, &o, &c, &n), FSDP_ERR_INVALID);
    x[1] = 1.5;
    assert_int_equal(edivisive_changes(x, 3, &o, &c, &n), FSDP_OK);
    free(c);
    o.after = 0;
    assert_int_equal(edivisive_changes(x, 3, &o, &c, &n), FSDP_ERR_INVALID);
    o = edivisive_defaults;
    o.window = 1000000;
    assert_int_equal(edivisive_changes(x, 3, &o, &c, &n), FSDP_ERR_INVALID);
}

/* 3 % noise a sample, 0.5 % a run: of 200 histories with a step of 5 % at
 * least 95 % are found within 5 runs, of 200 without at most 2 % called. */
UNIT_TEST(rates)
{
    struct simulation s = simulation_defaults;
    struct simulation_result r;

    assert_int_equal(simulate(&s, &edivisive_defaults, &r), FSDP_OK);
    assert_int_equal(s.series, 200);
    assert_true(r.found >= 190);
    assert_true(r.called <= 4);
    /* Seeds are fixed: the figures are the same every time. */
    s.series = 20;
    assert_int_equal(simulate(&s, &edivisive_defaults, &r), FSDP_OK);
    assert_int_equal(r.found, 20);
    assert_int_equal(r.called, 0);
    /* A test that cannot fail shows nothing: without a step none is found. */
    s.step = 0.0;
    assert_int_equal(simulate(&s, &edivisive_defaults, &r), FSDP_OK);
    assert_true(r.found <= 1);
}

/* n = 5, all positive: 1 of 32. {+1, +2, -3}: sums 3 or more: 5 of 8. */
UNIT_TEST(signed_ranks)
{
    const double all[] = {0.3, 1, 2.5, 0.1, 7};
    const double some[] = {0.1, 0.2, -0.3};
    const double ties[] = {1, 1, -1, 0};
    const double bad[] = {1, INFINITY};
    struct signed_rank w;

    assert_int_equal(signed_rank(all, 5, &w), FSDP_OK);
    assert_true(fabs(w.larger - 1.0 / 32) < 1e-15);
    assert_true(fabs(w.smaller - 1.0) < 1e-15);
    assert_int_equal(w.positive, 5);
    assert_int_equal(signed_rank(some, 3, &w), FSDP_OK);
    assert_true(fabs(w.larger - 5.0 / 8) < 1e-15);
    assert_true(fabs(w.smaller - 5.0 / 8) < 1e-15);
    /* Ties: two heads or more of three coins; the zero is left out. */
    assert_int_equal(signed_rank(ties, 4, &w), FSDP_OK);
    assert_int_equal(w.n, 3);
    assert_true(fabs(w.larger - 0.5) < 1e-15);
    assert_int_equal(signed_rank(bad, 2, &w), FSDP_ERR_INVALID);
    assert_int_equal(signed_rank(all, 0, &w), FSDP_OK);
    assert_true(w.larger == 1.0 && w.smaller == 1.0);
}

/* splitmix64 from 0, as its author gives it. */
UNIT_TEST(numbers_by_lot_are_the_same_everywhere)
{
    uint64_t x = 0;

    assert_true(draw_of(&x) == UINT64_C(0xe220a8397b1dcdaf));
    assert_true(draw_of(&x) == UINT64_C(0x6e789e6aa1b965f4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_by_lot_are_the_same_everywhere),
        cmocka_unit_test(quantiles),
        cmocka_unit_test(divergence_of_a_small_series),
        cmocka_unit_test(a_clear_step),
        cmocka_unit_test(nothing_to_call),
        cmocka_unit_test(large_changes),
        cmocka_unit_test(what_makes_no_sense),
        cmocka_unit_test(rates),
        cmocka_unit_test(signed_ranks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
