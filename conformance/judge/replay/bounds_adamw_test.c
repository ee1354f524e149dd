/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bounds_adamw_test.c - how far AdamW may go from roundings: nowhere where the
 * gradient is known, a learning rate each way and step where it is not.
 */
#include "judge/replay/bounds.h"

#include "judge/oracle/expect_testing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "testing/unit_testing.h"

static void add(struct record_rank *rank, uint32_t step, const float value[4])
{
    struct record_tensor *t =
        realloc(rank->tensor, (rank->n_tensors + 1) * sizeof(*rank->tensor));

    assert_non_null(t);
    rank->tensor = t;
    t += rank->n_tensors++;
    *t = (struct record_tensor){
        .stage = RECORD_REDUCED, .step = step, .first = 0, .n = 4};
    t->data = calloc(4, sizeof(*t->data));
    assert_non_null(t->data);
    memcpy(t->data, value, 4 * sizeof(*value));
}

/* One rank, one parameter of four elements, and the baseline's gradient of
 * steps 0 and 1: of ordinary size, of ordinary size, noise, none. */
static int setup(void **state)
{
    static const float gradient[2][4] = {{3.0f, 4.0f, 1e-7f, 0.0f},
                                         {4.0f, 3.0f, 2e-7f, 0.0f}};
    struct fixture *x = fixture_open(state);

    testing_model(&x->t, "-0", "1:4", "F1 f1 B1 b1", "F1 f1");
    x->c = testing_case(CASE_FULL_SHARD, 1, 1);
    x->c.optimizer = FSDP_OPTIMIZER_ADAMW;
    x->c.lr = 0.5f;
    x->c.steps = 4;
    x->c.recorded_steps = 2;
    fixture_make(x);
    x->baseline.rank[0].present = true;
    add(&x->baseline.rank[0], 0, gradient[0]);
    add(&x->baseline.rank[0], 1, gradient[1]);
    record_sort(&x->baseline.rank[0]);
    x->e.baseline = &x->baseline;
    return 0;
}

static double of(const struct fixture *x, uint64_t first, uint64_t n,
                 uint32_t steps)
{
    const struct compare_part part = {.first = first, .n = n, .step = steps};

    return bounds_adamw(&x->e, &part, steps);
}

/* R_0 is 1: the first step of AdamW is the sign of the gradient. */
static void noise_goes_a_learning_rate_each_way(void **state)
{
    struct fixture *x = *state;

    assert_true(fabs(of(x, 2, 1, 1) - 2.0 * 0.5) < 1e-6);
    assert_true(of(x, 2, 1, 2) > 2.0 * 0.5 * 2.0 - 1e-6);
    assert_true(of(x, 2, 1, 2) < 2.0 * 0.5 * 2.1);
    assert_true(of(x, 2, 1, 0) <= 0.0);
}

static void what_is_known_goes_nowhere(void **state)
{
    struct fixture *x = *state;
    double first = bounds_relative(&x->e, 0) * 5.0 / 3.0;

    assert_true(fabs(of(x, 0, 1, 1) - first) < 1e-3 * first);
    assert_true(of(x, 3, 1, 4) <= 0.0);
    x->c.optimizer = x->e.options.optimizer = FSDP_OPTIMIZER_SGD;
    assert_true(of(x, 0, 4, 4) <= 0.0);
}

/* By the norm of the whole parameter, whichever part is asked about. */
static void parts_add_up(void **state)
{
    struct fixture *x = *state;
    double both = hypot(of(x, 0, 2, 2), of(x, 2, 2, 2));

    assert_true(fabs(of(x, 0, 4, 2) - both) < 1e-9);
    x->e.baseline = NULL;
    assert_true(of(x, 0, 4, 2) <= 0.0);
}

/* What was added up was a hundred times as large as what is left. */
static void what_cancels_is_as_unsure_as_what_was_added_up(void **state)
{
    static const float local[4] = {300.0f, 400.0f, 0.0f, 0.0f};
    struct fixture *x = *state;
    struct record_rank *rank = &x->baseline.rank[0];
    const double alone = of(x, 0, 1, 1);

    add(rank, 0, local);
    rank->tensor[rank->n_tensors - 1].stage = RECORD_LOCAL_GRADIENT;
    record_sort(rank);
    assert_true(alone > 0.0);
    assert_true(fabs(of(x, 0, 1, 1) - 100.0 * alone) < 1e-3 * 100.0 * alone);
    x->e.unit[0].factor.behind *= 0.5f;
    assert_true(fabs(of(x, 0, 1, 1) - 50.0 * alone) < 1e-3 * 50.0 * alone);
    assert_true(of(x, 3, 1, 4) <= 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(noise_goes_a_learning_rate_each_way, setup),
        FIXTURE_TEST(what_is_known_goes_nowhere, setup),
        FIXTURE_TEST(parts_add_up, setup),
        FIXTURE_TEST(what_cancels_is_as_unsure_as_what_was_added_up, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
