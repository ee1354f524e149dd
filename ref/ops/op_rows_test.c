/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_rows_test.c - the operators that work on a row or an element by itself,
 * bit for bit against op.h taken literally: NORM, ATTENTION, the losses, GELU,
 * RELU, CAST, COPY_2D and plain arithmetic. And what NaN does to them.
 */
#include "op_literal_test.h"
#include "ops.h"
#include "ops_test.h"

#include <fsdp/arith/cast.h>
#include <fsdp/arith/exp.h>
#include <fsdp/arith/log.h>
#include <fsdp/arith/rsqrt.h>
#include <fsdp/arith/tanh.h>

static const uint64_t sizes[] = {0, 1, 31, 32, 33, 65};
enum {
    N_SIZES = 6,
    MOST = 65
};

UNIT_TEST(elements_are_what_they_say)
{
    for (uint32_t i = 0; i < N_SIZES; i++) {
        uint64_t n = sizes[i];
        struct trial fill;
        struct trial scale;
        struct trial add;
        struct trial bias;

        trial_open(&fill, FSDP_OP_FILL, n, 0, 0, 0, 0);
        trial_open(&scale, FSDP_OP_SCALE, n, 0, 0, 0, 0);
        trial_open(&add, FSDP_OP_ADD, n, 0, 0, 0, 0);
        trial_open(&bias, FSDP_OP_BIAS, 3, n, 0, 0, 0);
        fill.op.f[0] = scale.op.f[0] = 0.3f;

        assert_int_equal(trial_run(&fill), FSDP_OK);
        assert_int_equal(trial_run(&scale), FSDP_OK);
        assert_int_equal(trial_run(&add), FSDP_OK);
        assert_int_equal(trial_run(&bias), FSDP_OK);

        for (uint64_t j = 0; j < n; j++) {
            assert_true(same_bits(fill.out[0][j], 0.3f));
            assert_true(same_bits(scale.out[0][j], scale.before[0][j] * 0.3f));
            assert_true(same_bits(add.out[0][j], add.in[0][j] + add.in[1][j]));
            assert_true(same_bits(bias.out[0][2 * n + j],
                                  bias.in[0][2 * n + j] + bias.in[1][j]));
        }
        trial_close(&fill);
        trial_close(&scale);
        trial_close(&add);
        trial_close(&bias);
    }
}

/* 1.01 rounded once, and nothing behind the range. */
UNIT_TEST(sixteen_bits_are_filled)
{
    static const struct {
        uint32_t dtype;
        uint16_t bits;
    } want[] = {{FSDP_DTYPE_BF16, 0x3f81}, {FSDP_DTYPE_F16, 0x3c0a}};

    struct fsdp_device d;

    assert_int_equal(ref_device_open(&d), FSDP_OK);
    for (uint32_t k = 0; k < 2; k++) {
        uint16_t x[8] = {0};
        struct fsdp_op op = {.size = sizeof(op),
                             .kind = FSDP_OP_FILL,
                             .aux = {want[k].dtype},
                             .dim = {7},
                             .f = {1.01f},
                             .n_out = 1,
                             .out = {{x, 14}}};

        assert_int_equal(d.run(d.self, NULL, &op), FSDP_OK);
        for (uint32_t i = 0; i < 8; i++) {
            assert_int_equal(x[i], i < 7 ? want[k].bits : 0);
        }
        op.out[0].bytes = 28; /* as if they were float32 */
        assert_int_equal(d.run(d.self, NULL, &op), FSDP_ERR_INVALID);
        op.aux[0] = FSDP_DTYPE_I32;
        assert_int_equal(d.run(d.self, NULL, &op), FSDP_ERR_UNSUPPORTED);
    }
}

UNIT_TEST(relu_keeps_nan)
{
    static const float x[] = {1.5f, -1.5f, 0.0f, -0.0f, INFINITY, -INFINITY};
    static const float y[] = {1.5f, 0.0f, 0.0f, 0.0f, INFINITY, 0.0f};
    struct trial forward;
    struct trial backward;

    trial_open(&forward, FSDP_OP_RELU, 7, 0, 0, 0, 0);
    trial_open(&backward, FSDP_OP_RELU_BACKWARD, 7, 0, 0, 0, 0);
    memcpy(forward.in[0], x, sizeof(x));
    memcpy(backward.in[0], x, sizeof(x));
    forward.in[0][6] = backward.in[0][6] = NAN;

    assert_int_equal(trial_run(&forward), FSDP_OK);
    assert_int_equal(trial_run(&backward), FSDP_OK);

    for (int i = 0; i < 6; i++) {
        float dy = backward.in[1][i];

        assert_true(same_bits(forward.out[0][i], y[i]));
        assert_true(same_bits(backward.out[0][i], x[i] > 0.0f ? dy : 0.0f));
    }
    assert_true(isnan(forward.out[0][6]));
    assert_true(isnan(backward.out[0][6]));
    trial_close(&forward);
    trial_close(&backward);
}

