/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_optimizer_test.c - SGD, MOMENTUM and ADAMW: by hand on numbers that are
 * exact, bit for bit against op.h, and ADAMW against its paper in doubles.
 */
#include "ops_test.h"

#include <math.h>

enum {
    N = 65
};

static void open_optimizer(struct trial *t, uint32_t kind, uint64_t n,
                           const float *f)
{
    trial_open(t, kind, n, 0, 0, 0, 0);
    memcpy(t->op.f, f, 7 * sizeof(float));
    for (uint64_t i = 0; i < n && kind == FSDP_OP_ADAMW; i++) {
        t->in[3][i] = fabsf(t->in[3][i]);
    }
}

UNIT_TEST(sgd_by_hand)
{
    struct trial t;

    open_optimizer(&t, FSDP_OP_SGD, 1, (float[7]){0.5f, 0.0f});
    t.in[0][0] = 1.0f;
    t.in[1][0] = 2.0f;
    assert_int_equal(trial_run(&t), FSDP_OK);
    assert_true(same_bits(t.out[0][0], 0.0f)); /* 1 - 0.5 * 2 */

    t.op.f[1] = 0.5f;
    t.in[0][0] = 1.0f;
    assert_int_equal(trial_run(&t), FSDP_OK);
    assert_true(same_bits(t.out[0][0], -0.25f)); /* 1 - 0.5 * (2 + 0.5) */

    /* Without decay an infinite weight is not multiplied by 0. */
    t.op.f[1] = 0.0f;
    t.in[0][0] = INFINITY;
    assert_int_equal(trial_run(&t), FSDP_OK);
    assert_true(same_bits(t.out[0][0], INFINITY));
    trial_close(&t);
}

UNIT_TEST(momentum_by_hand)
{
    struct trial t;

    open_optimizer(&t, FSDP_OP_MOMENTUM, 1, (float[7]){0.5f, 0.25f, 0.5f});
    t.in[0][0] = 4.0f;
    t.in[1][0] = 1.0f;
    t.in[2][0] = 0.0f;

    assert_int_equal(trial_run(&t), FSDP_OK);
    assert_true(same_bits(t.out[1][0], 2.0f)); /* 0.25 * 4 + 1 */
    assert_true(same_bits(t.out[0][0], 3.0f)); /* 4 - 0.5 * 2 */

    assert_int_equal(trial_run(&t), FSDP_OK);
    assert_true(same_bits(t.out[1][0], 2.75f));  /* 1 + 0.25 * 3 + 1 */
    assert_true(same_bits(t.out[0][0], 1.625f)); /* 3 - 0.5 * 2.75 */
    trial_close(&t);
}

UNIT_TEST(adamw_by_hand)
{
    struct trial t;

    open_optimizer(&t, FSDP_OP_ADAMW, 1,
                   (float[7]){0.5f, 0.5f, 0.5f, 0.75f, 2.0f, 0.5f, 0.75f});
    t.in[0][0] = 1.0f;
    t.in[1][0] = 2.0f;
    t.in[2][0] = 0.0f;
    t.in[3][0] = 0.0f;

    assert_int_equal(trial_run(&t), FSDP_OK);

    assert_true(same_bits(t.out[1][0], 1.0f)); /* 0.5 * 2 */
    assert_true(same_bits(t.out[2][0], 1.0f)); /* 0.25 * 2 * 2 */
    /* 1 - 0.25 = 0.75, and from that 1 * (1 / (1 / 0.5 + 2)) */
    assert_true(same_bits(t.out[0][0], 0.5f));
    trial_close(&t);
}

static float decayed(const float *f, float w, float g)
{
    return f[1] == 0.0f ? g : fmaf(f[1], w, g);
}

