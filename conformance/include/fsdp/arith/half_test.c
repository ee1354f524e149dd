/* SPDX-License-Identifier: Apache-2.0 */
/*
 * half_test.c - the formats of 16 bits: every value of each, every tie between
 * two, edges, a sample of casts and of sums against MPFR.
 * `arith_exhaustive to-bf16` and `to-f16` take all 2^32 casts.
 */
#include <stdbool.h>

#include "arith_mpfr.h"
#include "testing/unit_testing.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* Primes, so that samples meet all low bits. */
#define CAST_STRIDE 2053u
#define SUM_STRIDE  6151u

struct half {
    enum arith_format format;
    const struct arith_function *cast;
    uint16_t (*from)(float x);
    float (*to)(uint16_t x);
    uint32_t infinity;
    uint32_t quiet; /* the bit that a signalling NaN lacks */
};

static const struct half halves[] = {
    {ARITH_BF16, &arith_functions[ARITH_TO_BF16], fsdp_bf16_from_f32,
     fsdp_bf16_to_f32, 0x7f80, 0x0040},
    {ARITH_F16, &arith_functions[ARITH_TO_F16], fsdp_f16_from_f32,
     fsdp_f16_to_f32, FSDP_F16_INFINITY, FSDP_F16_QUIET},
};

struct known {
    uint32_t x;
    uint16_t y;
};

static void assert_known(const struct half *half, const struct known *known,
                         size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(half->from(fsdp_f32_from_bits(known[i].x)),
                         known[i].y);
    }
}

UNIT_TEST(test_bf16_edges)
{
    static const struct known known[] = {
        {0x00000000, 0x0000}, {0x80000000, 0x8000}, {0x3f800000, 0x3f80},
        {0x3f808000, 0x3f80}, /* a tie, to even below */
        {0x3f808001, 0x3f81}, /* above the tie */
        {0x3f818000, 0x3f82}, /* a tie, to even above */
        {0x3f817fff, 0x3f81}, /* below the tie */
        {0x3fffffff, 0x4000}, /* carries into the exponent */
        {0x7f7f7fff, 0x7f7f}, /* the largest that stays finite */
        {0x7f7f8000, 0x7f80}, /* overflow */
        {0xff7f8000, 0xff80}, {0x7f800000, 0x7f80}, {0xff800000, 0xff80},
        {0x00000001, 0x0000}, {0x00008000, 0x0000}, {0x00008001, 0x0001},
        {0x80018000, 0x8002}, {0x007fffff, 0x0080}, {0x7f800001, 0x7fc0},
        {0xff800001, 0xffc0}, {0x7fffffff, 0x7fff}, {0xffffffff, 0xffff},
    };

    assert_known(&halves[0], known, LENGTH(known));
}

UNIT_TEST(test_f16_edges)
{
    static const struct known known[] = {
        {0x00000000, 0x0000}, {0x80000000, 0x8000}, {0x3f800000, 0x3c00},
        {0x3f801000, 0x3c00}, /* a tie, to even below */
        {0x3f801001, 0x3c01}, /* above the tie */
        {0x3f803000, 0x3c02}, /* a tie, to even above */
        {0x3f802fff, 0x3c01}, /* below the tie */
        {0x3fffffff, 0x4000}, /* carries into the exponent */
        {0x477fefff, 0x7bff}, /* the largest that stays finite */
        {0x477ff000, 0x7c00}, /* 65520: overflow */
        {0xc77ff000, 0xfc00}, {0x7f7fffff, 0x7c00}, {0x47800000, 0x7c00},
        {0x7f800000, 0x7c00}, {0xff800000, 0xfc00}, {0x38800000, 0x0400},
        {0x387fffff, 0x0400}, /* below the least normal: rounds to it */
        {0x387fdfff, 0x03ff}, {0x33800000, 0x0001}, /* 2^-24 */
        {0x33000000, 0x0000},                       /* 2^-25: a tie, to zero */
        {0x33000001, 0x0001}, {0xb3c00000, 0x8002}, /* a tie, to even above */
        {0x00000001, 0x0000}, {0x807fffff, 0x8000}, {0x7f800001, 0x7e00},
        {0xff800001, 0xfe00}, {0x7fffffff, 0x7fff}, {0xffffffff, 0xffff},
    };

    assert_known(&halves[1], known, LENGTH(known));
}

/* There and back is the identity, but that a signalling NaN becomes quiet. */
UNIT_TEST(test_every_value_comes_back)
{
    for (size_t h = 0; h < LENGTH(halves); h++) {
        const struct half *half = &halves[h];

        for (uint32_t i = 0; i <= 0xffff; i++) {
            bool nan = (i & 0x7fff) > half->infinity;

            assert_int_equal(half->from(half->to((uint16_t)i)),
                             nan ? i | half->quiet : i);
        }
    }
}

/* What the bits mean, from the definition: a significand times a power of
 * two, in double, where all of it is exact. */
