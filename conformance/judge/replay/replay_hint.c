/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_hint.c - says what a wrong reduced gradient is instead of the right
 * one: an engineer who reads "the first microbatch alone" need not look for the
 * fault. Known mistakes are replayed: if one of them gives all bits that were
 * got, the fault has its name.
 */
#include "judge/replay/replay.h"

#include <fsdp/arith/bits.h>
#include <stdio.h>
#include <string.h>

/* ---- One element --------------------------------------------------------- */

/* The scaled fold of what microbatches [from, to) add up to. */
static float reduced_of(const struct replay_reduction *reduction, uint32_t from,
                        uint32_t to, uint64_t i)
{
    float sum[WORLD_MAX_RANKS] = {0};

    bool has = false;

    for (uint32_t b = from; b < to; b++) {
        replay_accumulate(reduction, b, i, sum, &has);
    }
    return expect_reduce(reduction->e, reduction->unit,
                         expect_place_of_gradient(reduction->e,
                                                  reduction->parameter,
                                                  reduction->first + i),
                         sum, reduction->factor);
}

static bool is_alone(const struct replay_reduction *reduction, const float *got,
                     uint64_t n, uint32_t from, uint32_t to)
{
    for (uint64_t i = 0; i < n; i++) {
        if (!(got[i] == reduced_of(reduction, from, to, i))) {
            return false;
        }
    }
    return true;
}

/* Which microbatches alone give what was got; NULL: none do. */
static const char *alone(const struct replay_reduction *reduction,
                         const float *got, uint64_t n)
{
    const struct run_case *c = reduction->e->c;
    uint32_t first = 0;
    uint32_t last = c->microbatches - 1;

    if (is_alone(reduction, got, n, 0, 1)) {
        return "equals the first microbatch alone: later ones were not added";
    }
    if (is_alone(reduction, got, n, last, last + 1)) {
        return "equals the last microbatch alone: earlier ones were lost";
    }
    while (first < last && c->sync[first] == 0) {
        first++;
    }
    while (last > 0 && c->sync[last - 1] == 0) {
        last--;
    }
    if (is_alone(reduction, got, n, 0, first + 1)) {
        return "equals the first fold alone: later ones were not added";
    }
    if (is_alone(reduction, got, n, last, c->microbatches)) {
        return "equals the last fold alone: earlier ones were lost";
    }
    return NULL;
}

/* Whether all of the part is the right values times one simple factor. Zeros
 * say nothing, and rounding may differ. */
static bool factor_words(const struct replay_reduction *reduction,
                         const float *got, uint64_t n,
                         char out[COMPARE_WORDS_BYTES])
{
    char first[COMPARE_WORDS_BYTES] = "";

    for (uint64_t i = 0; i < n; i++) {
        float want = replay_reduced(reduction, i);

        if (!(want != 0.0f) && !(got[i] != 0.0f)) {
            continue;
        }
        if (!compare_factor_words((double)got[i], (double)want, out)) {
            return false;
        }
        if (first[0] == '\0') {
            memcpy(first, out, sizeof(first));
        } else if (strcmp(first, out) != 0) {
            return false;
        }
    }
    return first[0] != '\0';
}

/* Whether all values fit in bf16 although the right ones do not. */
static bool is_bf16(const struct replay_reduction *reduction, const float *got,
                    uint64_t n)
{
    bool fits = true;

    for (uint64_t i = 0; i < n; i++) {
        uint32_t want = fsdp_f32_bits(replay_reduced(reduction, i));

        if ((fsdp_f32_bits(got[i]) & 0xffffu) != 0) {
            return false;
        }
        fits = fits && (want & 0xffffu) == 0;
    }
    return !fits;
}

