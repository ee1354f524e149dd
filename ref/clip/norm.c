/* SPDX-License-Identifier: Apache-2.0 */
/*
 * norm.c - the exact sum of |x|^p as a long integer. Its root is found by
 * bisection over all float32: the largest whose power is not beyond the sum, or
 * the next larger one, if the sum is beyond the middle of the two.
 */
#include "norm.h"

#include <fsdp/arith/bits.h>
#include <math.h>
#include <string.h>

enum {
    LOWEST = -300 /* the exponent of digit 0 */
};

/* digits += m * 2^exponent. The sum is long enough for any number (norm.h). */
static void add_scaled(uint32_t *digit, uint64_t m, int exponent)
{
    uint32_t at = (uint32_t)(exponent - LOWEST) / 32;
    uint32_t shift = (uint32_t)(exponent - LOWEST) % 32;
    uint64_t low = (m & UINT32_MAX) << shift;
    uint64_t high = (m >> 32) << shift;
    uint64_t part[3] = {low & UINT32_MAX, (low >> 32) + (high & UINT32_MAX),
                        high >> 32};
    uint64_t carry = 0;

    for (uint32_t i = at; i < REF_SUM_DIGITS; i++) {
        uint64_t sum = carry + digit[i];

        sum += i - at < 3 ? part[i - at] : 0;
        digit[i] = (uint32_t)sum;
        carry = sum >> 32;
        if (i - at >= 2 && carry == 0) {
            break;
        }
    }
}

/* digits += (m * 2^exponent)^p for m below 2^26. */
static void add_power(uint32_t *digit, float p, uint64_t m, int exponent)
{
    if (p > 1.0f) {
        add_scaled(digit, m * m, 2 * exponent);
    } else {
        add_scaled(digit, m, exponent);
    }
}

/* A finite |x| is m * 2^exponent. */
static uint64_t take_apart(uint32_t bits, int *exponent)
{
    uint32_t field = bits >> 23 & 0xffu;

    *exponent = (int)(field ? field : 1) - 150;
    return (bits & 0x7fffffu) | (field ? 0x800000u : 0);
}

void ref_sum_add(struct ref_sum *sum, float p, float factor, const float *x,
                 uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        float size = fabsf(x[i] * factor);
        int exponent;
        uint64_t m;

        if (!(size <= sum->largest) && !isnan(sum->largest)) {
            sum->largest = size;
        }
        if (isfinite(size) && isfinite(p)) {
            m = take_apart(fsdp_f32_bits(size), &exponent);
            add_power(sum->digit, p, m, exponent);
        }
    }
}

void ref_sum_merge(struct ref_sum *sum, const struct ref_sum *other)
{
    uint64_t carry = 0;

    for (uint32_t i = 0; i < REF_SUM_DIGITS; i++) {
        carry += (uint64_t)sum->digit[i] + other->digit[i];
        sum->digit[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (!(other->largest <= sum->largest) && !isnan(sum->largest)) {
        sum->largest = other->largest;
    }
}

/* Whether the sum is beyond (m * 2^exponent)^p: 1; equal: 0; below: -1. */
static int compare_power(const struct ref_sum *sum, float p, uint64_t m,
                         int exponent)
{
    uint32_t other[REF_SUM_DIGITS] = {0};

    add_power(other, p, m, exponent);
    for (uint32_t i = REF_SUM_DIGITS; i-- > 0;) {
        if (sum->digit[i] != other[i]) {
            return sum->digit[i] > other[i] ? 1 : -1;
        }
    }
    return 0;
}

float ref_sum_root(const struct ref_sum *sum, float p)
{
    uint32_t below = 0;
    uint32_t above = FSDP_F32_INFINITY;
    uint64_t m;
    int exponent;
    int beyond;

    if (!isfinite(p) || !isfinite(sum->largest)) {
        return sum->largest;
    }
    while (above - below > 1) {
        uint32_t middle = below + (above - below) / 2;

        m = take_apart(middle, &exponent);
        if (compare_power(sum, p, m, exponent) >= 0) {
            below = middle;
        } else {
            above = middle;
        }
    }
    m = take_apart(below, &exponent);
    beyond = compare_power(sum, p, 2 * m + 1, exponent - 1);
    return fsdp_f32_from_bits(
        beyond > 0 || (beyond == 0 && (below & 1u)) ? above : below);
}

float ref_clip_scale(const struct fsdp_clip *clip)
{
    return clip->inverse_scale == 0.0f ? 1.0f : clip->inverse_scale;
}

bool ref_clip_factor(const struct fsdp_clip *clip, float norm, float *factor)
{
    *factor = clip->max_norm / (norm + 1e-6f);
    return norm > clip->max_norm &&
           (clip->inverse_scale == 0.0f || isfinite(norm));
}

struct fsdp_clip ref_read_clip(const struct fsdp_clip *clip)
{
    struct fsdp_clip known;

    ref_read(&known, sizeof(known), clip, clip->size);
    return known;
}

int ref_check_scale(const struct fsdp_env *env, const char *where,
                    float inverse_scale)
{
    return inverse_scale >= 0.0f && isfinite(inverse_scale)
               ? FSDP_OK
               : ref_fail(env, FSDP_ERR_INVALID, where,
                          "inverse_scale %g is neither a positive number nor "
                          "0, for none",
                          (double)inverse_scale);
}

bool ref_all_finite(const float *x, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) {
            return false;
        }
    }
    return true;
}

int ref_check_clip(const struct fsdp_env *env, const struct fsdp_clip *clip)
{
    FSDP_TRY(ref_check_scale(env, "ref.clip_grad_norm", clip->inverse_scale));
    if (!(clip->max_norm > 0.0f)) {
        return ref_fail(env, FSDP_ERR_INVALID, "ref.clip_grad_norm",
                        "max_norm %g is not over 0", (double)clip->max_norm);
    }
    if (clip->p != 1.0f && clip->p != 2.0f &&
        !(isinf(clip->p) && clip->p > 0.0f)) {
        return ref_fail(env, FSDP_ERR_INVALID, "ref.clip_grad_norm",
                        "p %g is none of 1, 2 and infinity", (double)clip->p);
    }
    return FSDP_OK;
}

int ref_check_norm(const struct fsdp_env *env, const struct fsdp_clip *clip,
                   float norm)
{
    return clip->error_if_nonfinite && !isfinite(norm)
               ? ref_fail(env, FSDP_ERR_INVALID, "ref.clip_grad_norm",
                          "the norm is not finite")
               : FSDP_OK;
}

struct fsdp_op ref_scale_op(uint32_t unit, float *x, uint64_t n, float factor)
{
    return (struct fsdp_op){.kind = FSDP_OP_SCALE,
                            .unit = unit,
                            .dim = {n},
                            .f = {factor},
                            .n_in = 1,
                            .in = {{x, n * sizeof(*x)}},
                            .n_out = 1,
                            .out = {{x, n * sizeof(*x)}}};
}
