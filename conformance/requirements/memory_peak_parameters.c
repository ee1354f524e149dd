/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_peak_parameters.c - the promise of sharding, in bytes.
 */
#include "judge/compare/compare_memory.h"

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    return compare_peak(e, rank, k, COMPARE_PEAK_PARAMETERS,
                        "parameters at once, sharded and not", f);
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_ranks(e, r, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    return compare_spoil_peak(e, r, COMPARE_PEAK_PARAMETERS);
}

REQUIREMENT(memory_peak_parameters) = {
    .id = "memory.peak-parameters",
    .text = "Without prefetch the peak of sharded and unsharded "
            "parameters together is the expected one, to the byte.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_MEMORY,
    .needs = "memory.peak-unsharded memory.single-rank "
             "memory.rest-after-shard",
    .claim = "strict-memory",
    .applies = compare_case_strict,
    .holds = holds,
    .spoil = spoil,
};
