/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_peak_parameters.c - the promise of sharding, in bytes.
 */
#include "judge/compare.h"

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    uint64_t got = rank->memory.peak_parameters;
    uint64_t want = e->peak_parameters;

    return got == want ||
           finding_peak(f, finding_at("parameters", -1, -1, k), got, want,
                        "parameters at once, sharded and not", &rank->memory);
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_ranks(e, r, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    struct record_rank *rank = compare_rank_to_spoil(r, r->n_ranks - 1);

    if (rank == NULL) {
        return false;
    }
    rank->memory.peak_parameters = e->peak_parameters + 1;
    return true;
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
