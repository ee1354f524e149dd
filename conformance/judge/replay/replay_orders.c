/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_orders.c - adds up few values in all orders, and many in the usual
 * ones.
 */
#include "judge/replay/replay_orders.h"

#include <fsdp/arith/bits.h>
#include <fsdp/arith/cast.h>
#include <string.h>

uint32_t orders_count(uint32_t n)
{
    uint32_t count = 1;

    if (n > ORDERS_ALL) {
        return 2 * n + 4;
    }
    /* Any two of the m values that are left may be the next to be added. */
    for (uint32_t m = n; m > 1; m--) {
        count *= m * (m - 1) / 2;
    }
    return count;
}

/* Adds the two of m values that are the index-th pair. */
static uint32_t merge(uint32_t sum, float *x, uint32_t m, uint32_t index)
{
    uint32_t a = 0;

    while (index >= m - 1 - a) {
        index -= m - 1 - a;
        a++;
    }
    x[a] = fsdp_round(sum, x[a] + x[a + 1 + index]);
    for (uint32_t i = a + 1 + index; i + 1 < m; i++) {
        x[i] = x[i + 1];
    }
    return m - 1;
}

static float fold_pairs(uint32_t index, uint32_t sum, const float *x,
                        uint32_t n)
{
    float left[ORDERS_ALL];

    memcpy(left, x, n * sizeof(*x));
    for (uint32_t m = n; m > 1;) {
        uint32_t pairs = m * (m - 1) / 2;
        uint32_t pair = index % pairs;

        index /= pairs;
        m = merge(sum, left, m, pair);
    }
    return left[0];
}

/* tree(a, b) of comm.h, which defines it by recursion.
 * NOLINTNEXTLINE(misc-no-recursion) */
static float fold_tree(uint32_t sum, const float *x, uint32_t n)
{
    uint32_t first = n - n / 2;

    return n == 1 ? x[0]
                  : fsdp_round(sum, fold_tree(sum, x, first) +
                                        fold_tree(sum, x + first, n / 2));
}

static float fold_halving(uint32_t sum, const float *x, uint32_t n)
{
    float left[WORLD_MAX_RANKS];

    memcpy(left, x, n * sizeof(*x));
    for (uint32_t m = n; m > 1; m = m - m / 2) {
        for (uint32_t i = 0; i < m / 2; i++) {
            left[i] = fsdp_round(sum, left[i] + left[i + (m - m / 2)]);
        }
    }
    return left[0];
}

static float fold_from(uint32_t first, bool up, uint32_t sum, const float *x,
                       uint32_t n)
{
    float so_far = x[first];

    for (uint32_t i = 1; i < n; i++) {
        so_far = fsdp_round(
            sum, so_far + x[up ? (first + i) % n : (first + n - i) % n]);
    }
    return so_far;
}

/* Adds the first of n values to their neighbours, so many that a power of two
 * values is left. Returns that power. */
static uint32_t pair_up(uint32_t sum, const float *x, uint32_t n, float *left)
{
    uint32_t power = 1;
    uint32_t pairs;

    while (2 * power <= n) {
        power *= 2;
    }
    pairs = n - power;
    for (uint32_t i = 0; i < pairs; i++) {
        const float *const two = x + (size_t)2 * i;

        left[i] = fsdp_round(sum, two[0] + two[1]);
    }
    memcpy(left + pairs, x + (size_t)2 * pairs, (power - pairs) * sizeof(*x));
    return power;
}

float orders_fold(uint32_t index, uint32_t sum, const float *x, uint32_t n)
{
    float left[WORLD_MAX_RANKS];

    if (n <= ORDERS_ALL) {
        return fold_pairs(index, sum, x, n);
    }
    if (index < 2 * n) {
        return fold_from(index % n, index < n, sum, x, n);
    }
    if (index >= 2 * n + 2) {
        n = pair_up(sum, x, n, left);
        x = left;
    }
    return index % 2 == 0 ? fold_tree(sum, x, n) : fold_halving(sum, x, n);
}

/* A division that is spread over a reduction: the divisors of each value before
 * the fold, of each shard group's sum, and of the result. A divisor below 0
 * stands for a product with the rounded inverse of its amount. */
