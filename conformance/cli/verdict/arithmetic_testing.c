/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arithmetic_testing.c - the reference engine in an arithmetic of another kind,
 * as a plug-in: what bounds are for. FSDP_ARITHMETIC names the arithmetic. Some
 * are as good as the suite's own and only sum in another order or width; some
 * are often mistaken for float32. Test only (bounds_test.sh).
 */
#include "ref/engine/ref.h"

#include <fsdp/arith/bits.h>
#include <fsdp/op.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct fsdp_engine *fsdp_engine_v1(void);

/* A sum of n products; b NULL: of n numbers. Steps are in floats. */
struct sum {
    uint64_t n;
    const float *a, *b;
    uint64_t a_step, b_step;
};

static float left(const struct sum *s, uint64_t i)
{
    return s->a[i * s->a_step];
}

static float right(const struct sum *s, uint64_t i)
{
    return s->b ? s->b[i * s->b_step] : 1.0f;
}

/* Rounds to so many of the 23 bits behind the leading one, to nearest even. */
static float keep(float x, uint32_t bits)
{
    const uint32_t drop = 23 - bits;
    uint32_t u = fsdp_f32_bits(x);
    float y;

    if (!isfinite(x)) {
        return x;
    }
    u += (1u << (drop - 1)) - 1 + (u >> drop & 1u);
    u &= ~((1u << drop) - 1);
    memcpy(&y, &u, sizeof(y));
    return y;
}

static float in_double(const struct sum *s)
{
    double acc = 0.0;

    for (uint64_t i = 0; i < s->n; i++) {
        acc += (double)left(s, i) * (double)right(s, i);
    }
    return (float)acc;
}

static float reversed(const struct sum *s)
{
    float acc = 0.0f;

    for (uint64_t i = s->n; i-- > 0;) {
        acc = fmaf(left(s, i), right(s, i), acc);
    }
    return acc;
}

static float unfused(const struct sum *s)
{
    float acc = 0.0f;

    for (uint64_t i = 0; i < s->n; i++) {
        const float product = left(s, i) * right(s, i);

        acc = acc + product;
    }
    return acc;
}

static float pairs(const struct sum *s, uint64_t first, uint64_t n)
{
    if (n < 2) {
        return n == 0 ? 0.0f : left(s, first) * right(s, first);
    }
    return pairs(s, first, n / 2) + pairs(s, first + n / 2, n - n / 2);
}

static float pairwise(const struct sum *s)
{
    return pairs(s, 0, s->n);
}

/* Sums as a vector unit of 16 floats does. */
static float in_lanes(const struct sum *s)
{
    float lane[16] = {0.0f};
    float acc = 0.0f;

    for (uint64_t i = 0; i < s->n; i++) {
        lane[i % 16] = fmaf(left(s, i), right(s, i), lane[i % 16]);
    }
    for (int i = 0; i < 16; i++) {
        acc = acc + lane[i];
    }
    return acc;
}

/* Multiplies factors of so many bits and sums in float32, as a tensor core
 * does. */
static float narrow(const struct sum *s, uint32_t bits)
{
    float acc = 0.0f;

    for (uint64_t i = 0; i < s->n; i++) {
        acc = fmaf(keep(left(s, i), bits), keep(right(s, i), bits), acc);
    }
    return acc;
}

static float tf32(const struct sum *s)
{
    return narrow(s, 10);
}

static float bf16(const struct sum *s)
{
    return narrow(s, 7);
}

static float bf16_sum(const struct sum *s)
{
    return keep(in_double(s), 7); /* as gradients that are kept in bf16 */
}

static const struct {
    const char *name;
    float (*sum)(const struct sum *s);
} kinds[] = {
    {"double", in_double},  {"reversed", reversed}, {"unfused", unfused},
    {"pairwise", pairwise}, {"lanes", in_lanes},    {"tf32", tf32},
    {"bf16", bf16},         {"bf16-sum", bf16_sum},
};

static float (*sum_of)(const struct sum *s);

static float add_up(const float *a, uint64_t a_step, const float *b,
                    uint64_t b_step, uint64_t n)
{
    const struct sum s = {n, a, b, a_step, b_step};

    return sum_of(&s);
}

static void gemm(const struct fsdp_op *op)
{
    const uint64_t n = op->dim[1];
    const uint64_t k = op->dim[2];
    const bool turned = (op->flags & FSDP_OP_TRANSPOSE_B) != 0;
    const float *a = op->in[0].p;
    const float *b = op->in[1].p;
    float *c = op->out[0].p;

    for (uint64_t i = 0; i < op->dim[0]; i++) {
        for (uint64_t j = 0; j < n; j++) {
            c[i * n + j] = add_up(a + i * k, 1, turned ? b + j * k : b + j,
                                  turned ? 1 : n, k);
        }
    }
}

