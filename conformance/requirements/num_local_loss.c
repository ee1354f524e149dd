/* SPDX-License-Identifier: Apache-2.0 */
/*
 * num_local_loss.c - a folded loss can hide that two ranks have each other's
 * batch.
 */
#include "judge/compare/compare.h"

#include <fsdp/arith/bits.h>

static bool applies(const struct expect *e)
{
    return compare_case_trains(e) && e->c->scenario != CASE_CANCEL &&
           e->c->scenario != CASE_MISUSE;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    for (uint64_t i = 0; i < compare_n_losses(e); i++) {
        for (uint32_t k = 0; k < e->c->ranks; k++) {
            struct finding at =
                finding_at("loss", (int64_t)(i / e->c->microbatches),
                           (int64_t)(i % e->c->microbatches), k);
            const struct record_rank *got = compare_rank(r, k);
            const struct record_rank *want =
                e->baseline == NULL ? NULL : compare_rank(e->baseline, k);

            if (got == NULL || got->loss == NULL || i >= got->n_losses ||
                want == NULL || want->loss == NULL || i >= want->n_losses) {
                return finding_text(
                    f, at, "this loss or the baseline's is not recorded");
            }
            if (!(want->loss[i] == want->loss[i]) ||
                fsdp_f32_bits(got->loss[i]) != fsdp_f32_bits(want->loss[i])) {
                return finding_bits(f, at, got->loss[i], want->loss[i],
                                    "this rank's loss differs in bits");
            }
        }
    }
    return true;
}

REQUIREMENT(num_local_loss) = {
    .id = "num.local-loss",
    .text = "Each rank's own loss equals the loss of the same rank in "
            "the baseline, bit for bit.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "num.curve",
    .profile = PROFILE_BITS,
    .applies = applies,
    .holds = holds,
    .spoil = compare_spoil_curve,
};