UNIT_TEST(updates_are_literal)
{
    static const uint64_t sizes[] = {0, 1, 31, 32, 33, N};
    static const float f[] = {0.03f, 0.1f,  0.9f,     0.95f,
                              1e-8f, 0.81f, 0.857375f};

    for (int i = 0; i < 6; i++) {
        struct trial sgd;
        struct trial momentum;
        struct trial adamw;

        open_optimizer(&sgd, FSDP_OP_SGD, sizes[i], f);
        open_optimizer(&momentum, FSDP_OP_MOMENTUM, sizes[i], f);
        open_optimizer(&adamw, FSDP_OP_ADAMW, sizes[i], f);

        assert_int_equal(trial_run(&sgd), FSDP_OK);
        assert_int_equal(trial_run(&momentum), FSDP_OK);
        assert_int_equal(trial_run(&adamw), FSDP_OK);

        for (uint64_t e = 0; e < sizes[i]; e++) {
            float w = sgd.before[0][e];
            float d = decayed(f, w, sgd.in[1][e]);
            float v;
            float m;

            assert_true(same_bits(sgd.out[0][e], fmaf(-f[0], d, w)));

            w = momentum.before[0][e];
            d = decayed(f, w, momentum.in[1][e]);
            v = fmaf(f[2], momentum.before[2][e], d);
            assert_true(same_bits(momentum.out[1][e], v));
            assert_true(same_bits(momentum.out[0][e], fmaf(-f[0], v, w)));

            w = adamw.before[0][e];
            d = adamw.in[1][e];
            m = fmaf(f[2], adamw.before[2][e], (1.0f - f[2]) * d);
            v = (1.0f - f[3]) * d;
            v = fmaf(f[3], adamw.before[3][e], v * d);
            w = fmaf(-(f[0] * f[1]), w, w);
            d = sqrtf(v) / sqrtf(1.0f - f[6]) + f[4];
            w = fmaf(-(f[0] / (1.0f - f[5])), m / d, w);
            assert_true(same_bits(adamw.out[1][e], m));
            assert_true(same_bits(adamw.out[2][e], v));
            assert_true(same_bits(adamw.out[0][e], w));
        }
        trial_close(&sgd);
        trial_close(&momentum);
        trial_close(&adamw);
    }
}

/* Loshchilov and Hutter, "Decoupled weight decay regularization", algorithm 2,
 * with the learning rate in front of the decay. */
UNIT_TEST(adamw_follows_its_paper)
{
    double w[N];
    double m[N] = {0.0};
    double v[N] = {0.0};
    struct trial t;

    open_optimizer(&t, FSDP_OP_ADAMW, N,
                   (float[7]){0.01f, 0.1f, 0.9f, 0.95f, 1e-8f, 1.0f, 1.0f});
    memset(t.in[2], 0, N * sizeof(float));
    memset(t.in[3], 0, N * sizeof(float));
    for (int e = 0; e < N; e++) {
        w[e] = (double)t.in[0][e];
    }
    for (int step = 1; step <= 10; step++) {
        t.op.f[5] *= 0.9f;
        t.op.f[6] *= 0.95f;
        for (int e = 0; e < N; e++) {
            double g = (double)(t.in[1][e] = trial_random());

            m[e] = 0.9 * m[e] + 0.1 * g;
            v[e] = 0.95 * v[e] + 0.05 * g * g;
            w[e] -= 0.01 * 0.1 * w[e];
            w[e] -= 0.01 * m[e] / (1.0 - pow(0.9, step)) /
                    (sqrt(v[e] / (1.0 - pow(0.95, step))) + 1e-8);
        }
        assert_int_equal(trial_run(&t), FSDP_OK);
        for (int e = 0; e < N; e++) {
            assert_true(fabs((double)t.out[0][e] - w[e]) <=
                        1e-5 * (1.0 + fabs(w[e])));
        }
    }
    trial_close(&t);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(sgd_by_hand),
        cmocka_unit_test(momentum_by_hand),
        cmocka_unit_test(adamw_by_hand),
        cmocka_unit_test(updates_are_literal),
        cmocka_unit_test(adamw_follows_its_paper),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