UNIT_TEST(gelu_is_the_tanh_form)
{
    const float c = 0.797884561f;
    struct trial forward;
    struct trial backward;

    trial_open(&forward, FSDP_OP_GELU, 65, 0, 0, 0, 0);
    trial_open(&backward, FSDP_OP_GELU_BACKWARD, 65, 0, 0, 0, 0);
    forward.in[0][64] = NAN;
    memcpy(backward.in[0], forward.in[0], 65 * sizeof(float));

    assert_int_equal(trial_run(&forward), FSDP_OK);
    assert_int_equal(trial_run(&backward), FSDP_OK);

    for (int i = 0; i < 65; i++) {
        float x = forward.in[0][i];
        float square = x * x;
        float t = fsdp_tanhf(c * fmaf(0.044715f * square, x, x));
        float v = c * fmaf(0.134145f, square, 1.0f);
        float half = 0.5f * x;
        float slope = fmaf(half * fmaf(-t, t, 1.0f), v, 0.5f * (1.0f + t));

        assert_true(same_bits(forward.out[0][i], half * (1.0f + t)));
        assert_true(same_bits(backward.out[0][i], backward.in[1][i] * slope));
    }
    assert_true(isnan(forward.out[0][64]));
    trial_close(&forward);
    trial_close(&backward);
}

/* Differences of one row of NORM from op.h. */
static uint64_t norm_row(const struct trial *t, enum literal_order order,
                         uint64_t row)
{
    uint64_t n = t->op.dim[1];
    const float *x = t->in[0] + row * n;
    float d[MOST];
    float mean = literal_lanes(order, n, x, NULL) / (float)n;
    uint64_t count = 0;
    float r;

    for (uint64_t c = 0; c < n; c++) {
        d[c] = x[c] - mean;
    }
    r = fsdp_rsqrtf(literal_lanes(order, n, d, d) / (float)n + t->op.f[0]);
    count += !same_bits(t->out[1][2 * row], mean);
    count += !same_bits(t->out[1][2 * row + 1], r);
    for (uint64_t c = 0; c < n; c++) {
        float y = fmaf(d[c] * r, t->in[1][c], t->in[2][c]);

        count += !same_bits(t->out[0][row * n + c], y);
    }
    return count;
}

static uint64_t norm_backward_row(const struct trial *t,
                                  enum literal_order order, uint64_t row)
{
    uint64_t n = t->op.dim[1];
    float r = t->in[2][2 * row + 1];
    float g[MOST];
    float h[MOST];
    uint64_t count = 0;
    float s1;
    float s2;

    for (uint64_t c = 0; c < n; c++) {
        h[c] = (t->in[0][row * n + c] - t->in[2][2 * row]) * r;
        g[c] = t->in[3][row * n + c] * t->in[1][c];
    }
    s1 = literal_lanes(order, n, g, NULL) / (float)n;
    s2 = literal_lanes(order, n, g, h) / (float)n;
    for (uint64_t c = 0; c < n; c++) {
        float dx = r * fmaf(-h[c], s2, g[c] - s1);

        count += !same_bits(t->out[0][row * n + c], dx);
    }
    return count;
}

static uint64_t squares_row(const struct trial *t, enum literal_order order,
                            uint64_t row)
{
    uint64_t n = t->op.dim[1];
    bool mse = t->op.kind == FSDP_OP_MSE;
    const float *y = t->in[0] + row * n;
    const float *other = t->in[1] + row * n;
    float d[MOST];
    uint64_t count = 0;

    for (uint64_t c = 0; c < n; c++) {
        float dy = t->op.f[0] * (mse ? y[c] - other[c] : other[c]);

        d[c] = y[c] - other[c];
        count += !same_bits(t->out[1][row * n + c], dy);
    }
    return count +
           !same_bits(t->out[0][row],
                      literal_lanes(order, n, mse ? d : y, mse ? d : other));
}

static uint64_t cross_entropy_row(const struct trial *t,
                                  enum literal_order order, uint64_t row)
{
    uint64_t n = t->op.dim[1];
    const float *x = t->before[0] + row * n;
    uint64_t id = (uint64_t)((const int32_t *)t->op.in[1].p)[row];
    float m = literal_maximum(x, n);
    float e[MOST];
    uint64_t count = 0;
    float s;