void replay_hint(const struct replay_reduction *reduction, const float *got,
                 uint64_t n, struct finding *f)
{
    char words[COMPARE_WORDS_BYTES];
    const char *what = NULL;

    if (reduction->e->c->microbatches > 1) {
        what = alone(reduction, got, n);
    }
    if (!what && !reduction->e->any_fold) {
        what = replay_mistake(reduction, got, n);
    }
    if (what) {
        snprintf(f->note, sizeof(f->note), "%s", what);
    } else if (factor_words(reduction, got, n, words)) {
        snprintf(f->note, sizeof(f->note), "all of this part: %s", words);
    } else if (is_bf16(reduction, got, n)) {
        snprintf(f->note, sizeof(f->note),
                 "all of this part is rounded to bf16");
    }
}

/* ---- A whole part -------------------------------------------------------- */

/* The ways in which a reduction can go wrong; zeroed, it is right. */
struct mistake {
    const char *words;
    bool scales_first; /* each rank's gradient, before the fold */
    bool syncs_always; /* microbatches without sync are folded, too */
    bool keeps;        /* what was folded is added again in the next fold */
    bool folds;        /* in another order: `fold` */
    uint32_t fold;
};

static const struct mistake mistakes[] = {
    {.words = "equals the fold of gradients that were each scaled before it: "
              "the product comes after the folds",
     .scales_first = true},
    {.words = "equals the sum of a fold for each microbatch: those without "
              "sync were reduced, too",
     .syncs_always = true},
    {.words = "equals folds that take again what an earlier one has taken: "
              "unsharded gradients are dropped once they are reduced",
     .keeps = true},
    {.words = "equals the fold by rank, which is not the declared one",
     .folds = true,
     .fold = FSDP_FOLD_RANK},
    {.words = "equals the fold by ring, which is not the declared one",
     .folds = true,
     .fold = FSDP_FOLD_RING},
    {.words = "equals the fold by tree, which is not the declared one",
     .folds = true,
     .fold = FSDP_FOLD_TREE},
};

/* replay_reduced with a mistake in it; `e` is that of the mistake. */
static float reduced(const struct replay_reduction *reduction,
                     const struct expect *e, const struct mistake *mistake,
                     uint64_t i)
{
    uint64_t place =
        expect_place_of_gradient(e, reduction->parameter, reduction->first + i);
    float pending[WORLD_MAX_RANKS] = {0};
    float sum = 0.0f;
    bool is_pending = false, is_sum = false;

    for (uint32_t b = 0; b < e->c->microbatches; b++) {
        float x[WORLD_MAX_RANKS];
        float g;

        replay_accumulate(reduction, b, i, pending, &is_pending);
        if (e->c->sync[b] == 0 && !mistake->syncs_always) {
            continue;
        }
        for (uint32_t k = 0; k < WORLD_MAX_RANKS; k++) {
            x[k] = pending[k] * reduction->factor.before;
            x[k] *= mistake->scales_first ? reduction->factor.behind : 1.0f;
        }
        g = expect_fold(e, reduction->unit, place, x);
        g = mistake->scales_first ? g : g * reduction->factor.behind;
        sum = is_sum ? sum + g : g;
        is_sum = true;
        if (!mistake->keeps) {
            is_pending = false;
            memset(pending, 0, sizeof(pending));
        }
    }
    return sum;
}

static bool is_made(const struct replay_reduction *reduction,
                    const struct mistake *mistake, const float *got, uint64_t n)
{
    struct run_case c = *reduction->e->c;
    struct expect e = *reduction->e;

    if (mistake->folds) {
        c.fold = mistake->fold;
        e.c = &c;
    }
    for (uint64_t i = 0; i < n; i++) {
        if (!(got[i] == reduced(reduction, &e, mistake, i))) {
            return false;
        }
    }
    return true;
}

const char *replay_mistake(const struct replay_reduction *reduction,
                           const float *got, uint64_t n)
{
    for (size_t m = 0; m < sizeof(mistakes) / sizeof(mistakes[0]); m++) {
        if (is_made(reduction, &mistakes[m], got, n)) {
            return mistakes[m].words;
        }
    }
    return NULL;
}
