/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edivisive.c - where a series changes. The divergence of two parts is the
 * mean distance between them less the mean distances within them, so that it
 * needs no assumption of a distribution; its significance is how often a
 * series with the same values in another order has one as large.
 */
#include "tools/track/edivisive.h"
#include "tools/track/median.h"

#include <fsdp/status.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    WINDOW_MOST = 400
};
#define ROUNDING 1e-9

/* One run against one, while the test cannot call anything yet; later one
 * number is never enough. Shared machines scatter by 5 % from run to run, which
 * makes differences of 7 %; 25 % is 3.5 times that. Three runs against two:
 * medians, and all runs must agree. */
static const struct edivisive_large large_changes[] = {
    {.before = 1, .after = 1, .most = 12, .least = 0.25},
    {.before = 3, .after = 2, .least = 0.10},
};

const struct edivisive_options edivisive_defaults = {
    .window = 50,
    .before = 7,
    .after = 3,
    .permutations = 1999,
    .significance = 0.001,
    .least = 0.02,
    .seed = UINT64_C(0x66736470),
    .large = large_changes,
    .n_large = sizeof(large_changes) / sizeof(large_changes[0]),
};

static void shuffle(double *x, uint32_t n, uint64_t *state)
{
    for (uint32_t i = n; i > 1; i--) {
        uint32_t j = (uint32_t)(((draw_of(state) >> 32) * i) >> 32);
        double y = x[i - 1];

        x[i - 1] = x[j];
        x[j] = y;
    }
}

/*
 * The values that are looked at, oldest first, and of each the sums of its
 * distances to those before and behind it. From these the divergence of all
 * cuts follows in one pass, and a value that comes or goes costs one, too.
 */
struct window {
    uint32_t n;
    double x[WINDOW_MOST], left[WINDOW_MOST], right[WINDOW_MOST];
    double all; /* distances */
};

static void push(struct window *w, double x)
{
    double sum = 0.0;

    for (uint32_t i = 0; i < w->n; i++) {
        double d = fabs(w->x[i] - x);

        w->right[i] += d;
        sum += d;
    }
    w->x[w->n] = x;
    w->left[w->n] = sum;
    w->right[w->n] = 0.0;
    w->all += sum;
    w->n++;
}

/* The oldest value goes. */
static void pop(struct window *w)
{
    size_t bytes = (w->n - 1) * sizeof(double);
    double x = w->x[0];

    w->all -= w->right[0];
    w->n--;
    memmove(w->x, w->x + 1, bytes);
    memmove(w->left, w->left + 1, bytes);
    memmove(w->right, w->right + 1, bytes);
    for (uint32_t i = 0; i < w->n; i++) {
        w->left[i] -= fabs(w->x[i] - x);
    }
}

static void fill(struct window *w, const double *x, uint32_t n)
{
    w->n = 0;
    w->all = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        push(w, x[i]);
    }
}

/* The divergence of the parts before and behind a cut; left, right: sums of
 * distances within them. */
static double divergence(const struct window *w, uint32_t cut, double left,
                         double right)
{
    double n = cut;
    double m = w->n - cut;
    double between = (w->all - left - right) / (n * m);

    left = cut > 1 ? left / (n * (n - 1) / 2) : 0.0;
    right = w->n - cut > 1 ? right / (m * (m - 1) / 2) : 0.0;
    return n * m / (n + m) * (2 * between - left - right);
}

double edivisive_divergence(const double *x, uint32_t n, uint32_t cut)
{
    struct window w;
    double left = 0.0;
    double right;

    fill(&w, x, n < WINDOW_MOST ? n : WINDOW_MOST);
    right = w.all;
    for (uint32_t k = 0; k < cut; k++) {
        left += w.left[k];
        right -= w.right[k];
    }
    return divergence(&w, cut, left, right);
}

/* The largest divergence of all cuts that the options allow. */
static double best_cut(const struct window *w,
                       const struct edivisive_options *o, uint32_t *cut)
{
    double best = -1.0;
    double left = 0.0;
    double right = w->all;

    *cut = 0;
    for (uint32_t k = 1; k + o->after <= w->n; k++) {
        double q;

        left += w->left[k - 1];
        right -= w->right[k - 1];
        q = k >= o->before ? divergence(w, k, left, right) : -1.0;
        if (q > best) {
            best = q;
            *cut = k;
        }
    }
    return best;
}

/* How likely a divergence so large is if nothing changed. It stops as soon as
 * this is more than the options allow. */
