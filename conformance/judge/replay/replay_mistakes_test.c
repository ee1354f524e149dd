/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_mistakes_test.c - reductions that went wrong in a known way are told
 * by name, and no others.
 */
#include "judge/replay/replay.h"

#include "judge/oracle/expect_testing.h"

#include <string.h>

#include "testing/unit_testing.h"

/* One unit of 8 elements over three ranks. */
struct scene {
    struct testing_model t;
    struct run_case c;
    struct expect e;
    float grad[2][3]; /* by microbatch and rank: of element 0 */
    struct replay_reduction reduction;
};

static void make(struct scene *x, const uint8_t sync[2], uint32_t n)
{
    memset(x, 0, sizeof(*x));
    testing_model(&x->t, "-0", "1:5 1:3", "F1 f1 B1 b1", "F1 f1");
    x->c = testing_case(CASE_FULL_SHARD, 3, 1);
    x->c.microbatches = n;
    for (uint32_t b = 0; b < n; b++) {
        x->c.sync[b] = sync[b];
    }
    assert_int_equal(expect_make(&x->c, &x->t.model, &x->t.units, &x->e),
                     FSDP_OK);
    x->reduction = (struct replay_reduction){
        .e = &x->e, .factor = {1.0f, 1.0f / 3.0f}, .uses = {1, 1}};
    for (uint32_t b = 0; b < 2; b++) {
        for (uint32_t k = 0; k < 3; k++) {
            x->reduction.grad[b][0][k] = &x->grad[b][k];
        }
    }
}

/* The words for what was got; "": none. */
static const char *words(const struct scene *x, float got)
{
    const char *text = replay_mistake(&x->reduction, &got, 1);

    return text ? text : "";
}

UNIT_TEST(scaled_before_the_fold)
{
    static const uint8_t sync[2] = {1, 1};
    struct scene x;
    float got = 0.0f;

    make(&x, sync, 1);
    for (float v = 1.0f; v < 100.0f; v += 1.0f) {
        x.grad[0][0] = v;
        x.grad[0][1] = v + 1.0f;
        x.grad[0][2] = 0.7f;
        got = 0.0f;
        for (uint32_t k = 0; k < 3; k++) {
            float one = x.grad[0][k] * x.reduction.factor.behind;
            got = k == 0 ? one : got + one;
        }
        if (got != replay_reduced(&x.reduction, 0)) {
            break;
        }
    }
    assert_true(got != replay_reduced(&x.reduction, 0));
    assert_non_null(strstr(words(&x, got), "each scaled before it"));
    assert_string_equal(words(&x, got * 1.5f), "");
    expect_release(&x.e);
}

UNIT_TEST(microbatches_without_sync)
{
    static const uint8_t sync[2] = {0, 1};
    struct scene x;
    float got = 0.0f;

    make(&x, sync, 2);
    for (float v = 1.0f; v < 100.0f; v += 1.0f) {
        float each[2];

        for (uint32_t b = 0; b < 2; b++) {
            x.grad[b][0] = v * 0.37f;
            x.grad[b][1] = v * 1.13f + (float)b;
            x.grad[b][2] = 0.7f - v * (float)b;
            each[b] = ((x.grad[b][0] + x.grad[b][1]) + x.grad[b][2]) *
                      x.reduction.factor.behind;
        }
        got = each[0] + each[1];
        /* Not the bits of any other mistake, by chance. */
        if (got != replay_reduced(&x.reduction, 0) &&
            !strstr(words(&x, got), "each scaled before it")) {
            break;
        }
    }
    assert_true(got != replay_reduced(&x.reduction, 0));
    assert_non_null(strstr(words(&x, got), "a fold for each microbatch"));
    expect_release(&x.e);
}

UNIT_TEST(what_was_taken_is_taken_again)
{
    static const uint8_t sync[2] = {1, 1};
    struct scene x;

    make(&x, sync, 2);
    x.reduction.factor.behind = 1.0f;
    for (uint32_t k = 0; k < 3; k++) {
        x.grad[0][k] = 3.0f;
        x.grad[1][k] = 5.0f;
    }
    assert_true(replay_reduced(&x.reduction, 0) == 24.0f);
    assert_non_null(strstr(words(&x, 9.0f + 24.0f), "take again"));
    assert_string_equal(words(&x, 25.0f), "");
    expect_release(&x.e);
}

UNIT_TEST(another_order)
{
    static const uint8_t sync[2] = {1, 1};
    struct scene x;

    make(&x, sync, 1);
    x.reduction.factor.behind = 1.0f;
    x.grad[0][0] = 1e8f; /* its owner, who comes last in the ring */
    x.grad[0][1] = -1e8f;
    x.grad[0][2] = 1.0f;
    assert_true(replay_reduced(&x.reduction, 0) == 1.0f);
    assert_non_null(strstr(words(&x, 0.0f), "by ring"));
    expect_release(&x.e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scaled_before_the_fold),
        cmocka_unit_test(microbatches_without_sync),
        cmocka_unit_test(what_was_taken_is_taken_again),
        cmocka_unit_test(another_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
