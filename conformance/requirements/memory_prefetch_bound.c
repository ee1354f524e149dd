/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_prefetch_bound.c - running ahead costs memory, and how much is
 * agreed.
 */
#include "judge/compare/compare_memory.h"

static bool applies(const struct expect *e)
{
    return compare_case_trains(e) && !compare_case_strict(e);
}

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    for (uint32_t peak = 0; peak < COMPARE_N_PEAKS; peak++) {
        uint64_t got = compare_peak_recorded(&rank->memory, peak);
        uint64_t most = compare_peak_expected(e, peak);

        if (got > most) {
            return finding_bytes(
                f, finding_at(compare_peak_stage(peak), -1, -1, k), got, most,
                "at once; the bound");
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
    return compare_spoil_peak(e, r, COMPARE_PEAK_TOTAL);
}

REQUIREMENT(memory_prefetch_bound) = {
    .id = "memory.prefetch-bound",
    .text = "With prefetch and reductions in flight no peak exceeds "
            "what their depth allows.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_MEMORY,
    .needs = "memory.rest-after-step memory.live-within-storage",
    .claim = "prefetch",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
