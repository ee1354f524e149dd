/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_literal_test.h - the notation of op.h, an element at a time, written
 * apart from the operators that it is compared with: slow and literal.
 */
#ifndef FSDP_CTS_OP_LITERAL_TEST_H
#define FSDP_CTS_OP_LITERAL_TEST_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* How sums run: forwards as op.h says, or backwards, to see that the data
 * tells one order from another. */
enum literal_order {
    LITERAL_FORWARD,
    LITERAL_BACKWARD
};

/* chain(k; a[k * a_step], b[k * b_step]) */
static inline float literal_chain(enum literal_order order, uint64_t n,
                                  const float *a, uint64_t a_step,
                                  const float *b, uint64_t b_step)
{
    float acc = 0.0f;

    for (uint64_t i = 0; i < n; i++) {
        uint64_t k = order == LITERAL_FORWARD ? i : n - 1 - i;

        acc = fmaf(a[k * a_step], b[k * b_step], acc);
    }
    return acc;
}

/* lanes(c; fma(a[c], b[c], acc)); without b, lanes(c; acc + a[c]). Backwards
 * there is but one lane: mirrored lanes would add up to much the same. */
static inline float literal_lanes(enum literal_order order, uint64_t n,
                                  const float *a, const float *b)
{
    float lane[32] = {0.0f};
    float next[32];

    for (uint64_t i = 0; i < n; i++) {
        uint64_t c = order == LITERAL_FORWARD ? i : n - 1 - i;
        uint64_t l = order == LITERAL_FORWARD ? c % 32 : 0;

        lane[l] = b ? fmaf(a[c], b[c], lane[l]) : lane[l] + a[c];
    }
    for (uint64_t o = 16; o > 0; o /= 2) {
        for (uint64_t l = 0; l < 32; l++) {
            next[l] = lane[l] + lane[l ^ o];
        }
        for (uint64_t l = 0; l < 32; l++) {
            lane[l] = next[l];
        }
    }
    return lane[0];
}

/* The specification is recursive. NOLINTNEXTLINE(misc-no-recursion) */
static inline float literal_tree(const float *x, uint64_t g)
{
    uint64_t half = (g + 1) / 2;

    if (g == 1) {
        return x[0];
    }
    return literal_tree(x, half) + literal_tree(x + half, g - half);
}

static inline float literal_maximum(const float *x, uint64_t n)
{
    float m = -INFINITY;

    for (uint64_t c = 0; c < n; c++) {
        if (isnan(x[c])) {
            return NAN;
        }
        if (x[c] > m || (x[c] == m && signbit(m))) {
            m = x[c];
        }
    }
    return m;
}

/* The sum of one grain of COLUMN_SUM: fma(a, b, block) or block + a. */
static inline float literal_blocks(enum literal_order order, uint64_t rows,
                                   const float *a, const float *b)
{
    float total = 0.0f;

    for (uint64_t first = 0; first < rows; first += 64) {
        float block = 0.0f;

        for (uint64_t i = first; i < rows && i < first + 64; i++) {
            uint64_t r = order == LITERAL_FORWARD ? i : rows - 1 - i;

            block = b ? fmaf(a[r], b[r], block) : block + a[r];
        }
        total = total + block;
    }
    return total;
}

#endif