    for (uint64_t c = 0; c < n; c++) {
        e[c] = fsdp_expf(x[c] - m);
    }
    s = literal_lanes(order, n, e, NULL);
    count += !same_bits(t->out[0][row], fsdp_logf(s) - (x[id] - m));
    for (uint64_t c = 0; c < n; c++) {
        float dx = (e[c] / s - (c == id ? 1.0f : 0.0f)) * t->op.f[0];

        count += !same_bits(t->out[1][row * n + c], dx);
    }
    return count;
}

UNIT_TEST(rows_are_literal)
{
    static const struct {
        uint32_t kind;
        uint64_t (*differences)(const struct trial *, enum literal_order,
                                uint64_t row);
    } cases[] = {
        {FSDP_OP_NORM, norm_row},
        {FSDP_OP_NORM_BACKWARD, norm_backward_row},
        {FSDP_OP_MSE, squares_row},
        {FSDP_OP_LINEAR_LOSS, squares_row},
        {FSDP_OP_CROSS_ENTROPY, cross_entropy_row},
    };

    for (uint32_t i = 0; i < 5 * N_SIZES; i++) {
        uint64_t n = sizes[i / 5];
        uint64_t rows =
            cases[i % 5].kind == FSDP_OP_CROSS_ENTROPY && n == 0 ? 0 : 20;
        uint64_t backward = 0;
        struct trial t;

        trial_open(&t, cases[i % 5].kind, rows, n, 0, 0, 0);
        t.op.f[0] = 0.01f;

        assert_int_equal(trial_run(&t), FSDP_OK);

        for (uint64_t row = 0; row < rows; row++) {
            assert_int_equal(cases[i % 5].differences(&t, LITERAL_FORWARD, row),
                             0);
            backward += cases[i % 5].differences(&t, LITERAL_BACKWARD, row);
        }
        assert_true(n < 31 || backward > 0);
        trial_close(&t);
    }
}

UNIT_TEST(cross_entropy_works_in_place_and_sees_nan)
{
    struct trial t;

    trial_open(&t, FSDP_OP_CROSS_ENTROPY, 9, 33, 0, 0, 0);
    t.op.f[0] = 0.25f;
    t.device.free(t.device.self, t.out[1]);
    t.out[1] = t.in[0];
    t.op.out[1].p = t.in[0];
    t.in[0][4 * 33 + 32] = NAN;

    assert_int_equal(trial_run(&t), FSDP_OK);

    for (uint64_t row = 0; row < 9; row++) {
        assert_int_equal(cross_entropy_row(&t, LITERAL_FORWARD, row), 0);
        assert_int_equal(isnan(t.out[0][row]) != 0, row == 4);
        assert_int_equal(isnan(t.out[1][row * 33]) != 0, row == 4);
    }
    trial_close(&t);
}

UNIT_TEST(bf16_casts_both_ways)
{
    static const float x[] = {1.0f,          0x1.01p0f,      0x1.03p0f,
                              0x1.010002p0f, -0x1p-149f,     INFINITY,
                              NAN,           0x1.fffffep127f};
    static const uint16_t want[] = {0x3f80, 0x3f80, 0x3f82, 0x3f81,
                                    0x8000, 0x7f80, 0x7fc0, 0x7f80};
    uint16_t narrow[8];
    float wide[8];
    struct trial t;
    struct fsdp_op *op = &t.op;

    trial_open(&t, FSDP_OP_RELU, 0, 0, 0, 0, 0); /* for its device */
    op->kind = FSDP_OP_CAST;
    op->dim[0] = 8;
    op->in[0] = (struct fsdp_in){x, sizeof(x)};
    op->out[0] = (struct fsdp_out){narrow, sizeof(narrow)};
    op->aux[0] = FSDP_DTYPE_F32;
    op->aux[1] = FSDP_DTYPE_BF16;
    assert_int_equal(t.device.run(NULL, NULL, op), FSDP_OK);
    assert_memory_equal(narrow, want, sizeof(want));

    op->in[0] = (struct fsdp_in){narrow, sizeof(narrow)};
    op->out[0] = (struct fsdp_out){wide, sizeof(wide)};
    op->aux[0] = FSDP_DTYPE_BF16;
    op->aux[1] = FSDP_DTYPE_F32;
    assert_int_equal(t.device.run(NULL, NULL, op), FSDP_OK);
    for (int i = 0; i < 8; i++) {
        assert_true(same_bits(wide[i], fsdp_bf16_to_f32(want[i])));
    }
    assert_true(same_bits(wide[2], 0x1.04p0f));

    op->aux[1] = FSDP_DTYPE_I32;
    assert_int_equal(t.device.run(NULL, NULL, op), FSDP_ERR_UNSUPPORTED);
    trial_close(&t);
}

