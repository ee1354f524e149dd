/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_peak_gradients.c - an unsharded gradient lives from its backward
 * window to its reduction.
 */
#include "judge/compare.h"

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    uint64_t got = rank->memory.peak[FSDP_GRAD_FULL];
    uint64_t want = e->peak_grads;

    return got == want ||
           finding_peak(f, finding_at("unsharded gradient", -1, -1, k), got,
                        want, "unsharded gradients at once", &rank->memory);
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
    rank->memory.peak[FSDP_GRAD_FULL] = e->peak_grads + 1;
    return true;
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
