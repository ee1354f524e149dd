/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_peak_gradients.c - an unsharded gradient lives from its backward
 * window to its reduction.
 */
#include "judge/compare/compare_memory.h"

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    return compare_peak(e, rank, k, COMPARE_PEAK_GRADIENTS,
                        "unsharded gradients at once", f);
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_ranks(e, r, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    return compare_spoil_peak(e, r, COMPARE_PEAK_GRADIENTS);
}

REQUIREMENT(memory_peak_gradients) = {
    .id = "memory.peak-gradients",
    .text = "Without reductions in flight the most unsharded gradient "
            "bytes at once are those of open windows and pending sums, "
            "to the byte.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_MEMORY,
    .needs = "memory.rest-after-step",
    .claim = "strict-memory",
    .applies = compare_case_strict,
    .holds = holds,
    .spoil = spoil,
};
