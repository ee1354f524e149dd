/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_peak_total.c - whatever an engine calls its bytes, their total has a
 * closed form.
 */
#include "judge/compare/compare_memory.h"

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    return compare_peak(e, rank, k, COMPARE_PEAK_TOTAL,
                        "live at once, all kinds but activations", f);
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

REQUIREMENT(memory_peak_total) = {
    .id = "memory.peak-total",
    .text = "Without prefetch the peak of all that the engine holds is "
            "the expected one, to the byte.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_MEMORY,
    .needs = "memory.peak-parameters memory.peak-gradients "
             "memory.live-within-storage",
    .claim = "strict-memory",
    .applies = compare_case_strict,
    .holds = holds,
    .spoil = spoil,
};
