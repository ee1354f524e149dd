/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_gradient_test.c - that op.h is right mathematics, not only that it is
 * followed: what the backward operators return is the derivative of what the
 * forward operators return, by central differences.
 */
#include "ops_test.h"

#include <math.h>

/* The loss: out[0] times a fixed random weight for each element. */
static double loss(struct trial *t, const float *weight)
{
    uint64_t n = t->op.out[0].bytes / 4;
    double sum = 0.0;

    assert_int_equal(t->device.run(t->device.self, NULL, &t->op), FSDP_OK);
    for (uint64_t i = 0; i < n; i++) {
        sum += (double)weight[i] * (double)t->out[0][i];
    }
    return sum;
}

/* Is `gradient` the derivative of the loss by in[i]? */
static void check_gradient(struct trial *forward, const float *weight,
                           uint32_t i, const float *gradient)
{
    uint64_t n = forward->op.in[i].bytes / 4;
    float *x = forward->in[i];
    bool any = false;

    for (uint64_t e = 0; e < n; e++) {
        float was = x[e];
        double above;
        double below;
        double numeric;

        x[e] = was + 0x1p-7f;
        above = loss(forward, weight);
        x[e] = was - 0x1p-7f;
        below = loss(forward, weight);
        x[e] = was;
        numeric = (above - below) / 0x1p-6;
        any = any || fabs(numeric) > 0.1;
        if (!(fabs((double)gradient[e] - numeric) <=
              0.01 * fabs(numeric) + 2e-3)) {
            fail_msg("in[%u][%d]: %g, by differences %g", i, (int)e,
                     (double)gradient[e], numeric);
        }
    }
    assert_true(any);
}

static void shrink(float *x, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        x[i] *= 0.25f;
    }
}

static void copy_in(struct trial *t, uint32_t i, const void *from)
{
    memcpy(t->in[i], from, t->op.in[i].bytes);
}

UNIT_TEST(activations)
{
    static const uint32_t pairs[][2] = {{FSDP_OP_RELU, FSDP_OP_RELU_BACKWARD},
                                        {FSDP_OP_GELU, FSDP_OP_GELU_BACKWARD}};

    for (int i = 0; i < 2; i++) {
        struct trial f;
        struct trial b;

        trial_open(&f, pairs[i][0], 100, 0, 0, 0, 0);
        trial_open(&b, pairs[i][1], 100, 0, 0, 0, 0);
        for (uint64_t e = 0; e < 100; e++) {
            f.in[0][e] += f.in[0][e] > 0.0f ? 0.02f : -0.02f; /* the kink */
        }
        copy_in(&b, 0, f.in[0]);

        assert_int_equal(trial_run(&b), FSDP_OK);

        check_gradient(&f, b.in[1], 0, b.out[0]);
        trial_close(&f);
        trial_close(&b);
    }
}

UNIT_TEST(gemm)
{
    struct trial f;
    struct trial grad_b;
    struct trial grad_a;

    trial_open(&f, FSDP_OP_GEMM, 6, 5, 4, 0, 0);
    trial_open(&grad_b, FSDP_OP_GEMM_GRAD, 4, 5, 6, 2, 0);
    trial_open(&grad_a, FSDP_OP_GEMM, 6, 4, 5, 0, 0);
    grad_a.op.flags = FSDP_OP_TRANSPOSE_B;
    copy_in(&grad_b, 0, f.in[0]);
    copy_in(&grad_a, 0, grad_b.in[1]);
    copy_in(&grad_a, 1, f.in[1]);

    assert_int_equal(trial_run(&grad_b), FSDP_OK);
    assert_int_equal(trial_run(&grad_a), FSDP_OK);

    check_gradient(&f, grad_b.in[1], 0, grad_a.out[0]);
    check_gradient(&f, grad_b.in[1], 1, grad_b.out[0]);
    trial_close(&f);
    trial_close(&grad_b);
    trial_close(&grad_a);
}

