/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_initial_test.c - a large model's values are its first ones, repeated,
 * whichever slice is asked for; a small one's are its own.
 */
#include "testing/unit_testing.h"
#include "tools/bench/bench_initial.h"

#include <fsdp/status.h>

enum {
    N = BENCH_INITIAL_DRAWN,
    SMALL = 1000
};
static uint64_t calls;

/* The value says where it was. */
static int values(void *context, uint32_t p, uint64_t first, uint64_t n,
                  void *out)
{
    float *to = out;

    (void)context;
    calls++;
    if (p > 1 || n > 100000) {
        return FSDP_ERR_INVALID;
    }
    for (uint64_t i = 0; i < n; i++) {
        to[i] = (float)(first + i) + (p == 1 ? 0.5f : 0.0f);
    }
    return FSDP_OK;
}

static const uint64_t large[2][FSDP_MAX_DIMS] = {{8192, 8192}, {SMALL}};
static const uint64_t small[2][FSDP_MAX_DIMS] = {{4000, 8192}, {SMALL}};
static const uint32_t dims[] = {2, 1};

static struct fsdp_model a_model(const uint64_t (*shape)[FSDP_MAX_DIMS])
{
    return (struct fsdp_model){.n_parameters = 2,
                               .parameter_shape = shape,
                               .parameter_n_dims = dims,
                               .initial = values};
}

UNIT_TEST(a_small_model_stays_as_it_is)
{
    struct fsdp_model m = a_model(small);
    struct bench_initial *x = NULL;

    assert_int_equal(bench_initial_open(&m, &x), FSDP_OK);
    assert_null(x);
    assert_true(m.initial == values);
    bench_initial_close(x);
}

UNIT_TEST(the_first_values_come_again)
{
    static const uint64_t at[] = {0, N - 3, N, 5 * (uint64_t)N - 1,
                                  8192 * (uint64_t)8192 - 7};
    struct fsdp_model m = a_model(large);
    struct bench_initial *x = NULL;
    float got[7];

    assert_int_equal(bench_initial_open(&m, &x), FSDP_OK);
    assert_non_null(x);
    calls = 0;
    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
        assert_int_equal(m.initial(m.context, 0, at[i], 7, got), FSDP_OK);
        for (uint64_t k = 0; k < 7; k++) {
            assert_float_equal(got[k], (float)((at[i] + k) % N), 0.0f);
        }
    }
    assert_int_equal(calls, 1); /* drawn once */
    assert_int_equal(m.initial(m.context, 1, 3, 7, got), FSDP_OK);
    assert_float_equal(got[0], 3.5f, 0.0f); /* small: its own */
    assert_int_equal(m.initial(m.context, 2, 0, 1, got), FSDP_ERR_INVALID);
    assert_int_equal(
        m.initial(m.context, 0, 8192 * (uint64_t)8192, 200000, got),
        FSDP_ERR_INVALID);
    bench_initial_close(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_model_stays_as_it_is),
        cmocka_unit_test(the_first_values_come_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
