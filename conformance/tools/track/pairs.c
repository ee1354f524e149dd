/* SPDX-License-Identifier: Apache-2.0 */
/* pairs.c - compares two builds that were measured in turns. */
#include "tools/track/pairs.h"
#include "tools/track/median.h"
#include "tools/track/strict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct pairs_options pairs_defaults = {
    .significance = 0.01,
    .least = 0.01,
};

static const struct timed_result *find(const struct results *r,
                                       const struct timed_result *like)
{
    for (uint32_t i = 0; i < r->n_timed; i++) {
        const struct timed_result *x = &r->timed[i];

        if (strcmp(x->name, like->name) == 0 &&
            strcmp(x->unit, like->unit) == 0 &&
            strcmp(x->engine, like->engine) == 0 && x->higher == like->higher) {
            return x;
        }
    }
    return NULL;
}

/* ratio[i] = B / A of pair i. false: a file lacks it, or it is not above 0,
 * where no ratio says anything. */
static bool take_ratios(const struct results *r, uint32_t n,
                        const struct timed_result *like, double *ratio)
{
    for (uint32_t i = 0; i + 1 < n; i += 2) {
        const struct timed_result *a = find(&r[i], like);
        const struct timed_result *b = find(&r[i + 1], like);

        if (!a || !b || !(a->median > 0.0) || !(b->median > 0.0)) {
            return false;
        }
        ratio[i / 2] = b->median / a->median;
    }
    return true;
}

static int compare_one(const double *ratio, uint32_t pairs,
                       struct pairs_result *x)
{
    double difference[SIGNED_RANK_MOST];
    struct signed_rank w;

    for (uint32_t i = 0; i < pairs; i++) {
        /* In proportion, so that large values weigh no more than small. */
        difference[i] = x->of->higher ? -log(ratio[i]) : log(ratio[i]);
    }
    FSDP_TRY(signed_rank(difference, pairs, &w));
    x->ratio = median_of(ratio, pairs);
    x->n = w.n;
    x->slower = w.positive;
    x->chance = w.larger < w.smaller ? w.larger : w.smaller;
    x->call = w.larger < w.smaller ? PAIRS_WORSE : PAIRS_BETTER;
    return FSDP_OK;
}

static int by_chance(const void *a, const void *b)
{
    const struct pairs_result *x = a;
    const struct pairs_result *y = b;

    return (x->chance > y->chance) - (x->chance < y->chance);
}

/* Holm: the least likely one is asked for most; behind the first that is not
 * significant none is. */
static void call(struct pairs_result *all, uint32_t n,
                 const struct pairs_options *o)
{
    bool significant = true;

    qsort(all, n, sizeof(*all), by_chance);
    for (uint32_t i = 0; i < n; i++) {
        struct pairs_result *x = &all[i];
        bool worse = x->call == PAIRS_WORSE;
        double loss = x->of->higher == worse ? 1.0 - x->ratio : x->ratio - 1.0;

        significant = significant && x->chance * (n - i) <= o->significance;
        if (!significant || !(loss >= o->least)) {
            x->call = PAIRS_SAME;
        }
    }
}

int pairs_compare(const struct results *r, uint32_t n,
                  const struct pairs_options *o, struct pairs_result **out,
                  uint32_t *n_out, struct fsdp_error *error)
{
    double ratio[SIGNED_RANK_MOST] = {0};
    uint32_t pairs = n / 2;

    *out = NULL;
    *n_out = 0;
    if (n < 2 || n % 2 != 0 || pairs > SIGNED_RANK_MOST) {
        return record_fail(error, FSDP_ERR_INVALID, "track",
                           "%u files: an even number to %d was expected, A B A "
                           "B ...",
                           n, 2 * SIGNED_RANK_MOST);
    }
    *out = calloc(r[0].n_timed + 1u, sizeof(**out));
    if (!*out) {
        return record_fail(error, FSDP_ERR_NOMEM, "track", "out of memory");
    }
    for (uint32_t i = 0; i < r[0].n_timed; i++) {
        struct pairs_result x = {.of = &r[0].timed[i]};

        if (take_ratios(r, n, x.of, ratio)) {
            if (compare_one(ratio, pairs, &x) != FSDP_OK) {
                return record_fail(error, FSDP_ERR_INVALID, "track",
                                   "%.150s: no finite ratio", x.of->name);
            }
            (*out)[(*n_out)++] = x;
        }
    }
    if (*n_out == 0) {
        return record_fail(error, FSDP_ERR_INVALID, "track",
                           "no timed result is in all of the files");
    }
    if (ldexp(1.0, -(int)pairs) * *n_out > o->significance) {
        int least = (int)ceil(log2(*n_out / o->significance));

        return record_fail(error, FSDP_ERR_INVALID, "track",
                           "%u pairs of %u results could never show a change: "
                           "%d pairs are needed",
                           pairs, *n_out, least);
    }
    call(*out, *n_out, o);
    return FSDP_OK;
}