static double chance_of(const struct window *w, double q,
                        const struct edivisive_options *o)
{
    uint64_t state = o->seed;
    uint32_t larger = 1;
    double tries = (double)o->permutations + 1;
    double y[WINDOW_MOST];
    struct window other;

    memcpy(y, w->x, w->n * sizeof(*y));
    for (uint32_t i = 0; i < o->permutations; i++) {
        uint32_t ignored;

        shuffle(y, w->n, &state);
        fill(&other, y, w->n);
        larger += !(best_cut(&other, o, &ignored) < q) ? 1 : 0;
        if (larger / tries > o->significance) {
            break;
        }
    }
    return larger / tries;
}

/* How far values are from the medians of their parts, in all. */
static double misfit(const struct window *w, uint32_t cut)
{
    double before = median_of(w->x, cut);
    double after = median_of(w->x + cut, w->n - cut);
    double sum = 0.0;

    for (uint32_t i = 0; i < w->n; i++) {
        sum += fabs(w->x[i] - (i < cut ? before : after));
    }
    return sum;
}

/* A change is told while few runs show it, with the last of the old level
 * among them: the cut that fits best is a little later. */
static uint32_t refined(const struct window *w, uint32_t cut,
                        const struct edivisive_options *o)
{
    uint32_t best = cut;

    for (uint32_t k = cut + 1; k < w->n && k < cut + o->after; k++) {
        if (misfit(w, k) < misfit(w, best)) {
            best = k;
        }
    }
    return best;
}

/* Whether the window has a change. */
static bool look(const struct window *w, const struct edivisive_options *o,
                 struct edivisive_change *out)
{
    double q;
    uint32_t cut;

    if (w->n < o->before + o->after) {
        return false;
    }
    q = best_cut(w, o, &cut);
    if (cut == 0) {
        return false;
    }
    *out =
        (struct edivisive_change){.begin = cut,
                                  .before = median_of(w->x, cut),
                                  .after = median_of(w->x + cut, w->n - cut)};
    if (!(fabs(out->after - out->before) >= o->least * fabs(out->before)) ||
        !(q > ROUNDING * w->all)) {
        return false;
    }
    /* Sums in another order are rounded otherwise: equal is not less. */
    out->chance = chance_of(w, q * (1 - ROUNDING), o);
    if (!(out->chance <= o->significance)) {
        return false;
    }
    /* Too few runs of the new level: the next one will tell. */
    out->begin = refined(w, cut, o);
    out->before = median_of(w->x, out->begin);
    out->after = median_of(w->x + out->begin, w->n - out->begin);
    return w->n - out->begin >= o->after;
}

/* Whether the newest runs are as far from the level as a row of the table
 * says. */
static bool is_large(const struct window *w, const struct edivisive_large *l,
                     struct edivisive_change *out)
{
    const uint32_t cut = w->n - l->after;
    double level;
    double away = INFINITY; /* of the new runs the nearest */
    double spread = 0.0;    /* of the old ones */
    double now;

    if (w->n < l->before + l->after || (l->most != 0 && cut > l->most)) {
        return false;
    }
    level = median_of(w->x, cut);
    now = median_of(w->x + cut, l->after);
    for (uint32_t i = 0; i < cut; i++) {
        spread = fmax(spread, fabs(w->x[i] - level));
    }
    for (uint32_t i = cut; i < w->n; i++) {
        away = fmin(away, now < level ? level - w->x[i] : w->x[i] - level);
    }
    *out = (struct edivisive_change){
        .begin = cut, .before = level, .after = now, .large = true};
    return away > 2.0 * spread && fabs(now - level) >= l->least * fabs(level) &&
           now != level;
}

static bool look_for_large(const struct window *w,
                           const struct edivisive_options *o,
                           struct edivisive_change *out)
{
    for (uint32_t i = 0; i < o->n_large; i++) {
        if (is_large(w, &o->large[i], out)) {
            return true;
        }
    }
    return false;
}

uint32_t edivisive_earliest(const struct edivisive_options *o)
{
    for (uint32_t n = o->before + o->after; n < o->window; n++) {
        for (uint32_t k = o->after; k + o->before <= n; k++) {
            double ways = 1.0; /* k of n */

            for (uint32_t i = 1; i <= k; i++) {
                ways *= (double)(n - k + i) / i;
            }
            if (1.0 / ways <= o->significance) {
                return n;
            }
        }
    }
    return o->window;
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
    struct window w = {.n = 0}; /* no more than the level that lasts */

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
    *out = calloc((size_t)n + 1, sizeof(**out));
    if (!*out) {
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct edivisive_change *c = &(*out)[*n_out];

        if (w.n == o->window) {
            pop(&w);
        }
        push(&w, x[i]);
        if (look_for_large(&w, o, c) || look(&w, o, c)) {
            c->begin += i + 1 - w.n;
            c->found = i;
            fill(&w, x + c->begin, i + 1 - c->begin);
            (*n_out)++;
        }
    }
    return FSDP_OK;
}
