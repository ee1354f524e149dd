/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kit_test.c - what a budget of bytes offloads: the properties that PyTorch's
 * selector of parameters to offload is tested for.
 */
#include "kit.h"

#include "testing/unit_testing.h"

enum {
    UNITS = 6
};

static const uint64_t bytes[UNITS] = {40, 100, 60, 100, 0, 10};

static uint64_t choose(uint64_t budget, uint32_t offload[UNITS])
{
    return fsdp_offload_by_budget(UNITS, bytes, budget, offload);
}

static void assert_chosen(uint64_t budget, const uint32_t want[UNITS])
{
    uint32_t got[UNITS] = {0};

    choose(budget, got);
    assert_memory_equal(got, want, sizeof(got));
}

UNIT_TEST(test_largest_first)
{
    static const uint32_t want[UNITS] = {2, 1, 1, 2, 1, 2};

    assert_chosen(160, want); /* 100, not again 100, 60 */
}

UNIT_TEST(test_ties_by_index)
{
    static const uint32_t want[UNITS] = {2, 1, 2, 2, 1, 2};

    assert_chosen(100, want);
}

UNIT_TEST(test_smaller_ones_fill_up)
{
    static const uint32_t want[UNITS] = {1, 2, 2, 2, 1, 1};

    assert_chosen(50, want);
}

UNIT_TEST(test_all_fit)
{
    static const uint32_t want[UNITS] = {1, 1, 1, 1, 1, 1};
    uint32_t got[UNITS];

    assert_chosen(310, want);
    assert_chosen(UINT64_MAX, want);
    assert_int_equal(choose(UINT64_MAX, got), 310);
}

UNIT_TEST(test_never_beyond)
{
    for (uint64_t budget = 0; budget < 400; budget++) {
        uint32_t got[UNITS] = {0};
        const uint64_t said = choose(budget, got);
        uint64_t sum = 0;

        for (uint32_t u = 0; u < UNITS; u++) {
            sum += got[u] == 1 ? bytes[u] : 0;
        }
        assert_true(sum <= budget);
        assert_int_equal(sum, said);
    }
}

UNIT_TEST(test_more_by_more)
{
    uint64_t before = 0;

    for (uint64_t budget = 1; budget < 400; budget++) {
        uint32_t got[UNITS];
        const uint64_t now = choose(budget, got);

        assert_true(now >= before);
        before = now;
    }
}

UNIT_TEST(test_same_again)
{
    for (uint64_t budget = 1; budget < 400; budget++) {
        uint32_t one[UNITS] = {9, 9, 9, 9, 9, 9};
        uint32_t two[UNITS] = {0};

        choose(budget, one);
        choose(budget, two);
        assert_memory_equal(one, two, sizeof(one));
    }
}

UNIT_TEST(test_zero_says_nothing)
{
    static const uint32_t want[UNITS] = {7, 7, 7, 7, 7, 7};
    uint32_t got[UNITS] = {7, 7, 7, 7, 7, 7};

    assert_int_equal(choose(0, got), 0);
    assert_memory_equal(got, want, sizeof(got));
    assert_int_equal(fsdp_offload_by_budget(0, bytes, 10, got), 0);
    assert_memory_equal(got, want, sizeof(got));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_largest_first),
        cmocka_unit_test(test_ties_by_index),
        cmocka_unit_test(test_smaller_ones_fill_up),
        cmocka_unit_test(test_all_fit),
        cmocka_unit_test(test_never_beyond),
        cmocka_unit_test(test_more_by_more),
        cmocka_unit_test(test_same_again),
        cmocka_unit_test(test_zero_says_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
