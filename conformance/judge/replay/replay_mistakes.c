/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_mistakes.c - the mistakes that reductions are known for, replayed: if
 * one of them gives all bits of what was got, it has a name.
 */
#include "judge/replay/replay.h"

#include <string.h>

/* How a reduction goes wrong; zeroed, it is right. */
struct mistake {
    const char *words;
    bool scales_first; /* each rank's gradient, before the fold */
    bool syncs_always; /* microbatches without sync are folded, too */
    bool keeps;        /* what a fold took is added up again in the next */
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
