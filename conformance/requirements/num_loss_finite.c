/* SPDX-License-Identifier: Apache-2.0 */
/*
 * num_loss_finite.c - a loss that is NaN compares false with everything, so it
 * is looked for.
 */
#include "judge/compare/compare.h"

#include <math.h>

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    for (uint64_t i = 0; i < compare_n_losses(e); i++) {
        struct finding at =
            finding_at("loss", (int64_t)(i / e->c->microbatches),
                       (int64_t)(i % e->c->microbatches), k);

        if (rank->loss == NULL || i >= rank->n_losses) {
            return finding_text(f, at, "this loss is not recorded");
        }
        if (!isfinite(rank->loss[i])) {
            return finding_bits(f, at, rank->loss[i], 0.0f, "not finite");
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

    (void)e;
    if (rank == NULL) {
        return false;
    }

    if (rank->loss == NULL || rank->n_losses == 0) {
        return false;
    }
    rank->loss[rank->n_losses - 1] = NAN;
    return true;
}

REQUIREMENT(num_loss_finite) = {
    .id = "num.loss-finite",
    .text = "Every rank's loss of every microbatch is finite.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "run.shows-every-step grad.finite step.weights",
    .applies = compare_case_trains,
    .holds = holds,
    .spoil = spoil,
};
