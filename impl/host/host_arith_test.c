/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_arith_test.c - the vectorised exponential, hyperbolic tangent and casts
 * give the bits of <fsdp/arith/>. Compiled once per level. Takes every 509th
 * input; with FSDP_EXHAUSTIVE=1 in the environment, all 2^32.
 */
#include "half.h"
#include "host_arith.h"
#include "simd.h"

#include <fsdp/arith/cast.h>
#include <fsdp/arith/exp.h>
#include <fsdp/arith/tanh.h>
#include <stdlib.h>
#include <string.h>

#include "testing/unit_testing.h"

enum {
    CHUNK = 4096
};

static bool same(float a, float b)
{
    uint32_t a_bits;
    uint32_t b_bits;

    memcpy(&a_bits, &a, sizeof(a_bits));
    memcpy(&b_bits, &b, sizeof(b_bits));
    return a_bits == b_bits || (a != a && b != b);
}

/* Loops of their own, so that they vectorise as the operators' loops do. */
static void exp_chunk(const float *restrict x, float *restrict y)
{
    for (int i = 0; i < CHUNK; i++) {
        y[i] = host_expf(x[i]);
    }
}

static void tanh_chunk(const float *restrict x, float *restrict y)
{
    for (int i = 0; i < CHUNK; i++) {
        y[i] = host_tanhf(x[i]);
    }
}

/* Inputs first, first + step and so on, as bits. */
static void inputs(uint64_t first, uint64_t step, float *x)
{
    for (uint64_t i = 0; i < CHUNK; i++) {
        uint32_t bits = (uint32_t)(first + i * step);

        memcpy(&x[i], &bits, sizeof(bits));
    }
}

static uint64_t step_of_inputs(void)
{
    return getenv("FSDP_EXHAUSTIVE") ? 1 : 509;
}

static void check(void (*chunk)(const float *restrict, float *restrict),
                  float (*right)(float))
{
    static float x[CHUNK];
    static float y[CHUNK];
    const uint64_t step = step_of_inputs();
    const uint64_t end = (uint64_t)1 << 32;

    for (uint64_t first = 0; first < end; first += CHUNK * step) {
        inputs(first, step, x);
        chunk(x, y);
        for (int i = 0; i < CHUNK; i++) {
            if (!same(y[i], right(x[i]))) {
                fail_msg("f(%a) is %a, not %a", (double)x[i], (double)y[i],
                         (double)right(x[i]));
            }
        }
    }
}

UNIT_TEST(test_exp)
{
    check(exp_chunk, fsdp_expf);
}

UNIT_TEST(test_tanh)
{
    check(tanh_chunk, fsdp_tanhf);
}

static const uint32_t halves[] = {FSDP_DTYPE_BF16, FSDP_DTYPE_F16};

/* Bits, so that NaN counts. Arrays are as long as float32 would need, which
 * the compiler does not know that it does not. */
UNIT_TEST(test_narrow)
{
    static float x[CHUNK];
    static uint16_t got[2 * CHUNK];
    static uint16_t want[2 * CHUNK];
    const uint64_t step = step_of_inputs();
    const uint64_t end = (uint64_t)1 << 32;

    for (int h = 0; h < 2; h++) {
        for (uint64_t first = 0; first < end; first += CHUNK * step) {
            inputs(first, step, x);
            half_narrow(halves[h], x, got, CHUNK);
            for (uint64_t i = 0; i < CHUNK; i++) {
                fsdp_store(halves[h], want, i, x[i]);
            }
            assert_memory_equal(got, want, sizeof(want));
        }
    }
}

UNIT_TEST(test_widen)
{
    static uint16_t x[2 * 65536];
    static float got[65536];
    static float want[65536];

    for (uint32_t i = 0; i < 65536; i++) {
        x[i] = (uint16_t)i;
    }
    for (int h = 0; h < 2; h++) {
        half_widen(halves[h], x, got, 65536);
        for (uint64_t i = 0; i < 65536; i++) {
            want[i] = fsdp_load(halves[h], x, i);
        }
        assert_memory_equal(got, want, sizeof(want));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp),
        cmocka_unit_test(test_tanh),
        cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_widen),
    };
    enum simd_level level;
    char message[128];

#define STRING_(x) #x
#define STRING(x)  STRING_(x)
    if (simd_choose(STRING(HOST_LEVEL), &level, message, sizeof(message)) !=
        0) {
        print_message("%s\n", message);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
