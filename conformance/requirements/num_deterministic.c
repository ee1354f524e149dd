/* SPDX-License-Identifier: Apache-2.0 */
/*
 * num_deterministic.c - a second life in the same process, with used memory,
 * is the same life.
 */
#include "judge/compare/compare.h"

#include <fsdp/arith/bits.h>
#include <string.h>

static bool applies(const struct expect *e)
{
    return e->c->scenario == CASE_AGAIN;
}

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    if (rank->loss == NULL || rank->other_loss == NULL ||
        rank->n_losses != compare_n_losses(e) ||
        rank->n_other_losses != rank->n_losses) {
        return finding_count(f, finding_at("loss", -1, -1, k),
                             rank->n_other_losses, compare_n_losses(e),
                             "losses recorded of the first life");
    }
    for (uint32_t i = 0; i < rank->n_losses; i++) {
        if (fsdp_f32_bits(rank->loss[i]) !=
            fsdp_f32_bits(rank->other_loss[i])) {
            return finding_bits(
                f,
                finding_at("loss", i / e->c->microbatches,
                           i % e->c->microbatches, k),
                rank->loss[i], rank->other_loss[i],
                "the second life differs from the first (want)");
        }
    }
    return true;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_ranks(e, r, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    struct record_rank *rank = compare_rank_to_spoil(r, r->n_ranks - 1);
    uint32_t bits;

    (void)e;
    if (rank == NULL) {
        return false;
    }

    if (rank->loss == NULL || rank->n_losses == 0) {
        return false;
    }
    /* Also a NaN becomes another one: this compares bits. */
    memcpy(&bits, &rank->loss[rank->n_losses - 1], sizeof bits);
    bits ^= 1;
    memcpy(&rank->loss[rank->n_losses - 1], &bits, sizeof bits);
    return true;
}

REQUIREMENT(num_deterministic) = {
    .id = "num.deterministic",
    .text = "Training again after destroy gives the same losses on "
            "every rank, bit for bit.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "run.shows-every-step stream.no-race",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
