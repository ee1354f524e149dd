/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_math_test.cu - TEST ONLY: the functions of cuda_math.cuh give the
 * bits of those of <fsdp/arith/>, on the CPU, with the arithmetic that a GPU
 * has too: every 251st float and all close to where they change their ways;
 * with `all`, every float (minutes).
 */
#include "cuda_math.cuh"

#include <stdio.h>
#include <string.h>

enum {
    STRIDE = 251, /* a prime: all patterns of low bits come up */
    NEAR = 1000,  /* floats on both sides */
};

static uint64_t tried;
static uint64_t wrong;

static void check(const char *name, uint32_t bits, float got, float want)
{
    tried++;
    if (fsdp_f32_bits(got) != fsdp_f32_bits(want) && wrong++ < 10) {
        printf("%s of %08x is %a, not %a\n", name, bits, (double)got,
               (double)want);
    }
}

static void check_at(uint32_t bits)
{
    const float x = fsdp_f32_from_bits(bits);

    check("exp", bits, cuda_expf(x), fsdp_expf(x));
    check("tanh", bits, cuda_tanhf(x), fsdp_tanhf(x));
}

/* Quotients of all exponents that can come up, and digits at random. */
static void check_quotients(void)
{
    uint32_t state = 1;

    for (uint32_t i = 0; i < 20000; i++) {
        const uint32_t top = fsdp_f32_bits(1.0f) + (i % 33 << 23);
        const float s = fsdp_f32_from_bits(
            top +
            (i % 7 == 0 ? 0 : (state = state * 1664525 + 1013904223) >> 9));
        const cuda_divisor by(s);

        for (uint32_t e = 0; e < 150; e++) {
            const uint32_t bits = e < 20
                                      ? e
                                      : (state = state * 1664525 + 1013904223) %
                                            (FSDP_F32_ONE + 1);
            const float x = fsdp_f32_from_bits(bits);

            check("quotient", bits, by.quotient(x), x / s);
        }
    }
}

int main(int argc, char **argv)
{
    static const float ends[] = {
        0.0f,      -0.0f,      1.0f,    10.0f,    -10.0f,   0x1p-13f, 89.0f,
        88.72284f, -87.33655f, -104.0f, -103.97f, INFINITY, -INFINITY};
    const bool all = argc > 1 && strcmp(argv[1], "all") == 0;

    for (uint64_t i = 0; i >> 32 == 0; i += all ? 1 : STRIDE) {
        check_at((uint32_t)i);
    }
    for (const float end : ends) {
        for (uint32_t i = 0; i < 2 * NEAR; i++) {
            check_at(fsdp_f32_bits(end) + i - NEAR);
        }
    }
    check_quotients();
    printf("%llu results, %llu wrong\n", (unsigned long long)tried,
           (unsigned long long)wrong);
    return wrong != 0 || tried < 1000000;
}
