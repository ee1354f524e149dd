/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_storage_total.c - what is live is what a model needs; what is
 * allocated is what a device must have. A pool for each kind of value, or one
 * as large as the largest unit, needs more than ever lives at once.
 */
#include "judge/compare/compare.h"

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    uint64_t got = rank->memory.peak_storage;

    return got <= e->peak_storage ||
           finding_bytes(f, finding_at("storage", -1, -1, k), got,
                         e->peak_storage,
                         "allocated at once; live at once, each range in "
                         "whole lines of 64 bytes");
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
    rank->memory.peak_storage = e->peak_storage + 1;
    return true;
}

REQUIREMENT(memory_storage_total) = {
    .id = "memory.storage-total",
    .text = "Without prefetch an engine never allocates more than is expected "
            "to be live at the peak, each range in whole lines of 64 bytes.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_MEMORY,
    .needs = "memory.peak-total",
    .claim = "strict-storage",
    .applies = compare_case_strict,
    .holds = holds,
    .spoil = spoil,
};
