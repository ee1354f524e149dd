/* SPDX-License-Identifier: Apache-2.0 */
/* median.c - the quantile of a few numbers, by sorting a copy of them. */
#include "tools/track/median.h"

#include <stdlib.h>
#include <string.h>

enum {
    SHORT = 64
};

static int by_size(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;

    return (*x > *y) - (*x < *y);
}

/* A window of runs is short: insertion is quickest there, and there are
 * hundreds of thousands of windows. */
static void sort(double *x, uint32_t n)
{
    if (n > SHORT) {
        qsort(x, n, sizeof(*x), by_size);
        return;
    }
    for (uint32_t i = 1; i < n; i++) {
        double y = x[i];
        uint32_t k = i;

        for (; k > 0 && x[k - 1] > y; k--) {
            x[k] = x[k - 1];
        }
        x[k] = y;
    }
}

double quantile_of(const double *x, uint32_t n, double q)
{
    double sorted[MEDIAN_MOST];
    double place;
    uint32_t below;

    if (n > MEDIAN_MOST) {
        x += n - MEDIAN_MOST;
        n = MEDIAN_MOST;
    }
    if (n == 0) {
        return 0.0;
    }
    memcpy(sorted, x, n * sizeof(*x));
    sort(sorted, n);
    place = q * (n - 1);
    below = (uint32_t)place;
    if (below + 1 >= n) {
        return sorted[n - 1];
    }
    return sorted[below] +
           (place - below) * (sorted[below + 1] - sorted[below]);
}

double median_of(const double *x, uint32_t n)
{
    return quantile_of(x, n, 0.5);
}

uint64_t draw_of(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}