/* bf16 in hexadecimal: 256 + 1 is 256, the same with a float32 is 257. */
UNIT_TEST(sums_round_to_what_they_are_added_to)
{
    static const uint32_t dtypes[] = {FSDP_DTYPE_F32, FSDP_DTYPE_BF16,
                                      FSDP_DTYPE_F16};
    struct trial t;

    trial_open(&t, FSDP_OP_ADD, 1, 0, 0, 0, 0);
    for (int a = 0; a < 3; a++) {
        for (int b = 0; b < 3; b++) {
            struct fsdp_op op = t.op;
            float x[1];
            float y[1];

            fsdp_store(dtypes[a], x, 0, 256.0f);
            fsdp_store(dtypes[b], y, 0, 1.0f);
            op.aux[0] = dtypes[a];
            op.aux[1] = dtypes[b];
            op.in[0] = (struct fsdp_in){x, fsdp_dtype_bytes(dtypes[a])};
            op.in[1] = (struct fsdp_in){y, fsdp_dtype_bytes(dtypes[b])};
            op.out[0] = (struct fsdp_out){x, fsdp_dtype_bytes(dtypes[a])};
            assert_int_equal(t.device.run(NULL, NULL, &op), FSDP_OK);
            assert_true(fsdp_load(dtypes[a], x, 0) ==
                        (dtypes[a] == FSDP_DTYPE_BF16 ? 256.0f : 257.0f));
            op.out[0] = (struct fsdp_out){y, op.in[0].bytes};
            assert_int_equal(t.device.run(NULL, NULL, &op),
                             a == b ? FSDP_OK : FSDP_ERR_INVALID);
            op.out[0].p = x;
            op.in[1].bytes++;
            assert_int_equal(t.device.run(NULL, NULL, &op), FSDP_ERR_INVALID);
            op.aux[1] = FSDP_DTYPE_I64;
            assert_int_equal(t.device.run(NULL, NULL, &op),
                             FSDP_ERR_UNSUPPORTED);
        }
    }
    trial_close(&t);
}

/* 1.0078125 * 1.5 is 1.51171875: a tie between two values of bf16. */
UNIT_TEST(scale_rounds_once_more)
{
    uint16_t x[2] = {0x3f81, 0x3f83};
    struct trial t;

    trial_open(&t, FSDP_OP_SCALE, 2, 0, 0, 0, 0);
    t.op.f[0] = 1.5f;
    t.op.aux[0] = FSDP_DTYPE_BF16;
    t.op.in[0] = (struct fsdp_in){x, sizeof(x)};
    t.op.out[0] = (struct fsdp_out){x, sizeof(x)};
    assert_int_equal(t.device.run(NULL, NULL, &t.op), FSDP_OK);
    assert_int_equal(x[0], 0x3fc2); /* 1.51171875: to even, upwards */
    assert_int_equal(x[1], 0x3fc4); /* 1.53515625: to even, downwards */
    t.op.aux[0] = FSDP_DTYPE_U8;
    assert_int_equal(t.device.run(NULL, NULL, &t.op), FSDP_ERR_UNSUPPORTED);
    trial_close(&t);
}

UNIT_TEST(copy_2d_leaves_the_gaps)
{
    const char from[] = "abc.def.ghi";
    char to[] = "----------------";
    struct trial t;

    trial_open(&t, FSDP_OP_RELU, 0, 0, 0, 0, 0); /* for its device */
    t.op.kind = FSDP_OP_COPY_2D;
    memcpy(t.op.dim, (uint64_t[]){3, 3, 5, 4}, 4 * sizeof(uint64_t));
    t.op.in[0] = (struct fsdp_in){from, 11};
    t.op.out[0] = (struct fsdp_out){to, 13};

    assert_int_equal(t.device.run(NULL, NULL, &t.op), FSDP_OK);
    assert_string_equal(to, "abc--def--ghi---");

    t.op.dim[2] = 2; /* rows that overlap */
    t.op.out[0].bytes = 7;
    assert_int_equal(t.device.run(NULL, NULL, &t.op), FSDP_ERR_INVALID);
    assert_string_equal(to, "abc--def--ghi---");
    trial_close(&t);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_what_they_say),
        cmocka_unit_test(sixteen_bits_are_filled),
        cmocka_unit_test(relu_keeps_nan),
        cmocka_unit_test(gelu_is_the_tanh_form),
        cmocka_unit_test(rows_are_literal),
        cmocka_unit_test(cross_entropy_works_in_place_and_sees_nan),
        cmocka_unit_test(bf16_casts_both_ways),
        cmocka_unit_test(sums_round_to_what_they_are_added_to),
        cmocka_unit_test(scale_rounds_once_more),
        cmocka_unit_test(copy_2d_leaves_the_gaps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
