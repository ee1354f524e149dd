/* SPDX-License-Identifier: Apache-2.0 */
/*
 * num_loss_falls.c - equal curves prove nothing if nothing is learned.
 */
#include "judge/compare/compare.h"

#include <string.h>

static bool applies(const struct expect *e)
{
    return compare_case_trains(e) && strcmp(e->c->workload, "mlp") == 0 &&
           strcmp(e->c->size, "seed") == 0 && e->c->data == WORKLOAD_NATURAL &&
           e->c->steps >= 40;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    struct finding at = finding_at("loss", (int64_t)e->c->steps - 1, -1, -1);
    float first;
    float last;

    if (!compare_loss(e, r, 0, &first) ||
        !compare_loss(e, r, compare_n_losses(e) - 1, &last)) {
        return finding_text(f, at, "a rank's loss is not recorded");
    }
    return last < first || finding_bits(f, at, last, first,
                                        "not below the loss of the first step");
}

/* Every rank ends where it began. */
static bool spoil(const struct expect *e, struct record *r)
{
    for (uint32_t k = 0; k < e->c->ranks; k++) {
        struct record_rank *rank = compare_rank_to_spoil(r, k);

        if (rank == NULL || rank->loss == NULL ||
            rank->n_losses < compare_n_losses(e)) {
            return false;
        }
        rank->loss[compare_n_losses(e) - 1] = rank->loss[0];
    }
    return true;
}

REQUIREMENT(num_loss_falls) = {
    .id = "num.loss-falls",
    .text = "On the natural data of the seed model the loss of the last "
            "step is below that of the first.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "num.curve",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
