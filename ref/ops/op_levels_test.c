/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_levels_test.c - every level of the operators has the same bits: fma()
 * without the instruction is fmaf(), where rounding twice would show, and each
 * operator answers at each level as at the lowest.
 */
#include "op_table.h"
#include "ops.h"
#include "ops_test.h"

#include <math.h>

/*
 * The product of two that are 1 + 2^-12 is half-way between two floats, so that
 * a third addend decides how it is rounded, however small it is: one that is
 * lost in a double is found by those only that round once.
 */
static float half_way(void)
{
    static const float parts[] = {1.0f, 0x1.001p0f, 0x1.003p0f, 0x1.000002p0f};
    static const int powers[] = {0, 0, 1, -12, -29, -30, -31};
    uint32_t draw = (uint32_t)(int32_t)(trial_random() * 0x1p21f);
    float x = ldexpf(parts[draw % 4], powers[draw / 4 % 7]);

    return (draw / 28 & 1) != 0 ? -x : x;
}

/* Of all sizes, down to those that are not normal and up to infinity. */
static float any_size(void)
{
    return ldexpf(half_way(), (int)(trial_random() * 40.0f));
}

UNIT_TEST(fma_rounds_once)
{
    static const float ends[] = {0.0f,      -0.0f,          0x1p-149f,
                                 0x1p-126f, INFINITY,       -INFINITY,
                                 NAN,       0x1.fffffep127f};
    uint64_t told_apart = 0;

    for (uint32_t i = 0; i < 2000000; i++) {
        float a = i % 2 == 0 ? half_way() : any_size();
        float b = i % 4 < 2 ? half_way() : any_size();
        float c = i % 3 == 0   ? any_size()
                  : i % 3 == 1 ? half_way() * half_way()
                               : -(float)((double)a * (double)b);

        a = i % 97 == 0 ? ends[i / 97 % 8] : a;
        c = i % 89 == 0 ? ends[i / 89 % 8] : c;

        assert_true(same_bits(ref_fma(a, b, c), fmaf(a, b, c)));
        told_apart += !same_bits((float)((double)a * (double)b + (double)c),
                                 fmaf(a, b, c));
    }
    assert_true(told_apart > 10000);
}

#if defined(__x86_64__)
/* Row ids, which are no floats. */
static bool is_ids(uint32_t kind, uint32_t i)
{
    return ((kind == FSDP_OP_EMBEDDING || kind == FSDP_OP_EMBEDDING_GRAD) &&
            i == 0) ||
           (kind == FSDP_OP_CROSS_ENTROPY && i == 1);
}

static bool has_fma(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

/* Runs the operator at both levels and compares. */
static void answers_alike(struct trial *t)
{
    float *plain[FSDP_OP_MAX_OUT] = {NULL};
    uint64_t numbers = 0;
    uint64_t elements = 0;

    assert_int_equal(trial_run(t), FSDP_OK); /* copies in[] */
    for (int level = 0; level < 2; level++) {
        const struct ref_operator *operators =
            level == 0 ? ref_operators_plain : ref_operators_fma;

        for (uint32_t i = 0; i < t->op.n_in; i++) {
            memcpy(t->in[i], t->before[i], t->op.in[i].bytes);
        }
        assert_int_equal(operators[t->op.kind].run(&t->op), FSDP_OK);
        for (uint32_t o = 0; o < t->op.n_out && level == 0; o++) {
            plain[o] = trial_alloc(t, t->op.out[o].bytes / 4);
            memcpy(plain[o], t->out[o], t->op.out[o].bytes);
        }
    }
    for (uint32_t o = 0; o < t->op.n_out; o++) {
        for (uint64_t i = 0; i < t->op.out[o].bytes / 4; i++) {
            assert_true(same_bits(plain[o][i], t->out[o][i]));
            numbers += isfinite(plain[o][i]) && plain[o][i] != 0.0f;
            elements++;
        }
        t->device.free(t->device.self, plain[o]);
    }
    /* Results that are mostly NaN or 0 would show nothing. */
    assert_true(numbers > elements / 4);
}
#endif

UNIT_TEST(levels_have_the_same_bits)
{
#if defined(__x86_64__)
    if (!has_fma()) {
        skip();
    }
    for (uint32_t kind = 0; kind < FSDP_N_OPS; kind++) {
        static const float f[] = {0x1.001p-1f, 0x1.001p-13f, 0.75f, 0.875f,
                                  0x1p-30f,    0.5f,         0.25f};
        struct trial t;

        /* Both levels have an operator, or neither. */
        assert_int_equal(!ref_operators_plain[kind].run,
                         !ref_operators_fma[kind].run);
        if (!ref_operators_plain[kind].run || !trial_shapes[kind]) {
            continue;
        }
        trial_open(&t, kind, 20, 66, 10, 5, 2);
        memcpy(t.op.f, f, sizeof(f));
        for (uint32_t i = 0; i < t.op.n_in; i++) {
            for (uint64_t e = 0; !is_ids(kind, i) && e < t.op.in[i].bytes / 4;
                 e++) {
                t.in[i][e] = fabsf(half_way());
            }
        }
        answers_alike(&t);
        trial_close(&t);
    }
#else
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fma_rounds_once),
        cmocka_unit_test(levels_have_the_same_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
