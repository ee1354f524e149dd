/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_orders_test.c - folds whose order nobody declared, and errors over
 * their bounds: what is some sum of the ranks passes, what is none does not.
 */
#include "judge/replay/replay_orders.h"

#include "judge/oracle/expect_testing.h"
#include "judge/replay/bounds.h"

#include <fsdp/arith/bits.h>
#include <stdlib.h>
#include <string.h>

#include "testing/unit_testing.h"

/* Values whose sum depends on the order at every place. */
static const float value[WORLD_MAX_RANKS] = {
    1.0f,       0x1.000002p-1f, 0x1.fffffep-3f, 0x1.555556p-24f,
    0x1.8p-25f, 0x1.234568p-7f, 0x1.76543p-11f, 0x1.0002p-2f};

UNIT_TEST(all_orders_are_known)
{
    float x[3];

    assert_int_equal(orders_count(1), 1);
    assert_int_equal(orders_count(2), 1);
    assert_int_equal(orders_count(3), 3);
    assert_int_equal(orders_count(4), 18);
    assert_int_equal(orders_count(5), 180);
    assert_int_equal(orders_count(6), 16);
    memcpy(x, value, sizeof(x));
    assert_true(orders_fold(0, FSDP_DTYPE_F32, x, 3) == (x[0] + x[1]) + x[2]);
    assert_true(orders_fold(1, FSDP_DTYPE_F32, x, 3) == (x[0] + x[2]) + x[1]);
    assert_true(orders_fold(2, FSDP_DTYPE_F32, x, 3) == (x[1] + x[2]) + x[0]);
}

/* As docs/measurements/orders.md has found them; what each comes to is what no
 * other order gives. */
UNIT_TEST(open_mpi_orders_are_known)
{
    static const float x[] = {-16777215.0f, 9.0f,        11.0f, 16777216.0f,
                              -16777215.0f, 16777216.0f, 11.0f};
    const uint32_t dtype = FSDP_DTYPE_F32;

    assert_true(orders_fold(14, dtype, x, 6) ==
                ((x[0] + x[1]) + (x[2] + x[3])) + (x[4] + x[5]));
    assert_true(orders_fold(15, dtype, x, 6) ==
                ((x[0] + x[1]) + x[4]) + ((x[2] + x[3]) + x[5]));
    assert_true(orders_fold(17, dtype, x, 7) ==
                ((x[0] + x[1]) + (x[4] + x[5])) + ((x[2] + x[3]) + x[6]));
    for (uint32_t k = 0; k < 14; k++) {
        assert_false(orders_fold(k, dtype, x, 6) == 23.0f);
        assert_false(orders_fold(k, dtype, x, 6) == 24.0f);
    }
}

/* Each of n values has one bit of its own: an order that left one out, or
 * took one twice, would show. */
UNIT_TEST(every_order_has_every_value_once)
{
    for (uint32_t n = 1; n <= 16; n++) {
        float x[WORLD_MAX_RANKS];

        for (uint32_t i = 0; i < n; i++) {
            x[i] = (float)(1u << i);
        }
        for (uint32_t k = 0; k < orders_count(n); k++) {
            assert_true(orders_fold(k, FSDP_DTYPE_F32, x, n) ==
                        (float)((1u << n) - 1));
        }
    }
}

struct scene {
    struct testing_model t;
    struct run_case c;
    struct expect e;
    struct replay_reduction x;
    float grad[CASE_MAX_MICROBATCHES][WORLD_MAX_RANKS];
};

static void open_scene(struct scene *f, uint32_t ranks, uint32_t replicas)
{
    memset(f, 0, sizeof(*f));
    testing_model(&f->t, "-0", "1:4", "F1 f1 B1 b1", "F1 f1");
    f->c = testing_case(replicas > 1 ? CASE_HYBRID_SHARD : CASE_FULL_SHARD,
                        ranks, replicas);
    assert_int_equal(expect_make(&f->c, &f->t.model, &f->t.units, &f->e),
                     FSDP_OK);
    f->x.e = &f->e;
    f->x.divide = (float)ranks;
    f->x.factor = (struct expect_factors){1.0f, 1.0f / (float)ranks};
    for (uint32_t b = 0; b < CASE_MAX_MICROBATCHES; b++) {
        f->x.uses[b] = 1;
        for (uint32_t k = 0; k < ranks; k++) {
            f->grad[b][k] = value[(k + b) % 8] * (b == 0 ? 1.0f : 0.75f);
            f->x.grad[b][0][k] = &f->grad[b][k];
        }
    }
}

static bool some_order(struct scene *f, float got)
{
    uint64_t bad;

    return orders_hold(&f->x, &got, 1, &bad);
}