UNIT_TEST(bias)
{
    struct trial f;
    struct trial b;

    trial_open(&f, FSDP_OP_BIAS, 6, 5, 0, 0, 0);
    trial_open(&b, FSDP_OP_COLUMN_SUM, 6, 5, 3, 0, 0);

    assert_int_equal(trial_run(&b), FSDP_OK);

    check_gradient(&f, b.in[0], 1, b.out[0]);
    trial_close(&f);
    trial_close(&b);
}

UNIT_TEST(norm)
{
    struct trial f;
    struct trial b;
    struct trial grad;

    trial_open(&f, FSDP_OP_NORM, 4, 37, 0, 0, 0);
    trial_open(&b, FSDP_OP_NORM_BACKWARD, 4, 37, 0, 0, 0);
    trial_open(&grad, FSDP_OP_NORM_GRAD, 4, 37, 2, 0, 0);
    f.op.f[0] = 1e-5f;
    assert_int_equal(trial_run(&f), FSDP_OK);
    copy_in(&b, 0, f.in[0]);
    copy_in(&b, 1, f.in[1]);
    copy_in(&b, 2, f.out[1]);
    copy_in(&grad, 0, f.in[0]);
    copy_in(&grad, 1, f.out[1]);
    copy_in(&grad, 2, b.in[3]);

    assert_int_equal(trial_run(&b), FSDP_OK);
    assert_int_equal(trial_run(&grad), FSDP_OK);

    check_gradient(&f, b.in[3], 0, b.out[0]);
    check_gradient(&f, b.in[3], 1, grad.out[0]);
    check_gradient(&f, b.in[3], 2, grad.out[1]);
    trial_close(&f);
    trial_close(&b);
    trial_close(&grad);
}

UNIT_TEST(embedding)
{
    struct trial f;
    struct trial b;

    trial_open(&f, FSDP_OP_EMBEDDING, 8, 3, 4, 5, 0);
    trial_open(&b, FSDP_OP_EMBEDDING_GRAD, 8, 3, 4, 5, 2);

    assert_int_equal(trial_run(&b), FSDP_OK);

    check_gradient(&f, b.in[1], 1, b.out[0]);
    check_gradient(&f, b.in[1], 2, b.out[1]);
    trial_close(&f);
    trial_close(&b);
}

UNIT_TEST(attention)
{
    struct trial f;
    struct trial b;

    trial_open(&f, FSDP_OP_ATTENTION, 2, 7, 2, 3, 0);
    trial_open(&b, FSDP_OP_ATTENTION_BACKWARD, 2, 7, 2, 3, 0);
    f.op.f[0] = b.op.f[0] = 0.57735f;
    shrink(f.in[0], f.op.in[0].bytes / 4);
    assert_int_equal(trial_run(&f), FSDP_OK);
    copy_in(&b, 0, f.in[0]);
    copy_in(&b, 1, f.out[0]);
    copy_in(&b, 2, f.out[1]);

    assert_int_equal(trial_run(&b), FSDP_OK);

    check_gradient(&f, b.in[3], 0, b.out[0]);
    trial_close(&f);
    trial_close(&b);
}

/* A loss's out[0] is the rows' losses and out[1] the gradient of their sum,
 * times `factor`. */
static void check_loss(uint32_t kind, float factor)
{
    static const float ones[5] = {1.0f, 1.0f, 1.0f, 1.0f, 1.0f};
    float gradient[5 * 11];
    struct trial t;

    trial_open(&t, kind, 5, 11, 0, 0, 0);
    t.op.f[0] = factor;

    assert_int_equal(trial_run(&t), FSDP_OK);

    memcpy(gradient, t.out[1], sizeof(gradient));
    check_gradient(&t, ones, 0, gradient);
    trial_close(&t);
}

UNIT_TEST(losses)
{
    check_loss(FSDP_OP_MSE, 2.0f);
    check_loss(FSDP_OP_LINEAR_LOSS, 1.0f);
    check_loss(FSDP_OP_CROSS_ENTROPY, 1.0f);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations), cmocka_unit_test(gemm),
        cmocka_unit_test(bias),        cmocka_unit_test(norm),
        cmocka_unit_test(embedding),   cmocka_unit_test(attention),
        cmocka_unit_test(losses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