UNIT_TEST(test_every_value_is_what_its_bits_say)
{
    static const struct {
        int significand_bits;
        int least; /* the least subnormal is 2^least */
    } shape[] = {{7, -133}, {10, -24}};

    for (size_t h = 0; h < LENGTH(halves); h++) {
        uint32_t hidden = (uint32_t)1 << shape[h].significand_bits;

        for (uint32_t i = 0; i < halves[h].infinity; i++) {
            uint32_t exponent = i >> shape[h].significand_bits;
            uint32_t low = i & (hidden - 1);
            double value =
                exponent == 0
                    ? (double)low * fsdp_f64_power_of_two(shape[h].least)
                    : (double)(low | hidden) *
                          fsdp_f64_power_of_two(shape[h].least + (int)exponent -
                                                1);
            uint32_t bits = fsdp_f32_bits((float)value);

            assert_int_equal(fsdp_f32_bits(halves[h].to((uint16_t)i)), bits);
            assert_int_equal(
                fsdp_f32_bits(halves[h].to((uint16_t)(i | 0x8000))),
                bits | FSDP_F32_SIGN);
        }
    }
}

/* Between two neighbours lies one tie, which goes to the even one; what is
 * next to the tie goes to the nearer. */
UNIT_TEST(test_every_tie_goes_to_even)
{
    for (size_t h = 0; h < LENGTH(halves); h++) {
        const struct half *half = &halves[h];

        for (uint32_t i = 0; i + 1 < half->infinity; i++) {
            float tie = (float)(((double)half->to((uint16_t)i) +
                                 (double)half->to((uint16_t)(i + 1))) /
                                2.0);
            uint32_t bits = fsdp_f32_bits(tie);
            uint32_t even = i + (i & 1);

            for (uint32_t sign = 0; sign <= 0x8000; sign += 0x8000) {
                uint32_t at = bits | sign << 16;

                assert_int_equal(half->from(fsdp_f32_from_bits(at)),
                                 even | sign);
                assert_int_equal(half->from(fsdp_f32_from_bits(at - 1)),
                                 i | sign);
                assert_int_equal(half->from(fsdp_f32_from_bits(at + 1)),
                                 (i + 1) | sign);
            }
        }
    }
}

UNIT_TEST(test_a_sample_of_casts)
{
    struct arith_mpfr mpfr;

    arith_mpfr_init(&mpfr);
    for (size_t h = 0; h < LENGTH(halves); h++) {
        for (uint64_t x = 0; x <= UINT32_MAX; x += CAST_STRIDE) {
            uint32_t got = fsdp_f32_bits(
                halves[h].cast->compute(fsdp_f32_from_bits((uint32_t)x)));
            uint32_t want = arith_mpfr_bits(&mpfr, halves[h].cast, (uint32_t)x);

            if (want == FSDP_F32_NAN ? (got & ~FSDP_F32_SIGN) < FSDP_F32_NAN
                                     : got != want) {
                fail_msg("%s(%08x): got %08x, want %08x", halves[h].cast->name,
                         (unsigned int)x, got, want);
            }
        }
    }
    arith_mpfr_fini(&mpfr);
}

/*
 * The sum of two values of 16 bits, added in float32 and rounded, is the
 * exact sum rounded once: 24 >= 2 * 11 + 2, so that no double rounding shows.
 */
static void check_sum(struct arith_mpfr *mpfr, const struct half *half,
                      uint32_t a, uint32_t b)
{
    float x = half->to((uint16_t)a);
    float y = half->to((uint16_t)b);
    uint32_t got = fsdp_f32_bits(half->to(half->from(x + y)));
    uint32_t want = arith_mpfr_sum(mpfr, half->format, x, y);

    if (want == FSDP_F32_NAN ? (got & ~FSDP_F32_SIGN) < FSDP_F32_NAN
                             : got != want) {
        fail_msg("%s of %04x + %04x: got %08x, want %08x", half->cast->name, a,
                 b, got, want);
    }
}

UNIT_TEST(test_a_sample_of_sums)
{
    struct arith_mpfr mpfr;

    arith_mpfr_init(&mpfr);
    for (size_t h = 0; h < LENGTH(halves); h++) {
        for (uint64_t i = 0; i <= UINT32_MAX; i += SUM_STRIDE) {
            check_sum(&mpfr, &halves[h], (uint32_t)i >> 16,
                      (uint32_t)i & 0xffff);
        }
    }
    arith_mpfr_fini(&mpfr);
}

/* All pairs of exponents and signs, with significands at their ends: there
 * are the ties, the cancellations and the sums that overflow. */
UNIT_TEST(test_sums_at_every_pair_of_exponents)
{
    static const int significand_bits[] = {7, 10};
    struct arith_mpfr mpfr;

    arith_mpfr_init(&mpfr);
    for (size_t h = 0; h < LENGTH(halves); h++) {
        uint32_t hidden = (uint32_t)1 << significand_bits[h];
        const uint32_t low[] = {0, 1, hidden / 2, hidden - 1};

        for (uint32_t a = 0; a <= halves[h].infinity; a += hidden) {
            for (uint32_t b = a; b <= halves[h].infinity; b += hidden) {
                for (uint32_t k = 0; k < 32; k++) {
                    check_sum(&mpfr, &halves[h], a | low[k & 3],
                              b | low[k >> 2 & 3] | (k >> 4) * 0x8000);
                }
            }
        }
    }
    arith_mpfr_fini(&mpfr);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bf16_edges),
        cmocka_unit_test(test_f16_edges),
        cmocka_unit_test(test_every_value_comes_back),
        cmocka_unit_test(test_every_value_is_what_its_bits_say),
        cmocka_unit_test(test_every_tie_goes_to_even),
        cmocka_unit_test(test_a_sample_of_casts),
        cmocka_unit_test(test_a_sample_of_sums),
        cmocka_unit_test(test_sums_at_every_pair_of_exponents),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