UNIT_TEST(divisions_have_forms)
{
    struct scene f;
    const float *g = f.grad[0];

    open_scene(&f, 3, 1);
    assert_true(some_order(&f, ((g[2] + g[1]) + g[0]) * (1.0f / 3.0f)));
    assert_true(some_order(&f, ((g[0] + g[2]) + g[1]) / 3.0f));
    assert_true(some_order(&f, g[0] / 3.0f + g[1] / 3.0f + g[2] / 3.0f));
    assert_true(
        some_order(&f, (g[0] / 2.0f + g[1] / 2.0f + g[2] / 2.0f) / 1.5f));
    assert_false(some_order(&f, (g[0] + g[1] + g[2]) * 0.25f)); /* divisor */
    assert_false(some_order(&f, (g[0] + g[1]) / 3.0f)); /* a rank is missing */
    assert_false(some_order(&f, (g[0] + g[1] + g[1]) / 3.0f)); /* is twice */
    expect_release(&f.e);
}

UNIT_TEST(a_part_has_one_form)
{
    struct scene f;
    float sum = 0x1.234568p-3f;
    float two[CASE_MAX_MICROBATCHES][3][2];
    float got[2];
    uint64_t bad = 7;

    open_scene(&f, 3, 1);
    for (uint32_t k = 0; k < 3; k++) {
        two[0][k][0] = two[0][k][1] = value[k];
        f.x.grad[0][0][k] = two[0][k];
    }
    sum = (value[0] + value[1]) + value[2];
    got[0] = sum * (1.0f / 3.0f);
    got[1] = got[0];
    assert_true(orders_hold(&f.x, got, 2, &bad));
    got[1] = fsdp_f32_from_bits(fsdp_f32_bits(got[0]) ^ 0x1555u);
    assert_false(orders_hold(&f.x, got, 2, &bad));
    assert_int_equal(bad, 1);
    got[1] = fsdp_f32_from_bits(fsdp_f32_bits(got[0]) & 0xffff0000u); /* bf16 */
    assert_false(orders_hold(&f.x, got, 2, &bad));
    expect_release(&f.e);
}

UNIT_TEST(microbatches_add_up)
{
    struct scene f;
    float p[2];

    open_scene(&f, 2, 1);
    f.c.microbatches = 2;
    f.c.sync[0] = 0;
    f.c.sync[1] = 1;
    for (uint32_t k = 0; k < 2; k++) {
        p[k] = f.grad[0][k] + f.grad[1][k];
    }
    assert_true(some_order(&f, (p[0] + p[1]) * 0.5f));
    assert_false(some_order(&f, (f.grad[1][0] + f.grad[1][1]) * 0.5f));
    expect_release(&f.e);
}

UNIT_TEST(replicas_meet_after_shards)
{
    struct scene f;
    const float *g = f.grad[0];

    open_scene(&f, 4, 2);
    assert_true(some_order(&f, ((g[2] + g[3]) + (g[0] + g[1])) * 0.25f));
    /* By dimension: halves of halves. */
    assert_true(some_order(&f, ((g[0] + g[1]) / 2 + (g[2] + g[3]) / 2) / 2));
    assert_false(some_order(&f, (g[0] + g[1]) * 0.25f));
    expect_release(&f.e);
}

UNIT_TEST(errors_are_told_by_their_bounds)
{
    struct scene f;
    struct finding out = {0};
    struct finding at = finding_at("loss", 0, -1, 0);
    float want[2] = {3.0f, 4.0f};
    float got[2] = {3.0f, 4.0f};
    double bound;

    open_scene(&f, 2, 1);
    bound = bounds_roundings(&f.e) * 0x1p-23 * 5.0;
    assert_true(bounds_roundings(&f.e) == 256.0 + 2.0 + 4.0);
    assert_true(bounds_hold(&f.e, got, want, 2, 0, at, &out));
    assert_true(out.ratio == 0.0);
    got[1] += (float)(bound * 0.5);
    assert_true(bounds_hold(&f.e, got, want, 2, 0, at, &out));
    assert_true(out.ratio > 0.49 && out.ratio < 0.51);
    got[1] = 4.0f + (float)(bound * 1.5);
    assert_false(bounds_hold(&f.e, got, want, 2, 0, at, &out));
    assert_true(
        bounds_hold(&f.e, got, want, 2, 1, at, &out)); /* a step later */
    got[0] = __builtin_nanf("");
    assert_false(bounds_hold(&f.e, got, want, 2, 9, at, &out));
    want[0] = want[1] = got[0] = got[1] = 0.0f;
    assert_true(bounds_hold(&f.e, got, want, 2, 0, at, &out));
    got[0] = 1e-30f;
    assert_false(bounds_hold(&f.e, got, want, 2, 0, at, &out));
    expect_release(&f.e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_orders_are_known),
        cmocka_unit_test(open_mpi_orders_are_known),
        cmocka_unit_test(every_order_has_every_value_once),
        cmocka_unit_test(divisions_have_forms),
        cmocka_unit_test(a_part_has_one_form),
        cmocka_unit_test(microbatches_add_up),
        cmocka_unit_test(replicas_meet_after_shards),
        cmocka_unit_test(errors_are_told_by_their_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
