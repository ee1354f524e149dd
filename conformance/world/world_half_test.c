/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_half_test.c - compares the loops over 16 bits with <fsdp/arith/>,
 * element by element: those of any processor and those for AVX2, NaNs included.
 * Casts take every 509th float32; with FSDP_EXHAUSTIVE=1 in the environment,
 * all 2^32.
 */
#include "world_half.h"

#include <fsdp/arith/cast.h>
#include <stdlib.h>
#include <string.h>

#include "testing/unit_testing.h"

enum {
    ALL = 65536,
    CHUNK = 4099 /* with a tail */
};

static const uint32_t dtypes[] = {FSDP_DTYPE_BF16, FSDP_DTYPE_F16};

/* Loops k of four, and their dtype; NULL: not here. */
static const struct world_half *loops(int k, uint32_t *dtype)
{
    *dtype = dtypes[k % 2];
    if (k < 2) {
        return &world_half_plain[k];
    }
    return world_half_of(*dtype) == &world_half_avx2[k % 2]
               ? &world_half_avx2[k % 2]
               : NULL;
}

/* Arrays are as long as float32 would need: fsdp_store() may be of those. */
UNIT_TEST(every_value_widens)
{
    static uint16_t x[2 * ALL];
    static float got[ALL];

    for (uint32_t i = 0; i < ALL; i++) {
        x[i] = (uint16_t)i;
    }
    for (int k = 0; k < 4; k++) {
        uint32_t dtype;
        const struct world_half *h = loops(k, &dtype);

        if (!h) {
            continue;
        }
        h->widen(x, ALL - 3, got);
        for (uint32_t i = 0; i < ALL - 3; i++) {
            float want = fsdp_load(dtype, x, i);
            assert_memory_equal(&got[i], &want, sizeof(want));
        }
    }
}

static void check_casts(const struct world_half *h, uint32_t dtype,
                        uint64_t first, uint64_t step)
{
    static float x[CHUNK];
    static uint16_t got[CHUNK + 1];
    static uint16_t want[2 * CHUNK];

    for (uint64_t i = 0; i < CHUNK; i++) {
        uint32_t bits = (uint32_t)(first + i * step);

        memcpy(&x[i], &bits, sizeof(bits));
        fsdp_store(dtype, want, i, x[i]);
    }
    got[CHUNK] = 0xa5a5;
    h->narrow(x, CHUNK, got);
    assert_memory_equal(got, want, CHUNK * sizeof(*want));
    assert_int_equal(got[CHUNK], 0xa5a5);
    h->round(x, CHUNK);
    for (uint64_t i = 0; i < CHUNK; i++) {
        float wide = fsdp_load(dtype, want, i);

        assert_memory_equal(&x[i], &wide, sizeof(wide));
    }
}

UNIT_TEST(float32_narrows)
{
    const uint64_t step = getenv("FSDP_EXHAUSTIVE") ? 1 : 509;

    for (int k = 0; k < 4; k++) {
        uint32_t dtype;
        const struct world_half *h = loops(k, &dtype);

        for (uint64_t first = 0; h && first >> 32 == 0; first += CHUNK * step) {
            check_casts(h, dtype, first, step);
        }
    }
}

/* Adds to each value some others, those next to it and its negative among them;
 * if one is NaN the sum is any NaN. */
static void check_sums(const struct world_half *h, uint32_t dtype,
                       uint16_t distance, bool in_place)
{
    static uint16_t a[2 * ALL];
    static uint16_t b[2 * ALL];
    static uint16_t got[2 * ALL];
    uint16_t *y = in_place ? b : got;

    for (uint32_t i = 0; i < ALL; i++) {
        a[i] = (uint16_t)i;
        b[i] = (uint16_t)(i + distance);
    }
    h->add(a, b, ALL - 1, y);
    for (uint32_t i = 0; i < ALL - 1; i++) {
        uint16_t other[2] = {(uint16_t)(i + distance), 0};
        float sum = fsdp_load(dtype, a, i) + fsdp_load(dtype, other, 0);
        uint16_t want[2];

        fsdp_store(dtype, want, 0, sum);
        assert_true(
            y[i] == want[0] ||
            (sum != sum && fsdp_load(dtype, y, i) != fsdp_load(dtype, y, i)));
    }
}

UNIT_TEST(sums_round_once)
{
    static const uint16_t distances[] = {0,      1,      0x8000, 0x8001,
                                         0x0400, 0x1234, 0x0081};

    for (int k = 0; k < 4; k++) {
        uint32_t dtype;
        const struct world_half *h = loops(k, &dtype);

        for (size_t i = 0; h && i < sizeof(distances) / sizeof(*distances);
             i++) {
            check_sums(h, dtype, distances[i], i % 2 == 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_widens),
        cmocka_unit_test(float32_narrows),
        cmocka_unit_test(sums_round_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
