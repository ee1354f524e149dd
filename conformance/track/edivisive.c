/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edivisive.c - where a series changes. The divergence of two parts is the
 * mean distance between them less the mean distances within them, so that it
 * needs no assumption of a distribution; its significance is how often a
 * series with the same values in another order has one as large.
 */
#include "track/edivisive.h"
#include "track/median.h"

#include <fsdp/status.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    WINDOW_MOST = 400
};

const struct edivisive_options edivisive_defaults = {
    .window = 50,
    .before = 7,
    .after = 3,
    .permutations = 1999,
    .significance = 0.001,
    .least = 0.02,
    .seed = UINT64_C(0x66736470),
};

/* splitmix64: the same permutations on every machine. */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void shuffle(double *x, uint32_t n, uint64_t *state)
{
    for (uint32_t i = n; i > 1; i--) {
        uint32_t j = (uint32_t)(((draw(state) >> 32) * i) >> 32);
        double y = x[i - 1];

        x[i - 1] = x[j];
        x[j] = y;
    }
}

/* Sums of distances within the parts and between them. */
struct distances {
    double left, right, all;
    uint32_t n;
};

static double divergence(const struct distances *d, uint32_t cut)
{
    double n = cut;
    double m = d->n - cut;
    double between = (d->all - d->left - d->right) / (n * m);
    double left = cut > 1 ? d->left / (n * (n - 1) / 2) : 0.0;
    double right = d->n - cut > 1 ? d->right / (m * (m - 1) / 2) : 0.0;

    return n * m / (n + m) * (2 * between - left - right);
}

/* x[k] goes from the right part to the left one. */
static void move(struct distances *d, const double *x, uint32_t k)
{
    double left = 0.0;
    double right = 0.0;

    for (uint32_t i = 0; i < k; i++) {
        left += fabs(x[k] - x[i]);
    }
    for (uint32_t i = k + 1; i < d->n; i++) {
        right += fabs(x[k] - x[i]);
    }
    d->left += left;
    d->right -= right;
}

static struct distances whole(const double *x, uint32_t n)
{
    struct distances d = {.n = n};

    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = i + 1; j < n; j++) {
            d.all += fabs(x[i] - x[j]);
        }
    }
    d.right = d.all;
    return d;
}

double edivisive_divergence(const double *x, uint32_t n, uint32_t cut)
{
    struct distances d = whole(x, n);

    for (uint32_t k = 0; k < cut; k++) {
        move(&d, x, k);
    }
    return divergence(&d, cut);
}

/* The largest divergence of all cuts that the options allow. */
static double best_cut(const double *x, struct distances d,
                       const struct edivisive_options *o, uint32_t *cut)
{
    double best = -1.0;

    *cut = 0;
    for (uint32_t k = 0; k + o->after < d.n; k++) {
        double q;

        move(&d, x, k);
        q = k + 1 >= o->before ? divergence(&d, k + 1) : -1.0;
        if (q > best) {
            best = q;
            *cut = k + 1;
        }
    }
    return best;
}

/* How likely so large a divergence is where nothing changed. It stops as soon
 * as that is more than the options allow. */
static double chance_of(const double *x, struct distances d, double q,
                        const struct edivisive_options *o)
{
    uint64_t state = o->seed;
    uint32_t larger = 1;
    double tries = (double)o->permutations + 1;
    double y[WINDOW_MOST];

    memcpy(y, x, d.n * sizeof(*x));
    for (uint32_t i = 0; i < o->permutations; i++) {
        uint32_t ignored;

        shuffle(y, d.n, &state);
        d.left = 0.0;
        d.right = d.all;
        larger += !(best_cut(y, d, o, &ignored) < q) ? 1 : 0;
        if (larger / tries > o->significance) {
            break;
        }
    }
    return larger / tries;
}

/* Whether the window x[0..n-1] has a change. */
static bool look(const double *x, uint32_t n, const struct edivisive_options *o,
                 struct edivisive_change *out)
{
    struct distances d;
    double q;
    uint32_t cut;

    if (n < o->before + o->after) {
        return false;
    }
    d = whole(x, n);
    q = best_cut(x, d, o, &cut);
    if (cut == 0) {
        return false;
    }
    out->begin = cut;
    out->before = median_of(x, cut);
    out->after = median_of(x + cut, n - cut);
    /* The sums that a permutation moves are rounded: equal is not less. */
    if (!(fabs(out->after - out->before) >= o->least * fabs(out->before)) ||
        !(q > 1e-12 * d.all)) {
        return false;
    }
    out->chance = chance_of(x, d, q * (1 - 1e-12), o);
    return out->chance <= o->significance;
}

static bool options_make_sense(const struct edivisive_options *o)
{
    return o->window <= WINDOW_MOST && o->before >= 1 && o->after >= 1 &&
           o->before + o->after <= o->window && o->permutations >= 1 &&
           o->significance > 0.0 && o->significance < 1.0 && o->least >= 0.0;
}

int edivisive_changes(const double *x, uint32_t n,
                      const struct edivisive_options *o,
                      struct edivisive_change **out, uint32_t *n_out)
{
    uint32_t first = 0; /* of the level that lasts */

    *out = NULL;
    *n_out = 0;
    if (!options_make_sense(o)) {
        return FSDP_ERR_INVALID;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) {
            return FSDP_ERR_INVALID;
        }
    }
    *out = calloc((size_t)n / o->after + 1, sizeof(**out));
    if (*out == NULL) {
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t from = i + 1 - first > o->window ? i + 1 - o->window : first;
        struct edivisive_change *c = &(*out)[*n_out];

        if (look(x + from, i + 1 - from, o, c)) {
            c->begin += from;
            c->found = i;
            first = c->begin;
            (*n_out)++;
        }
    }
    return FSDP_OK;
}
