/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signed_rank.c - Wilcoxon's signed-rank test. The distribution of the sum is
 * counted, not approximated: each rank is in it or not with a chance of one
 * half. Ranks are doubled, so that those of ties are whole numbers.
 */
#include "tools/track/signed_rank.h"

#include <fsdp/status.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_size(const void *a, const void *b)
{
    const double x = fabs(*(const double *)a);
    const double y = fabs(*(const double *)b);

    return (x > y) - (x < y);
}

/* Doubled ranks of sorted differences; ties share the mean of theirs. */
static void rank(const double *d, uint32_t n, uint32_t *out)
{
    for (uint32_t i = 0; i < n;) {
        uint32_t end = i;

        while (end < n && !(fabs(d[end]) > fabs(d[i]))) {
            end++;
        }
        for (uint32_t k = i; k < end; k++) {
            out[k] = i + 1 + end;
        }
        i = end;
    }
}

/* chance[s]: that the ranks of heads sum to s. */
static void count(const uint32_t *ranks, uint32_t n, double *chance,
                  uint32_t most)
{
    memset(chance, 0, (most + 1u) * sizeof(*chance));
    chance[0] = 1.0;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t s = most + 1; s-- > 0;) {
            chance[s] = 0.5 * (chance[s] +
                               (s >= ranks[i] ? chance[s - ranks[i]] : 0.0));
        }
    }
}

int signed_rank(const double *d, uint32_t n, struct signed_rank *out)
{
    double sorted[SIGNED_RANK_MOST] = {0};
    uint32_t ranks[SIGNED_RANK_MOST] = {0};
    double *chance;
    uint32_t sum = 0;
    uint32_t most = 0;

    *out = (struct signed_rank){.larger = 1.0, .smaller = 1.0};
    if (n > SIGNED_RANK_MOST) {
        return FSDP_ERR_INVALID;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!isfinite(d[i])) {
            return FSDP_ERR_INVALID;
        }
        if (d[i] > 0.0 || d[i] < 0.0) {
            sorted[out->n++] = d[i];
        }
    }
    qsort(sorted, out->n, sizeof(*sorted), by_size);
    rank(sorted, out->n, ranks);
    for (uint32_t i = 0; i < out->n; i++) {
        most += ranks[i];
        sum += sorted[i] > 0.0 ? ranks[i] : 0;
        out->positive += sorted[i] > 0.0 ? 1 : 0;
    }
    chance = calloc(most + 1u, sizeof(*chance));
    if (!chance) {
        return FSDP_ERR_NOMEM;
    }
    count(ranks, out->n, chance, most);
    out->larger = out->smaller = 0.0;
    for (uint32_t s = 0; s <= most; s++) {
        out->larger += s >= sum ? chance[s] : 0.0;
        out->smaller += s <= sum ? chance[s] : 0.0;
    }
    free(chance);
    return FSDP_OK;
}
