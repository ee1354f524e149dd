/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_no_activations_by_engine.c - activations are not counted against an
 * engine, so none of its own bytes may go by that name.
 */
#include "judge/compare/compare.h"

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    for (uint32_t t = 0; t <= e->c->steps; t++) {
        const struct record_rest *got = &rank->memory.after_shard;

        if (t > 0 && (rank->memory.after_step == NULL || t > rank->n_steps)) {
            return finding_text(f, finding_at("memory", t - 1, -1, k),
                                "memory after this step is not recorded");
        }
        if (t > 0) {
            got = &rank->memory.after_step[t - 1];
        }
        if (got->live[FSDP_ACTIVATION] != 0) {
            return finding_bytes(
                f, finding_at("activation", (int64_t)t - 1, -1, k),
                got->live[FSDP_ACTIVATION], 0, "live outside a pass");
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

    (void)e;
    if (rank == NULL) {
        return false;
    }
    rank->memory.after_shard.live[FSDP_ACTIVATION]++;
    return true;
}

REQUIREMENT(memory_no_activations_by_engine) = {
    .id = "memory.no-activations-by-engine",
    .text = "Outside a pass no byte is live as an activation.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_MEMORY,
    .needs = "memory.ranges-valid run.shows-every-step",
    .applies = compare_case_trains,
    .holds = holds,
    .spoil = spoil,
};
