/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_arith_test.c - the vectorised exponential and hyperbolic tangent give
 * the bits of <fsdp/arith/>. Compiled once per level. Takes every 509th input;
 * with FSDP_EXHAUSTIVE=1 in the environment, all 2^32.
 */
#include "host_arith.h"
#include "simd.h"

#include <fsdp/arith/exp.h>
#include <fsdp/arith/tanh.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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

/* Loops of their own, which vectorise as those of the operators do. */
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

static void check(void (*chunk)(const float *restrict, float *restrict),
                  float (*right)(float))
{
    static float x[CHUNK];
    static float y[CHUNK];
    const uint64_t step = getenv("FSDP_EXHAUSTIVE") != NULL ? 1 : 509;
    const uint64_t end = (uint64_t)1 << 32;

    for (uint64_t first = 0; first < end; first += CHUNK * step) {
        for (uint64_t i = 0; i < CHUNK; i++) {
            uint32_t bits = (uint32_t)(first + i * step);

            memcpy(&x[i], &bits, sizeof(bits));
        }
        chunk(x, y);
        for (int i = 0; i < CHUNK; i++) {
            if (!same(y[i], right(x[i]))) {
                fail_msg("f(%a) is %a, not %a", (double)x[i], (double)y[i],
                         (double)right(x[i]));
            }
        }
    }
}

static void test_exp(void **state)
{
    (void)state;
    check(exp_chunk, fsdp_expf);
}

static void test_tanh(void **state)
{
    (void)state;
    check(tanh_chunk, fsdp_tanhf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp),
        cmocka_unit_test(test_tanh),
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
