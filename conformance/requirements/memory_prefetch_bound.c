/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_prefetch_bound.c - running ahead costs memory, and how much is
 * agreed.
 */
#include "judge/compare.h"

static bool applies(const struct expect *e)
{
    return compare_case_trains(e) && !compare_case_strict(e);
}

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    const struct record_memory *m = &rank->memory;
    const uint64_t got[] = {m->peak[FSDP_PARAM_FULL], m->peak_parameters,
                            m->peak[FSDP_GRAD_FULL], m->peak_engine};
    const uint64_t most[] = {e->peak_full, e->peak_parameters, e->peak_grads,
                             e->peak_engine};
    static const char *const stage[] = {"unsharded parameter", "parameters",
                                        "unsharded gradient", "memory"};

    for (uint32_t i = 0; i < 4; i++) {
        if (got[i] > most[i]) {
            return finding_bytes(f, finding_at(stage[i], -1, -1, k), got[i],
                                 most[i], "at once; the bound");
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
    struct record_rank *rank = compare_rank_to_spoil(r, r->n_ranks - 1);

    if (rank == NULL) {
        return false;
    }
    rank->memory.peak_engine = e->peak_engine + 1;
    return true;
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