static void gemm_grad(const struct fsdp_op *op)
{
    const uint64_t m = op->dim[0];
    const uint64_t n = op->dim[1];
    const float *x = op->in[0].p;
    const float *g = op->in[1].p;
    float *w = op->out[0].p;

    for (uint64_t i = 0; i < m; i++) {
        for (uint64_t j = 0; j < n; j++) {
            w[i * n + j] = add_up(x + i, m, g + j, n, op->dim[2]);
        }
    }
}

static void column_sum(const struct fsdp_op *op)
{
    const uint64_t n = op->dim[1];
    const float *x = op->in[0].p;
    float *s = op->out[0].p;

    for (uint64_t j = 0; j < n; j++) {
        s[j] = add_up(x + j, n, NULL, 0, op->dim[0]);
    }
}

static void mse(const struct fsdp_op *op)
{
    const uint64_t n = op->dim[1];
    const float *y = op->in[0].p;
    const float *target = op->in[1].p;
    float *row_loss = op->out[0].p;
    float *dy = op->out[1].p;

    for (uint64_t i = 0; i < op->dim[0] * n; i++) {
        dy[i] = y[i] - target[i];
    }
    for (uint64_t r = 0; r < op->dim[0]; r++) {
        row_loss[r] = add_up(dy + r * n, 1, dy + r * n, 1, n);
    }
    for (uint64_t i = 0; i < op->dim[0] * n; i++) {
        dy[i] = op->f[0] * dy[i];
    }
}

/* Layer normalisation, rounded once at its end: as exact as it can be. */
static void norm(const struct fsdp_op *op)
{
    const uint64_t n = op->dim[1];
    const float *gamma = op->in[1].p;
    const float *beta = op->in[2].p;
    float *stat = op->out[1].p;

    for (uint64_t row = 0; row < op->dim[0]; row++) {
        const float *x = (const float *)op->in[0].p + row * n;
        float *y = (float *)op->out[0].p + row * n;
        double mean = 0.0;
        double variance = 0.0;
        double r;

        for (uint64_t c = 0; c < n; c++) {
            mean += (double)x[c] / (double)n;
        }
        for (uint64_t c = 0; c < n; c++) {
            variance +=
                ((double)x[c] - mean) * ((double)x[c] - mean) / (double)n;
        }
        r = 1.0 / sqrt(variance + (double)op->f[0]);
        for (uint64_t c = 0; c < n; c++) {
            y[c] = (float)(((double)x[c] - mean) * r * (double)gamma[c] +
                           (double)beta[c]);
        }
        stat[row * 2] = (float)mean;
        stat[row * 2 + 1] = (float)r;
    }
}

/* SGD with two roundings where the suite's has one. */
static void sgd(const struct fsdp_op *op)
{
    const float *g = op->in[1].p;
    float *w = op->out[0].p;

    for (uint64_t i = 0; i < op->dim[0]; i++) {
        const float decay = op->f[1] * w[i];
        const float d = g[i] + decay;
        const float step = op->f[0] * d;

        w[i] = w[i] - step;
    }
}

/* Runs the operators of this arithmetic; the rest is the reference's. */
static int run(void *self, struct fsdp_stream *stream, const struct fsdp_op *op)
{
    static void (*const own[FSDP_N_OPS])(const struct fsdp_op *op) = {
        [FSDP_OP_GEMM] = gemm,
        [FSDP_OP_GEMM_GRAD] = gemm_grad,
        [FSDP_OP_COLUMN_SUM] = column_sum,
        [FSDP_OP_MSE] = mse,
        [FSDP_OP_NORM] = norm,
        [FSDP_OP_SGD] = sgd};
    const struct fsdp_device *real = self;

    if (op->kind >= FSDP_N_OPS || !own[op->kind]) {
        return real->run(real->self, stream, op);
    }
    own[op->kind](op);
    return FSDP_OK;
}

static _Thread_local const struct fsdp_device *reference;
static _Thread_local struct fsdp_device mine;

static int open_own(struct fsdp_env *env)
{
    const char *name = getenv("FSDP_ARITHMETIC");
    const size_t n = sizeof(kinds) / sizeof(kinds[0]);
    size_t i = 0;

    FSDP_TRY(ref_open(env));
    while (name && i < n && strcmp(kinds[i].name, name) != 0) {
        i++;
    }
    if (!name || i == n) {
        return FSDP_ERR_INVALID;
    }
    sum_of = kinds[i].sum;
    reference = env->device;
    mine = *reference;
    mine.profile = "own";
    mine.run = run;
    mine.self = (void *)reference;
    env->device = &mine;
    return FSDP_OK;
}

static void close_own(struct fsdp_env *env)
{
    if (env->device == &mine) {
        env->device = reference;
    }
    ref_close(env);
}

const struct fsdp_engine *fsdp_engine_v1(void)
{
    static struct fsdp_engine engine;

    engine = *fsdp_ref_engine();
    engine.name = "arithmetic";
    engine.open = open_own;
    engine.close = close_own;
    return &engine;
}