struct spread {
    float before, group, last;
};

static struct spread spread_of(const struct replay_reduction *x, uint32_t form)
{
    float d = x->divide;
    float p = 1.0f;

    switch (form) {
    case ORDERS_PRODUCT:
        return (struct spread){1.0f, 1.0f, -d};
    case ORDERS_QUOTIENT:
        return (struct spread){1.0f, 1.0f, d};
    case ORDERS_PRODUCT_EACH:
        return (struct spread){-d, 1.0f, 1.0f};
    case ORDERS_QUOTIENT_EACH:
        return (struct spread){d, 1.0f, 1.0f};
    case ORDERS_SPLIT:
        while (d / p > p && d / p == (float)(uint32_t)(d / p)) {
            p *= 2.0f;
        }
        return (struct spread){p, 1.0f, d / p};
    default:
        return (struct spread){1.0f, (float)x->e->shards,
                               d / (float)x->e->shards};
    }
}

/* Rounded to the dtype of the wire, where it happens. */
static float divide(uint32_t wire, float x, float by)
{
    if (by == 1.0f) {
        return x;
    }
    return fsdp_round(wire, by < 0.0f ? x * (1.0f / -by) : x / by);
}

/* The result of the ranks' pending sums in one order of a mesh. */
static float reduce(const struct replay_reduction *reduction,
                    const struct spread *spread, uint32_t order,
                    const float *pending)
{
    const struct expect *e = reduction->e;
    const uint32_t wire = e->unit[reduction->unit].dtype.reduce;
    const uint32_t sum = e->unit[reduction->unit].dtype.sum;
    uint32_t in_group = orders_count(e->shards);
    float x[WORLD_MAX_RANKS];
    float replica[WORLD_MAX_RANKS];

    for (uint32_t k = 0; k < e->c->ranks; k++) {
        x[k] = divide(wire, fsdp_round(wire, pending[k]), spread->before);
    }
    for (uint32_t r = 0; r < e->replicas; r++) {
        const float fold = orders_fold(order % in_group, sum,
                                       x + (size_t)r * e->shards, e->shards);

        replica[r] = divide(wire, fsdp_round(wire, fold), spread->group);
    }
    return divide(wire,
                  fsdp_round(wire, orders_fold(order / in_group, sum, replica,
                                               e->replicas)),
                  spread->last);
}

/* replay_reduced in another order and form. */
static float reduced(const struct replay_reduction *reduction,
                     const struct spread *spread, uint32_t order, uint64_t i)
{
    const struct run_case *c = reduction->e->c;
    float pending[WORLD_MAX_RANKS] = {0};
    float sum = 0.0f;
    bool is_pending = false, is_sum = false;

    for (uint32_t b = 0; b < c->microbatches; b++) {
        replay_accumulate(reduction, b, i, pending, &is_pending);
        if (c->sync[b] != 0) {
            float g = reduce(reduction, spread, order, pending);

            sum = is_sum ? sum + g : g;
            is_sum = true;
            is_pending = false;
            memset(pending, 0, sizeof(pending));
        }
    }
    return sum;
}

/* The order that gives `got` for element i; *order is tried first. */
static bool find_order(const struct replay_reduction *x,
                       const struct spread *spread, float got, uint64_t i,
                       uint32_t *order)
{
    uint32_t n = orders_count(x->e->shards) * orders_count(x->e->replicas);

    for (uint32_t k = 0; k < n; k++) {
        uint32_t at = (*order + k) % n;

        if (fsdp_f32_bits(reduced(x, spread, at, i)) == fsdp_f32_bits(got)) {
            *order = at;
            return true;
        }
    }
    return false;
}

bool orders_hold(const struct replay_reduction *x, const float *got, uint64_t n,
                 uint64_t *bad)
{
    *bad = 0;
    for (uint32_t form = 0; form < ORDERS_N_FORMS; form++) {
        struct spread spread = spread_of(x, form);
        uint32_t order = 0;
        uint64_t i = 0;

        while (i < n && find_order(x, &spread, got[i], i, &order)) {
            i++;
        }
        if (i == n) {
            return true;
        }
        *bad = i > *bad ? i : *bad;
    }
    return false;
}
