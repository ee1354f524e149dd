/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scaler_test.c - scales step by step, worked out by hand, and what no scaler
 * is.
 */
#include "scaler.h"

#include <math.h>

#include "testing/unit_testing.h"

enum {
    STEPS = 12
};

/* A step a letter, . without and x with an overflow; the scale after each. */
struct row {
    struct fsdp_scaler start;
    const char *steps;
    float scale[STEPS];
};

#define START(scale, growth, backoff, least, most, interval, hysteresis) \
    {                                                                    \
        (scale), (growth), (backoff), (least), (most), (interval),       \
            (hysteresis), 0, 0                                           \
    }

static const struct row rows[] = {
    /* It grows after three in a row; an overflow starts the count anew. */
    {START(8, 2, 0.5f, 1, 1024, 3, 1),
     "...x..x....",
     {8, 8, 16, 8, 8, 8, 4, 4, 4, 8, 8}},
    /* Every overflow, one behind the other, down to the least. */
    {START(8, 2, 0.5f, 1, 1024, 3, 1), "xxxxx", {4, 2, 1, 1, 1}},
    /* An interval of one: up after every step, as far as the most. */
    {START(8, 2, 0.5f, 1, 50, 1, 1), "....x.", {16, 32, 50, 50, 25, 50}},
    /* Two overflows are let pass, in a row or not; from then on none is, */
    {START(8, 2, 0.5f, 1, 1024, 3, 3), "x.xxx", {8, 8, 8, 4, 2}},
    /* until it has grown. */
    {START(8, 2, 0.5f, 1, 1024, 2, 2), "xx..xx", {8, 4, 4, 8, 8, 4}},
    /* Factors of 1: it stays. */
    {START(8, 1, 1, 1, 1024, 1, 1), ".x.x", {8, 8, 8, 8}},
    /* Numbers that no float holds. */
    {START(0x1p127f, 4, 0.25f, 1, 0x1p127f, 1, 1), ".x", {0x1p127f, 0x1p125f}},
    {START(0x1p-126f, 2, 0x1p-126f, 0x1p-140f, 1, 9, 1),
     "xx",
     {0x1p-140f, 0x1p-140f}},
};

UNIT_TEST(scales_follow_the_policy)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fsdp_scaler s = rows[i].start;

        assert_null(fsdp_scaler_wrong(&s));
        for (size_t k = 0; rows[i].steps[k] != '\0'; k++) {
            s = fsdp_scaler_after(s, rows[i].steps[k] == 'x');
            if (!(s.scale == rows[i].scale[k])) {
                fail_msg("row %zu, step %zu: %g, not %g", i, k, (double)s.scale,
                         (double)rows[i].scale[k]);
            }
            assert_null(fsdp_scaler_wrong(&s));
        }
    }
}

UNIT_TEST(what_is_out_of_range_is_named)
{
    static const struct {
        struct fsdp_scaler s;
        const char *wrong;
    } bad[] = {
        {START(0, 2, 0.5f, 1, 9, 3, 1), "scale"},
        {START(10, 2, 0.5f, 1, 9, 3, 1), "scale"},
        {START(NAN, 2, 0.5f, 1, 9, 3, 1), "scale"},
        {START(8, 0.5f, 0.5f, 1, 9, 3, 1), "growth"},
        {START(8, INFINITY, 0.5f, 1, 9, 3, 1), "growth"},
        {START(8, NAN, 0.5f, 1, 9, 3, 1), "growth"},
        {START(8, 2, 0, 1, 9, 3, 1), "backoff"},
        {START(8, 2, 1.5f, 1, 9, 3, 1), "backoff"},
        {START(8, 2, NAN, 1, 9, 3, 1), "backoff"},
        {START(8, 2, 0.5f, 0, 9, 3, 1), "least"},
        {START(8, 2, 0.5f, -1, 9, 3, 1), "least"},
        {START(INFINITY, 2, 0.5f, INFINITY, INFINITY, 3, 1), "least"},
        {START(8, 2, 0.5f, 9, 8, 3, 1), "most"},
        {START(8, 2, 0.5f, 1, INFINITY, 3, 1), "most"},
        {START(8, 2, 0.5f, 1, 9, 0, 1), "interval"},
        {START(8, 2, 0.5f, 1, 9, 3, 0), "hysteresis"},
        {{8, 2, 0.5f, 1, 9, 3, 1, 3, 0}, "good"},
        {{8, 2, 0.5f, 1, 9, 3, 1, 0, 1}, "ignored"},
    };
    struct fsdp_scaler right = fsdp_scaler_default();

    assert_null(fsdp_scaler_wrong(&right));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const char *wrong = fsdp_scaler_wrong(&bad[i].s);

        assert_non_null(wrong);
        assert_string_equal(wrong, bad[i].wrong);
    }
}

/* Scaling by powers of two and back is exact, as far as a float reaches. */
UNIT_TEST(its_inverse_undoes_it)
{
    struct fsdp_scaler s = fsdp_scaler_default();

    assert_true(s.scale == 0x1p16f);
    for (s.scale = 1.0f; s.scale <= 0x1p126f; s.scale *= 2.0f) {
        assert_true(s.scale * fsdp_scaler_inverse(&s) == 1.0f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scales_follow_the_policy),
        cmocka_unit_test(what_is_out_of_range_is_named),
        cmocka_unit_test(its_inverse_undoes_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
