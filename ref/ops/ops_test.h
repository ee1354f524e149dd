/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_test.h - what the tests of the operators share: a trial, one operator
 * with ranges of its own, filled at random, and comparisons of floats.
 */
#ifndef FSDP_CTS_OPS_TEST_H
#define FSDP_CTS_OPS_TEST_H

#include "plain_device.h"

#include <fsdp/op.h>
#include <stdlib.h>
#include <string.h>

#include "testing/unit_testing.h"

/*
 * The shapes of op.h once more. A range is a product of dimensions, a for
 * dim[0] and so on, and digits; # makes it row ids; =2 is in[2], in place.
 */
static const char *const trial_shapes[FSDP_N_OPS] = {
    [FSDP_OP_FILL] = ">a",
    [FSDP_OP_SCALE] = "a>=0",
    [FSDP_OP_ADD] = "a,a>a",
    [FSDP_OP_GEMM] = "ac,cb>ab",
    [FSDP_OP_GEMM_GRAD] = "ca,cb>ab",
    [FSDP_OP_BIAS] = "ab,b>ab",
    [FSDP_OP_COLUMN_SUM] = "ab>b",
    [FSDP_OP_RELU] = "a>a",
    [FSDP_OP_RELU_BACKWARD] = "a,a>a",
    [FSDP_OP_GELU] = "a>a",
    [FSDP_OP_GELU_BACKWARD] = "a,a>a",
    [FSDP_OP_NORM] = "ab,b,b>ab,2a",
    [FSDP_OP_NORM_BACKWARD] = "ab,b,2a,ab>ab",
    [FSDP_OP_NORM_GRAD] = "ab,2a,ab>b,b",
    [FSDP_OP_EMBEDDING] = "#a,db,cb>ab",
    [FSDP_OP_EMBEDDING_GRAD] = "#a,ab>db,cb",
    [FSDP_OP_ATTENTION] = "ab3cd>abcd,2abc",
    [FSDP_OP_ATTENTION_BACKWARD] = "ab3cd,abcd,2abc,abcd>ab3cd",
    [FSDP_OP_MSE] = "ab,ab>a,ab",
    [FSDP_OP_LINEAR_LOSS] = "ab,ab>a,ab",
    [FSDP_OP_CROSS_ENTROPY] = "ab,#a>a,ab",
    [FSDP_OP_SGD] = "a,a>=0",
    [FSDP_OP_MOMENTUM] = "a,a,a>=0,=2",
    [FSDP_OP_ADAMW] = "a,a,a,a>=0,=2,=3",
};

struct trial {
    struct fsdp_device device;
    struct fsdp_op op;
    float *in[FSDP_OP_MAX_IN];     /* op.in[], to be changed by the test */
    float *before[FSDP_OP_MAX_IN]; /* copies, made by trial_run */
    float *out[FSDP_OP_MAX_OUT];
};

/* Uniform in [-4, 4), in steps of 2^-21: sums of them depend on their order. */
static inline float trial_random(void)
{
    static uint64_t state = 0x9e3779b97f4a7c15u;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (float)((int64_t)(state >> 40) - (1 << 23)) * 0x1p-21f;
}

static inline float *trial_alloc(struct trial *t, uint64_t n)
{
    void *p = NULL;

    assert_int_equal(t->device.alloc(t->device.self, n * 4, &p), FSDP_OK);
    return p;
}

static inline uint64_t trial_numel(const struct trial *t, const char *shape)
{
    uint64_t n = 1;

    for (; *shape != '\0' && *shape != ',' && *shape != '>'; shape++) {
        if (*shape >= 'a') {
            n *= t->op.dim[*shape - 'a'];
        } else if (*shape >= '0' && *shape <= '9') {
            n *= (uint64_t)(*shape - '0');
        }
    }
    return n;
}

/* Row r has id 5 r + r / 3, in the range of the table or of the classes. */
static inline void trial_fill_ids(struct trial *t, int32_t *id, uint64_t n)
{
    uint64_t range =
        t->op.kind == FSDP_OP_CROSS_ENTROPY ? t->op.dim[1] : t->op.dim[3];

    for (uint64_t r = 0; r < n; r++) {
        id[r] = range == 0 ? 0 : (int32_t)((5 * r + r / 3) % range);
    }
}

static inline void trial_add_in(struct trial *t, const char *shape)
{
    uint64_t n = trial_numel(t, shape);
    float *p = trial_alloc(t, n);

    for (uint64_t i = 0; i < n; i++) {
        p[i] = trial_random();
    }
    if (*shape == '#') {
        trial_fill_ids(t, (int32_t *)p, n);
    }
    t->in[t->op.n_in] = p;
    t->op.in[t->op.n_in] = (struct fsdp_in){p, n * 4};
    t->op.n_in++;
}

static inline void trial_add_out(struct trial *t, const char *shape)
{
    uint64_t n = trial_numel(t, shape);
    float *p;

    if (*shape == '=') {
        p = t->in[shape[1] - '0'];
        n = t->op.in[shape[1] - '0'].bytes / 4;
    } else {
        p = trial_alloc(t, n);
        memset(p, 0xff, n * 4);
    }
    t->out[t->op.n_out] = p;
    t->op.out[t->op.n_out] = (struct fsdp_out){p, n * 4};
    t->op.n_out++;
}

static inline void trial_open(struct trial *t, uint32_t kind, uint64_t a,
                              uint64_t b, uint64_t c, uint64_t d, uint64_t e)
{
    const char *shape = trial_shapes[kind];
    bool out = *shape == '>';

    *t = (struct trial){
        .op = {.size = sizeof(t->op), .kind = kind, .unit = FSDP_NO_UNIT}};
    memcpy(t->op.dim, (uint64_t[]){a, b, c, d, e}, 5 * sizeof(uint64_t));
    assert_int_equal(ref_device_open(&t->device), FSDP_OK);
    shape += out;
    while (*shape != '\0') {
        if (out) {
            trial_add_out(t, shape);
        } else {
            trial_add_in(t, shape);
        }
        shape += strcspn(shape, ",>");
        out = out || *shape == '>';
        shape += *shape != '\0';
    }
}

static inline int trial_run(struct trial *t)
{
    for (uint32_t i = 0; i < t->op.n_in; i++) {
        if (!t->before[i]) {
            t->before[i] = trial_alloc(t, t->op.in[i].bytes / 4);
        }
        memcpy(t->before[i], t->in[i], t->op.in[i].bytes);
    }
    return t->device.run(t->device.self, NULL, &t->op);
}

static inline void trial_close(struct trial *t)
{
    for (uint32_t o = 0; o < FSDP_OP_MAX_OUT; o++) {
        bool in_place = false;

        for (uint32_t i = 0; i < FSDP_OP_MAX_IN; i++) {
            in_place = in_place || t->out[o] == t->in[i];
        }
        if (!in_place) {
            t->device.free(t->device.self, t->out[o]);
        }
    }
    for (uint32_t i = 0; i < FSDP_OP_MAX_IN; i++) {
        t->device.free(t->device.self, t->in[i]);
        t->device.free(t->device.self, t->before[i]);
    }
    ref_device_close(&t->device);
}

/* The same bits, or both NaN. */
static inline bool same_bits(float a, float b)
{
    uint32_t a_bits;
    uint32_t b_bits;

    memcpy(&a_bits, &a, sizeof(a_bits));
    memcpy(&b_bits, &b, sizeof(b_bits));
    return a_bits == b_bits || (a != a && b != b);
}

#endif
