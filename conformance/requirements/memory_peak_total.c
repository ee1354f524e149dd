/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_peak_total.c - whatever an engine calls its bytes, their total has a
 * closed form.
 */
#include "judge/compare.h"

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    uint64_t got = rank->memory.peak_engine;
    uint64_t want = e->peak_engine;

    return got == want ||
           finding_peak(f, finding_at("memory", -1, -1, k), got, want,
                        "live at once, all kinds but activations",
                        &rank->memory);
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
    rank->memory.peak_engine = e->peak_engine + 1;
    return true;
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
