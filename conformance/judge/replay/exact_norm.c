/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exact_norm.c - long integers: a sum of squares in units of 2^-300, whose
 * integer root, bit by bit, is the norm in units of 2^-150. What the root
 * leaves over decides, as one bit, how it is rounded.
 */
#include "judge/replay/exact_norm.h"

#include <fsdp/arith/bits.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum {
    N = EXACT_NORM_DIGITS,
    ROOT_BITS = N * 32 / 2,
    MANTISSA = 24, /* bits of a float32 */
    UNIT = -150
};

static bool bit_of(const uint32_t *x, uint32_t i)
{
    return (x[i / 32] >> i % 32 & 1u) != 0;
}

/* x += value << shift. */
static void add_shifted(uint32_t *x, uint64_t value, uint32_t shift)
{
    uint32_t at = shift / 32;
    /* Two digits, each in a number of its own, so that no bit is lost. */
    uint64_t low = (value & UINT32_MAX) << shift % 32;
    uint64_t high = (value >> 32) << shift % 32;
    uint64_t carry = 0;

    for (uint32_t i = at; i < N; i++) {
        carry += x[i];
        carry += low & UINT32_MAX;
        low = (low >> 32) + high;
        high = 0;
        x[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

void exact_norm_begin(struct exact_norm *norm, float p)
{
    memset(norm, 0, sizeof(*norm));
    norm->p = p;
}

void exact_norm_add(struct exact_norm *norm, float x)
{
    const uint32_t bits = fsdp_f32_bits(x) & ~FSDP_F32_SIGN;
    const uint32_t exponent = bits >> 23 != 0 ? bits >> 23 : 1;
    const uint64_t m = (bits & 0x7fffffu) | (bits >> 23 != 0 ? 0x800000u : 0u);

    /* |x| = m * 2^exponent in units of 2^-150. */
    if (isnan(x) || fabsf(x) > norm->worst) {
        norm->worst = isnan(norm->worst) ? norm->worst : fabsf(x);
    }
    if (isfinite(x) && norm->p > 1.0f) {
        add_shifted(norm->sum, m * m, 2 * exponent);
    } else if (isfinite(x)) {
        add_shifted(norm->sum, m, exponent);
    }
}

/* x * x compared with sum: whether it is not beyond it. */
static bool square_fits(const uint32_t *x, const uint32_t *sum, bool *equal)
{
    uint32_t square[N] = {0};

    for (uint32_t i = 0; i < N / 2; i++) {
        for (uint32_t j = 0; x[i] != 0 && j < N / 2; j++) {
            add_shifted(square, (uint64_t)x[i] * x[j], 32 * (i + j));
        }
    }
    *equal = memcmp(square, sum, sizeof(square)) == 0;
    for (uint32_t i = N; i-- > 0;) {
        if (square[i] != sum[i]) {
            return square[i] < sum[i];
        }
    }
    return true;
}

/* root = the integer root of sum; true: something is left over. */
static bool root_of(const uint32_t *sum, uint32_t *root)
{
    bool equal = false;

    memset(root, 0, N * sizeof(*root));
    for (uint32_t i = ROOT_BITS; i-- > 0 && !equal;) {
        uint32_t more[N];

        memcpy(more, root, sizeof(more));
        more[i / 32] |= 1u << i % 32;
        if (square_fits(more, sum, &equal)) {
            memcpy(root, more, sizeof(more));
        }
    }
    return !equal;
}

/* x units, and a little more if `over`, to the nearest float32. */
static float rounded(const uint32_t *x, bool over)
{
    uint32_t length = N * 32;
    uint32_t drop;
    uint32_t kept = 0;
    bool half;

    while (length > 0 && !bit_of(x, length - 1)) {
        length--;
    }
    drop = length > MANTISSA + 1 ? length - MANTISSA : 1;
    for (uint32_t i = length; i > drop; i--) {
        kept = kept << 1 | (bit_of(x, i - 1) ? 1u : 0u);
    }
    half = bit_of(x, drop - 1);
    for (uint32_t i = 0; i + 1 < drop; i++) {
        over = over || bit_of(x, i);
    }
    kept += half && (over || (kept & 1u)) ? 1u : 0u;
    return ldexpf((float)kept, (int)drop + UNIT);
}

float exact_norm_end(const struct exact_norm *norm)
{
    uint32_t root[N];

    if (!isfinite(norm->worst) || !isfinite(norm->p)) {
        return norm->worst;
    }
    if (norm->p > 1.0f) {
        bool over = root_of(norm->sum, root);

        return rounded(root, over);
    }
    return rounded(norm->sum, false);
}
