/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_norm.c - a long integer of 64-bit words, and its root: first an estimate
 * in double, then steps to the float32 that is nearest to the root of the sum.
 */
#include "impl_norm.h"

#include <fsdp/arith/bits.h>
#include <math.h>
#include <string.h>

enum {
    WORDS = IMPL_NORM_WORDS,
    LOWEST = -300,
    MOST = 1 << 30, /* elements in bins */
};

/* words += value * 2^(shift + LOWEST); there is room. */
static void add_word(uint64_t *word, uint64_t value, unsigned shift)
{
    unsigned i = shift / 64, by = shift % 64;
    uint64_t part[2] = {value << by, by ? value >> (64 - by) : 0};
    uint64_t carry = 0;

    for (unsigned k = 0; i < WORDS && (k < 2 || carry); i++, k++) {
        uint64_t add = k < 2 ? part[k] : 0;
        uint64_t sum = word[i] + add;
        uint64_t over = sum < add;

        word[i] = sum + carry;
        carry = over + (word[i] < sum);
    }
}

/* Exponent of the unit in which a mantissa of this field counts. */
static unsigned shift_of(unsigned field, float p)
{
    unsigned exponent = (field ? field : 1) - 150u; /* modulo 2^32 */

    return p > 1.0f ? 2 * exponent - (unsigned)LOWEST
                    : exponent - (unsigned)LOWEST;
}

static uint64_t mantissa(uint32_t bits)
{
    return (bits & 0x7fffffu) | (bits >> 23 ? 0x800000u : 0);
}

void impl_norm_settle(struct impl_norm *norm, struct impl_norm_bins *bins,
                      float p)
{
    for (unsigned b = 0; b < IMPL_NORM_BINS; b++) {
        add_word(norm->word, bins->low[b], shift_of(b, p));
        add_word(norm->word, bins->high[b], shift_of(b, p) + 32);
    }
    memset(bins, 0, sizeof(*bins));
}

void impl_norm_add(struct impl_norm *norm, struct impl_norm_bins *bins, float p,
                   const float *x, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint32_t bits = fsdp_f32_bits(x[i]) & ~FSDP_F32_SIGN;
        float size = fsdp_f32_from_bits(bits);
        uint64_t m = mantissa(bits);

        if (!(size <= norm->largest) && !isnan(norm->largest)) {
            norm->largest = size;
        }
        if (bits >= FSDP_F32_INFINITY || isinf(p)) {
            continue;
        }
        m = p > 1.0f ? m * m : m;
        bins->low[bits >> 23] += m & UINT32_MAX;
        bins->high[bits >> 23] += m >> 32;
        if (++bins->n == MOST) {
            impl_norm_settle(norm, bins, p);
        }
    }
}

void impl_norm_merge(struct impl_norm *norm, const struct impl_norm *other)
{
    for (unsigned i = 0; i < WORDS; i++) {
        add_word(norm->word, other->word[i], 64 * i);
    }
    if (!(other->largest <= norm->largest) && !isnan(norm->largest)) {
        norm->largest = other->largest;
    }
}

/* The sum against what lies in the middle of the float32 of these bits and
 * the next one, raised to p: below, at or above it. */
static int against_middle(const struct impl_norm *norm, float p, uint32_t bits)
{
    uint64_t middle[WORDS] = {0};
    uint64_t m = 2 * mantissa(bits) + 1; /* half a unit each */

    add_word(middle, p > 1.0f ? m * m : m,
             shift_of(bits >> 23, p) - (p > 1.0f ? 2u : 1u));
    for (unsigned i = WORDS; i-- > 0;) {
        if (norm->word[i] != middle[i]) {
            return norm->word[i] > middle[i] ? 1 : -1;
        }
    }
    return 0;
}

/* Not exact, and never far off. */
static float guess(const struct impl_norm *norm, float p)
{
    double sum = 0.0;

    for (unsigned i = 0; i < WORDS; i++) {
        sum += ldexp((double)norm->word[i], (int)(64 * i) + LOWEST);
    }
    sum = p > 1.0f ? sqrt(sum) : sum;
    return sum < 0x1.fffffep127 ? (float)sum : 0x1.fffffep127f;
}

float impl_norm_root(const struct impl_norm *norm, float p)
{
    uint32_t bits;
    int side;

    if (isinf(p) || !isfinite(norm->largest)) {
        return norm->largest;
    }
    bits = fsdp_f32_bits(guess(norm, p));
    while (bits > 0 && against_middle(norm, p, bits - 1) < 0) {
        bits--;
    }
    while (bits < FSDP_F32_INFINITY &&
           (side = against_middle(norm, p, bits)) >= 0 &&
           (side > 0 || (bits & 1u))) {
        bits++;
    }
    /* Half way down, too, it goes to the even one. */
    if (bits > 0 && (bits & 1u) && against_middle(norm, p, bits - 1) == 0) {
        bits--;
    }
    return fsdp_f32_from_bits(bits);
}
