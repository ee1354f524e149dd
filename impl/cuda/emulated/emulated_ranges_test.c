/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_ranges_test.c - what a profiler is shown of the CUDA device:
 * operators with their units, and windows of units.
 */
#include "cuda/cuda_testing.h"
#include "cuda/emulated/emulated_profiler.h"

static int run_fill(float *x, uint32_t unit)
{
    struct fsdp_op op = {.size = sizeof(op),
                         .kind = FSDP_OP_FILL,
                         .unit = unit,
                         .dim = {4},
                         .n_out = 1,
                         .out = {{x, 16}}};

    return cuda_env.device->run(cuda_env.device->self, NULL, &op);
}

UNIT_TEST(test_operators)
{
    const struct fsdp_device *d = cuda_env.device;
    struct emulated_profile *p = emulated_profile();
    void *x = NULL;

    assert_int_equal(d->alloc(d->self, 64, &x), FSDP_OK);
    *p = (struct emulated_profile){.looks = true};
    assert_int_equal(run_fill(x, 7), FSDP_OK);
    assert_string_equal(p->last, "fill");
    assert_int_equal(p->unit, 7);
    assert_int_equal(run_fill(x, FSDP_NO_UNIT), FSDP_OK);
    assert_true(p->unit == UINT64_MAX);
    assert_int_equal(run_fill(NULL, 0), FSDP_ERR_INVALID);
    assert_int_equal(p->pushed, 3);
    assert_int_equal(p->popped, 3);
    assert_int_equal(p->depth, 0);
    assert_int_equal(p->wrong, 0);
    d->free(d->self, x);
}

/* More windows at once than there is room for, then again: those that are
 * shown end, each once, and what is no window is not shown. */
UNIT_TEST(test_windows)
{
    enum {
        MANY = 100
    };
    const struct fsdp_device *d = cuda_env.device;
    struct emulated_profile *p = emulated_profile();
    char at[MANY];

    *p = (struct emulated_profile){.looks = true};
    d->live(d->self, NULL, FSDP_STAGING, 3, at, 1);
    d->live(d->self, NULL, FSDP_PARAM_FULL, 3, at, 0);
    d->dead(d->self, NULL, at);
    assert_int_equal(p->started + p->ended, 0);
    for (unsigned int round = 1; round <= 2; round++) {
        for (uint32_t i = 0; i < MANY; i++) {
            d->live(d->self, NULL, FSDP_PARAM_FULL, i, &at[i], 1);
        }
        assert_int_equal(p->started, round * 64);
        assert_string_equal(p->last, "unit");
        assert_int_equal(p->unit, 63);
        for (uint32_t i = 0; i < MANY; i++) {
            d->dead(d->self, NULL, &at[i]);
            d->dead(d->self, NULL, &at[i]);
        }
        assert_int_equal(p->ended, p->started);
    }
    assert_int_equal(p->wrong, 0);
}

UNIT_TEST(test_nobody_looks)
{
    const struct fsdp_device *d = cuda_env.device;
    struct emulated_profile *p = emulated_profile();
    char at = 0;

    *p = (struct emulated_profile){.looks = false};
    d->live(d->self, NULL, FSDP_PARAM_FULL, 0, &at, 1);
    d->dead(d->self, NULL, &at);
    assert_int_equal(p->ended, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operators),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_nobody_looks),
    };

    return cmocka_run_group_tests(tests, open_device, close_device) != 0;
}
