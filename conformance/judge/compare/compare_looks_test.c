/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_looks_test.c - what a record shows beside the unsharded run, and
 * beside itself at another step: weights and states, all of them.
 */
#include "judge/compare/compare.h"

#include "judge/oracle/expect_testing.h"
#include "testing/unit_testing.h"

#include <math.h>
#include <stdlib.h>

enum {
    N = 5, /* elements of the one parameter, of the one rank */
    STEPS = 2
};

/* A tensor of each stage of each step. */
static void fill(struct record *r)
{
    struct record_rank *rank = &r->rank[0];

    rank->present = true;
    rank->n_tensors = STEPS * COMPARE_STAGES;
    rank->tensor = calloc(rank->n_tensors, sizeof(*rank->tensor));
    assert_non_null(rank->tensor);
    for (uint32_t i = 0; i < rank->n_tensors; i++) {
        struct record_tensor *t = &rank->tensor[i];

        t->stage = compare_stages[i % COMPARE_STAGES];
        t->step = i / COMPARE_STAGES;
        t->n = N;
        t->data = calloc(N, sizeof(*t->data));
        assert_non_null(t->data);
        for (uint32_t k = 0; k < N; k++) {
            t->data[k] = 1.0f + (float)i + 0.25f * (float)k;
        }
    }
    record_sort(rank);
}

static float *values(struct record *r, uint32_t stage, uint32_t step)
{
    for (uint32_t i = 0; i < r->rank[0].n_tensors; i++) {
        if (r->rank[0].tensor[i].stage == stage &&
            r->rank[0].tensor[i].step == step) {
            return r->rank[0].tensor[i].data;
        }
    }
    return NULL;
}

static int setup(void **state)
{
    struct fixture *x = fixture_open(state);

    testing_model(&x->t, "-0", "1:5", "F1 f1 B1 b1", "F1 f1");
    x->c = testing_case(CASE_FULL_SHARD, 1, 1);
    x->c.optimizer = FSDP_OPTIMIZER_ADAMW;
    fixture_make(x);
    fill(&x->r);
    fill(&x->baseline);
    x->e.baseline = &x->baseline;
    return 0;
}

static const struct compare_part all = {.n = N};

/* All of them, as many as the optimizer has. */
static void weights_and_states_are_compared(void **state)
{
    struct fixture *x = *state;
    struct finding f;

    assert_true(compare_all_as_baseline(&x->e, &x->r, &all, &f));
    for (uint32_t k = 0; k < COMPARE_STAGES; k++) {
        float *value = values(&x->r, compare_stages[k], 0);

        value[N - 1] += 1.0f;
        assert_false(compare_all_as_baseline(&x->e, &x->r, &all, &f));
        assert_string_equal(f.stage, record_stage_name(compare_stages[k]));
        assert_int_equal(f.element, N - 1);
        value[N - 1] -= 1.0f;
    }
    x->c.optimizer = FSDP_OPTIMIZER_MOMENTUM;
    values(&x->r, RECORD_STATE1, 0)[0] += 1.0f;
    assert_true(compare_all_as_baseline(&x->e, &x->r, &all, &f));
}

/* With what was there at another step; a NaN that stays is none of its. */
static void what_was_there_then_is_compared(void **state)
{
    struct fixture *x = *state;
    float *now = values(&x->r, RECORD_AFTER, 0);
    float *then = values(&x->r, RECORD_STATE0, 1);
    struct finding f;

    assert_false(compare_as_then(&x->e, &x->r, &all, RECORD_AFTER,
                                 RECORD_STATE0, 1, &f));
    for (uint32_t k = 0; k < N; k++) {
        then[k] = now[k] = k == 0 ? NAN : now[k];
    }
    assert_true(compare_as_then(&x->e, &x->r, &all, RECORD_AFTER, RECORD_STATE0,
                                1, &f));
    assert_false(compare_as_then(&x->e, &x->r, &all, RECORD_AFTER,
                                 RECORD_STATE0, 0, &f));
    assert_false(compare_as_baseline(&x->e, &x->r, &all, RECORD_AFTER, &f));
    now[0] = 1.0f;
    assert_false(compare_as_then(&x->e, &x->r, &all, RECORD_AFTER,
                                 RECORD_STATE0, 1, &f));
}

static bool is_state(const struct expect *e, const struct record_tensor *t)
{
    (void)e;
    return t->stage == RECORD_STATE1;
}

/* Whatever it was, it is another number, by more than a rounding. */
static void a_value_is_spoiled(void **state)
{
    static const float was[] = {3.0f, -3.0f, 0.0f, NAN, INFINITY};
    struct fixture *x = *state;
    struct record_tensor *t = compare_find_tensor(&x->e, &x->r, is_state);

    assert_ptr_equal(t->data, values(&x->r, RECORD_STATE1, 0));
    for (uint32_t k = 0; k < sizeof(was) / sizeof(was[0]); k++) {
        t->data[0] = was[k];
        assert_true(compare_spoil_value(t));
        assert_false(compare_same_or_nan(t->data[0], was[k]));
    }
    assert_false(compare_spoil_value(NULL));
    x->r.rank[0].present = false;
    assert_null(compare_find_tensor(&x->e, &x->r, is_state));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(weights_and_states_are_compared, setup),
        FIXTURE_TEST(what_was_there_then_is_compared, setup),
        FIXTURE_TEST(a_value_is_spoiled, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
